#include "history/key_model.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace history {
namespace {

bool touches(const Request& request, const std::string& key) { return in_range(key, request.key, request.end); }

bool puts(const std::vector<Request>& requests, const Request& same) {
  return std::any_of(requests.begin(), requests.end(), [&same](const Request& request) {
    return request.kind == Request::Kind::kPut && request.key == same.key && request.value == same.value;
  });
}

bool touches(const Operation& operation, const std::string& key) {
  const auto hits = [&key](const Request& request) { return touches(request, key); };
  return std::any_of(operation.success.begin(), operation.success.end(), hits) ||
         std::any_of(operation.failure.begin(), operation.failure.end(), hits) ||
         std::any_of(operation.compares.begin(), operation.compares.end(),
                     [&key](const Compare& compare) { return compare.key == key; });
}

// Values that some answer or compare names; the others are all the same to this check.
class Values {
 public:
  Values(const std::string& key, const std::vector<const Operation*>& operations) {
    names_.emplace_back("a value that nobody saw");
    for (const Operation* operation : operations) {
      for (const Compare& compare : operation->compares) {
        if (compare.key == key && compare.target == Compare::Target::kValue) number(compare.value);
      }
      for (const Answer& answer : operation->answers) {
        for (const KeyValue& kv : answer.kvs) {
          if (kv.key == key) number(kv.value);
        }
      }
    }
  }
  int32_t find(const std::string& value) const {
    const auto found = numbers_.find(value);
    return found == numbers_.end() ? kOtherValue : found->second;
  }
  std::vector<std::string>& names() { return names_; }

 private:
  void number(const std::string& value) {
    if (numbers_.emplace(value, static_cast<int32_t>(names_.size())).second) names_.push_back(value);
  }
  std::map<std::string, int32_t> numbers_;
  std::vector<std::string> names_;
};

Seen seen_in(const std::string& key, const Answer& answer, const Values& values) {
  for (const KeyValue& kv : answer.kvs) {
    if (kv.key == key) {
      return {values.find(kv.value), kv.create_revision, kv.mod_revision, kv.version, kv.lease != 0};
    }
  }
  return {};
}

Branch branch_of(const std::string& key, const Operation& operation, bool held, const Values& values) {
  Branch branch;
  branch.compares_held = held;
  for (const Compare& compare : operation.compares) {
    if (compare.key == key) {
      branch.compares.push_back(&compare);
    } else {
      branch.all_compares_here = false;
    }
  }
  const auto& requests = held ? operation.success : operation.failure;
  const bool answered = operation.outcome == Outcome::kOk;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    if (!touches(request, key) || request.revision != 0) continue;
    Action action{.kind = request.kind, .value = values.find(request.value), .leased = request.lease != 0};
    if (answered && i < operation.answers.size()) {
      const Answer& answer = operation.answers[i];
      if (request.kind == Request::Kind::kGet || request.previous) action.seen = seen_in(key, answer, values);
      const bool told = request.end.empty() || answer.deleted == 0;
      if (request.kind == Request::Kind::kDelete && told) action.existed = answer.deleted > 0;
    }
    branch.actions.push_back(action);
  }
  return branch;
}

// What an operation without an answer does, for telling those apart that differ.
using Signature = std::vector<std::tuple<int, int64_t, int64_t, int64_t, std::string>>;
Signature signature_of(const KeyOperation& operation) {
  Signature signature;
  for (const Branch& branch : operation.branches) {
    signature.emplace_back(0, branch.compares_held, branch.all_compares_here, 0, "");
    for (const Compare* compare : branch.compares) {
      signature.emplace_back(1, static_cast<int>(compare->target), static_cast<int>(compare->relation), compare->number,
                             compare->value);
    }
    for (const Action& action : branch.actions) {
      signature.emplace_back(2, static_cast<int>(action.kind), action.value, action.leased, "");
    }
  }
  return signature;
}

struct Sighting {
  int64_t revision = 0;
  Time by{};  // somebody had seen it by then
};

// Unique values of operations without an answer -> where they were seen.
std::map<std::string, Sighting> sightings_of(const std::string& key, const std::vector<const Operation*>& operations) {
  std::map<std::string, int> writers;
  for (const Operation* operation : operations) {
    std::set<std::string> values;  // one operation may name it in both branches
    for (const auto* requests : {&operation->success, &operation->failure}) {
      for (const Request& request : *requests) {
        if (request.kind == Request::Kind::kPut && request.key == key) values.insert(request.value);
      }
    }
    for (const std::string& value : values) ++writers[value];
  }
  std::map<std::string, Sighting> sightings;
  for (const Operation* operation : operations) {
    for (const Answer& answer : operation->answers) {
      for (const KeyValue& kv : answer.kvs) {
        const auto found = writers.find(kv.value);
        if (kv.key != key || found == writers.end() || found->second != 1) continue;
        auto [at, is_new] = sightings.emplace(kv.value, Sighting{kv.mod_revision, operation->returned});
        if (!is_new) at->second.by = std::min(at->second.by, operation->returned);
      }
    }
  }
  return sightings;
}

enum class Truth : uint8_t { kNo, kYes, kMaybe };

template <class T>
Truth relate(const T& left, Compare::Relation relation, const T& right) {
  bool holds = false;
  switch (relation) {
    case Compare::Relation::kEqual:
      holds = left == right;
      break;
    case Compare::Relation::kNotEqual:
      holds = left != right;
      break;
    case Compare::Relation::kLess:
      holds = left < right;
      break;
    case Compare::Relation::kGreater:
      holds = left > right;
      break;
  }
  return holds ? Truth::kYes : Truth::kNo;
}

// As etcd: a key that is not there has no value, and 0 for every number.
Truth holds(const KeyHistory& history, const Compare& compare, const KeyState& state) {
  if (state.value == kAnyValue) return Truth::kMaybe;
  if (compare.target == Compare::Target::kValue) {
    if (!state.alive()) return Truth::kNo;
    if (state.value == kOtherValue) {  // differs from every value that is named anywhere
      if (compare.relation == Compare::Relation::kEqual) return Truth::kNo;
      return compare.relation == Compare::Relation::kNotEqual ? Truth::kYes : Truth::kMaybe;
    }
    return relate(history.values[static_cast<size_t>(state.value)], compare.relation, compare.value);
  }
  const int64_t number = compare.target == Compare::Target::kModRevision      ? state.mod
                         : compare.target == Compare::Target::kCreateRevision ? state.create
                                                                              : state.version;
  return number < 0 ? Truth::kMaybe : relate(number, compare.relation, compare.number);
}

bool learn(int64_t& number, int64_t told) {
  if (told == 0) return true;
  if (number < 0 && told >= -number) number = told;
  return number == told;
}

bool matches(const Seen& seen, KeyState& state) {
  if (state.value == kAnyValue) {
    state.value = seen.value;
    state.leased = seen.leased;
    const bool there = seen.value != kAbsent;
    state.create = there ? kAnyNumber : 0;
    state.mod = there ? kAnyNumber : 0;
    state.version = there ? kAnyNumber : 0;
  }
  if (seen.value != state.value) return false;
  if (seen.value == kAbsent) return true;
  state.leased |= seen.leased;
  state.floor = std::max(state.floor, seen.mod);
  return learn(state.mod, seen.mod) && learn(state.create, seen.create) && learn(state.version, seen.version);
}

// Can the key, by later writes, become what somebody saw? If it was created before, it is there, and younger.
bool may_lead_to(const KeyState& state, const Seen& later) {
  if (later.create == 0 || later.create > state.floor || state.value == kAnyValue) return true;
  if (!state.alive() || (state.create >= 0 ? state.create != later.create : later.create < -state.create)) return false;
  return later.version == 0 || state.version < later.version;
}

// False: somebody saw it otherwise.
bool put(const KeyHistory& history, const Action& action, int64_t revision, KeyState& state) {
  const bool any = state.value == kAnyValue;
  const int64_t at = revision != 0 ? revision : -(state.floor + 1);
  if (any) state.create = state.version = kAnyNumber;
  if (!any && !state.alive()) {
    state.create = at;
    state.version = 0;
  }
  if (state.version != kAnyNumber) ++state.version;
  state.value = action.value;
  state.leased = action.leased;
  state.mod = at;
  const auto told = revision != 0 ? history.told.find(revision) : history.told.end();
  if (told == history.told.end()) return true;
  return learn(state.create, told->second.create) && learn(state.version, told->second.version);
}

void erase(KeyState& state) {
  state = KeyState{.value = kAbsent, .leased = false, .create = 0, .mod = 0, .version = 0, .floor = state.floor};
}

bool compares_agree(const KeyHistory& history, const Branch& branch, const KeyState& state) {
  bool all_hold = true;
  for (const Compare* compare : branch.compares) {
    const Truth truth = holds(history, *compare, state);
    if (branch.compares_held && truth == Truth::kNo) return false;
    all_hold &= truth == Truth::kYes;
  }
  return branch.compares_held || !branch.all_compares_here || !all_hold;
}

bool run(const KeyHistory& history, const KeyOperation& operation, const Branch& branch, KeyState& state) {
  if (!may_come(history, operation, state)) return false;
  if (!compares_agree(history, branch, state)) return false;
  bool changed = false;
  for (const Action& action : branch.actions) {
    if (action.existed && state.value == kAnyValue && !*action.existed) erase(state);
    if (action.existed && state.value != kAnyValue && *action.existed != state.alive()) return false;
    if (action.seen && !matches(*action.seen, state)) return false;
    if (action.kind == Request::Kind::kPut) {
      if (!put(history, action, operation.revision, state)) return false;
      changed = true;
    } else if (action.kind == Request::Kind::kDelete) {
      changed |= state.value != kAbsent;
      erase(state);
    }
  }
  state.floor = std::max(state.floor + (changed && operation.revision == 0 ? 1 : 0), operation.revision);
  return true;
}

}  // namespace

KeyHistory project(const std::string& key, const std::vector<const Operation*>& operations) {
  KeyHistory history;
  history.key = key;
  std::vector<const Operation*> mine;
  for (const Operation* operation : operations) {
    if (operation->outcome == Outcome::kFailed || !touches(*operation, key)) continue;
    if (operation->outcome == Outcome::kUnknown && !may_write(*operation)) continue;
    mine.push_back(operation);
  }
  Values values(key, mine);
  const auto sightings = sightings_of(key, mine);
  std::map<Signature, uint32_t> kinds;
  for (const Operation* operation : mine) {
    KeyOperation one{.source = operation, .call = operation->call};
    if (operation->outcome == Outcome::kOk) {
      one.returned = operation->returned;
      one.revision = operation->revision;
      one.writes = wrote(*operation);
      one.branches.push_back(branch_of(key, *operation, operation->succeeded, values));
    } else {
      one.must = false;
      one.branches.push_back(branch_of(key, *operation, true, values));
      if (!operation->compares.empty() && !operation->failure.empty()) {
        one.branches.push_back(branch_of(key, *operation, false, values));
      }
      for (const Request& request : operation->success) {
        if (request.kind != Request::Kind::kPut || request.key != key) continue;
        const auto seen = sightings.find(request.value);
        if (seen == sightings.end() || puts(operation->failure, request)) continue;
        one.branches.resize(1);
        one.must = true;
        one.returned = seen->second.by;
        one.revision = seen->second.revision;
        one.writes = true;
      }
      one.kind = kinds.emplace(signature_of(one), static_cast<uint32_t>(kinds.size())).first->second;
    }
    history.operations.push_back(std::move(one));
  }
  std::stable_sort(history.operations.begin(), history.operations.end(),
                   [](const KeyOperation& a, const KeyOperation& b) { return a.call < b.call; });
  for (const Operation* operation : mine) {
    for (const Answer& answer : operation->answers) {
      for (const KeyValue& kv : answer.kvs) {
        if (kv.key == key && kv.mod_revision != 0) history.told.emplace(kv.mod_revision, seen_in(key, answer, values));
      }
    }
  }
  history.values = std::move(values.names());
  return history;
}

bool may_come(const KeyHistory& history, const KeyOperation& operation, const KeyState& state) {
  if (operation.revision != 0) {
    const bool late = operation.writes ? operation.revision <= state.floor : operation.revision < state.floor;
    if (late) return false;
  }
  if (operation.branches.size() != 1) return true;
  const std::vector<Action>& actions = operation.branches[0].actions;
  if (!actions.empty() && actions[0].seen && actions[0].seen->mod != 0) {
    const Seen& seen = *actions[0].seen;
    if (seen.mod > state.floor) return may_lead_to(state, seen);
    KeyState now = state;
    return matches(seen, now);
  }
  const auto told = operation.writes ? history.told.find(operation.revision) : history.told.end();
  return told == history.told.end() || may_lead_to(state, told->second);
}

void step(const KeyHistory& history, const KeyOperation& operation, const Branch& branch, const KeyState& state,
          std::vector<KeyState>& out) {
  KeyState next = state;
  if (run(history, operation, branch, next)) out.push_back(next);
  if (!state.leased || !state.alive()) return;
  next = state;  // or its lease ran out before this operation
  erase(next);
  ++next.floor;
  if (run(history, operation, branch, next)) out.push_back(next);
}

}  // namespace history
