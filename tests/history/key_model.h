// One key as a sequential object, and what each operation of a history does to it. For linearizability.cc.
//
// A transaction over several keys is projected: what it did to this key and saw of it. That is weaker than the whole
// (revision_check.h looks at that), but what fails here is wrong for sure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "history/history.h"

namespace history {

inline constexpr int64_t kAnyNumber = -1;  // a revision or version that nobody has told yet
inline constexpr int32_t kAbsent = -1;     // no value
inline constexpr int32_t kAnyValue = -2;   // there or not, nobody knows: the start of a window of a history
inline constexpr int32_t kOtherValue = 0;  // one that nobody ever sees

struct KeyState {
  int32_t value = kAbsent;
  bool leased = false;  // may vanish at any time
  int64_t create = 0;
  int64_t mod = 0;  // below 0: not told yet, but at least so much
  int64_t version = 0;
  int64_t floor = 0;  // the store's revision is at least this
  bool alive() const { return value >= 0; }
  friend bool operator==(const KeyState&, const KeyState&) = default;
};

// Of the key, as an answer told it; value kAbsent: it was not there. Numbers 0: not told.
struct Seen {
  int32_t value = kAbsent;
  int64_t create = 0;
  int64_t mod = 0;
  int64_t version = 0;
  bool leased = false;
};

struct Action {
  Request::Kind kind = Request::Kind::kGet;
  int32_t value = kOtherValue;
  bool leased = false;
  std::optional<Seen> seen = {};     // just before
  std::optional<bool> existed = {};  // of a delete
};

// One way that an operation may have gone; more than one if the answer is missing.
struct Branch {
  bool compares_held = true;
  bool all_compares_here = true;  // it has no compares of other keys
  std::vector<const Compare*> compares = {};
  std::vector<Action> actions = {};
};

struct KeyOperation {
  const Operation* source = nullptr;
  Time call{};
  Time returned = kNever;
  bool must = true;      // happened for sure
  int64_t revision = 0;  // 0: unknown
  bool writes = false;   // somewhere: the revision is its own
  std::vector<Branch> branches = {};
  uint32_t kind = 0;  // those with the same one do the same; only for !must
};

struct KeyHistory {
  std::string key;
  std::vector<KeyOperation> operations;  // sorted by call
  std::vector<std::string> values;       // by number
  std::map<int64_t, Seen> told;          // what anybody ever saw, by mod_revision
};

// The operations that touch `key`, of `operations` that may be checked this way (no serializable reads, no reads of old
// revisions). An operation without an answer whose unique value was seen happened for sure, at the revision seen.
KeyHistory project(const std::string& key, const std::vector<const Operation*>& operations);

// False: from this state on, whatever comes, the operation cannot happen any more: its revision has passed, or what it
// saw, or what others saw of it.
bool may_come(const KeyHistory& history, const KeyOperation& operation, const KeyState& state);

// Adds to `out` every state that `operation` may leave when it comes next, going by this branch; none: it cannot.
void step(const KeyHistory& history, const KeyOperation& operation, const Branch& branch, const KeyState& state,
          std::vector<KeyState>& out);

}  // namespace history
