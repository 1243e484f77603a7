// Is there an order of the operations, one after the other, that explains every answer and lets none happen before it
// was called or after it was answered? Key by key: a history is linearizable if and only if that of each object is.
//
// Method: Wing & Gong, "Testing and verifying concurrent objects" (1993), depth first; a set of operations that led to
// a state that was seen before is not tried again (Lowe, "Testing for linearizability", 2016). What makes it fast here:
// answers carry revisions, so that the next operation is nearly always known; operations without an answer are tried
// last, and of those that do the same only the earliest.
#pragma once

#include <vector>

#include "history/history.h"

namespace history {

struct LinearizabilityLimits {
  uint64_t states_max = 1'000'000;  // of one key's search; about 50 bytes each
  bool shrink = true;               // look for the smallest window that fails
};

// Serializable reads and reads of old revisions are left out: see check_revisions(). A violation's text ends with the
// smallest window of the history that fails.
Verdict check_linearizable(const std::vector<Operation>& operations, const LinearizabilityLimits& limits = {});

}  // namespace history
