// Which operations of a history wrote what: the acknowledged ones say so, the ones without an answer are found by their
// values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "history/history.h"

namespace history {

struct Written {
  const Operation* operation = nullptr;
  bool succeeded = true;  // the branch that was taken
};

struct Attribution {
  std::map<int64_t, Written> writes;                           // by revision
  std::map<int64_t, std::map<std::string, KeyValue>> unowned;  // seen, by revision and key; several may have written it
  std::vector<const Operation*> open;                          // without an answer, and nobody saw a trace of them
  Verdict verdict;  // two writes at a revision, a value twice, a value that nobody wrote
};

// Looks at all answers and, if given, at all events.
Attribution attribute(const std::vector<Operation>& operations, const Events* events);

}  // namespace history
