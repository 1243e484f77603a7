#include "history/linearizability.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "history/key_model.h"

namespace history {
namespace {

uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

// 128 bits name a set of operations, and with a state what was tried: two different ones are taken for the same once in
// 10^26 histories of a million states.
struct Name {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Name&, const Name&) = default;
};
struct NameHash {
  size_t operator()(const Name& name) const { return name.low; }
};

Name name_of(size_t operation) {
  return {mixed(2 * operation + 0x9e3779b97f4a7c15ULL), mixed(2 * operation + 0xd1b54a32d192ed04ULL)};
}

Name with(Name name, const KeyState& state) {
  for (const int64_t part :
       {static_cast<int64_t>(state.value) * 2 + state.leased, state.create, state.mod, state.version, state.floor}) {
    name.low = mixed(name.low * 3 + static_cast<uint64_t>(part) + 0x9e3779b97f4a7c15ULL);
    name.high = mixed(name.high * 5 + static_cast<uint64_t>(part) + 0xa0761d6478bd642fULL);
  }
  return name;
}

// The operations that are not placed yet, in the order of their calls.
class Waiting {
 public:
  explicit Waiting(size_t size) : next_(size + 1), previous_(size + 1) {
    for (size_t i = 0; i <= size; ++i) {
      next_[i] = i + 1 <= size ? i + 1 : 0;
      previous_[i] = i > 0 ? i - 1 : size;
    }
  }
  // Places are operation + 1; 0 is the end.
  size_t first() const { return next_[0]; }
  size_t after(size_t place) const { return next_[place]; }
  void remove(size_t place) {
    next_[previous_[place]] = next_[place];
    previous_[next_[place]] = previous_[place];
  }
  void put_back(size_t place) {  // in the reverse order of the removals
    next_[previous_[place]] = place;
    previous_[next_[place]] = place;
  }

 private:
  std::vector<size_t> next_;
  std::vector<size_t> previous_;
};

class Search {
 public:
  Search(const KeyHistory& history, uint64_t states_max)
      : history_(history), states_max_(states_max), waiting_(history.operations.size()) {
    for (const KeyOperation& operation : history.operations) {
      must_left_ += operation.must;
      if (operation.kind >= kind_seen_.size()) kind_seen_.resize(operation.kind + 1);
    }
  }

  Verdict::Kind run(const KeyState& start) {
    frames_.push_back(expand(start));
    while (must_left_ > 0) {
      Frame& frame = frames_.back();
      if (!next_choice(frame)) {
        frames_.pop_back();
        if (frames_.empty()) return Verdict::Kind::kViolation;
        take_back(frames_.back().placed);
        continue;
      }
      place(frame.placed);
      const KeyState state = frame.states[frame.state++];
      if (!tried_.insert(with(placed_, state)).second) {
        take_back(frame.placed);
        continue;
      }
      if (tried_.size() > states_max_) return Verdict::Kind::kUndecided;
      frames_.push_back(expand(state));
    }
    return Verdict::Kind::kOk;
  }

 private:
  // What may come next after `before`, the likeliest first, and how far that was tried.
  struct Frame {
    KeyState before = {};
    std::vector<size_t> operations = {};
    size_t operation = 0;
    size_t placed = 0;
    std::vector<KeyState> states = {};  // that operations[operation - 1] leads to
    size_t state = 0;
  };

  const KeyOperation& at(size_t operation) const { return history_.operations[operation]; }

  void place(size_t operation) {
    waiting_.remove(operation + 1);
    const Name name = name_of(operation);
    placed_.low ^= name.low;
    placed_.high ^= name.high;
    must_left_ -= at(operation).must;
  }
  void take_back(size_t operation) {
    waiting_.put_back(operation + 1);
    const Name name = name_of(operation);
    placed_.low ^= name.low;
    placed_.high ^= name.high;
    must_left_ += at(operation).must;
  }

  // False: nothing is left.
  bool next_choice(Frame& frame) {
    while (frame.state == frame.states.size()) {
      if (frame.operation == frame.operations.size()) return false;
      frame.placed = frame.operations[frame.operation++];
      const KeyOperation& operation = at(frame.placed);
      frame.state = 0;
      frame.states.clear();
      for (const Branch& branch : operation.branches) step(history_, operation, branch, frame.before, frame.states);
      // What need not have happened and changes nothing may as well not have.
      if (!operation.must) std::erase(frame.states, frame.before);
    }
    return true;
  }

  Frame expand(const KeyState& state) {
    Frame frame{.before = state};
    Time first_return = kNever;
    ++expansion_;
    for (size_t place = waiting_.first(); place != 0; place = waiting_.after(place)) {
      const KeyOperation& operation = at(place - 1);
      if (operation.call > first_return) break;
      if (operation.must) {
        first_return = std::min(first_return, operation.returned);
        if (!may_come(history_, operation, state)) return {};  // but it has to come some time
      } else if (std::exchange(kind_seen_[operation.kind], expansion_) == expansion_) {
        continue;
      }
      frame.operations.push_back(place - 1);
    }
    std::stable_sort(frame.operations.begin(), frame.operations.end(),
                     [this](size_t a, size_t b) { return rank(a) < rank(b); });
    return frame;
  }

  std::tuple<bool, int64_t, bool, Time> rank(size_t operation) const {
    const KeyOperation& one = at(operation);
    return {!one.must, one.revision, !one.writes, one.returned};
  }

  const KeyHistory& history_;
  const uint64_t states_max_;
  Waiting waiting_;
  Name placed_;
  size_t must_left_ = 0;
  std::vector<Frame> frames_;
  uint64_t expansion_ = 0;
  std::vector<uint64_t> kind_seen_;  // in which expansion
  std::unordered_set<Name, NameHash> tried_;
};

Verdict::Kind search(const KeyHistory& history, const KeyState& start, uint64_t states_max) {
  return Search(history, states_max).run(start);
}

// What was known at `at`: later answers are not there yet.
KeyHistory until(const KeyHistory& history, Time at) {
  KeyHistory early{history.key, {}, history.values, history.told};
  for (const KeyOperation& operation : history.operations) {
    if (operation.call > at) continue;
    KeyOperation& one = early.operations.emplace_back(operation);
    if (operation.returned <= at || !operation.must) continue;
    if (!may_write(*operation.source)) {
      early.operations.pop_back();
      continue;
    }
    one = KeyOperation{.source = operation.source, .call = operation.call, .must = false};
    one.branches = operation.branches;
    for (Branch& branch : one.branches) {
      for (Action& action : branch.actions) action.seen.reset(), action.existed.reset();
    }
  }
  // Each for itself: what became open just now has no common name.
  for (size_t i = 0; i < early.operations.size(); ++i) early.operations[i].kind = static_cast<uint32_t>(i);
  return early;
}

// Without what was over before `at`; what overlaps it may have come before or after. Starts from any state.
KeyHistory from(const KeyHistory& history, Time at) {
  KeyHistory late{history.key, {}, history.values, history.told};
  for (const KeyOperation& operation : history.operations) {
    if (operation.must && operation.returned < at) continue;
    if (!operation.must || operation.call >= at) {
      late.operations.push_back(operation);
      continue;
    }
    if (!may_write(*operation.source)) continue;
    KeyOperation& one = late.operations.emplace_back(operation);
    one.must = false;
    one.returned = kNever;
    for (Branch& branch : one.branches) {
      for (Action& action : branch.actions) action.seen.reset(), action.existed.reset();
    }
  }
  for (size_t i = 0; i < late.operations.size(); ++i) late.operations[i].kind = static_cast<uint32_t>(i);
  return late;
}

constexpr uint64_t kShrinkStatesMax = 20'000;
constexpr size_t kReadsDroppedMax = 200;

// The first index in [0, size) for which `fails` (then it fails for all that follow); size - 1 is known to.
template <class Fails>
size_t first_failing(size_t size, Fails fails) {
  size_t low = 0;
  size_t high = size - 1;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (fails(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

KeyHistory shrunk(KeyHistory history) {
  const auto fails = [](const KeyHistory& part, const KeyState& start) {
    return search(part, start, kShrinkStatesMax) == Verdict::Kind::kViolation;
  };
  std::vector<Time> times;
  for (const KeyOperation& operation : history.operations) {
    if (operation.must && operation.returned != kNever) times.push_back(operation.returned);
  }
  std::sort(times.begin(), times.end());
  if (times.empty()) return history;
  const size_t last = first_failing(times.size(), [&](size_t i) { return fails(until(history, times[i]), {}); });
  if (KeyHistory part = until(history, times[last]); fails(part, {})) history = std::move(part);

  // From behind: the latest start from which it still fails, whatever was there before.
  times.clear();
  for (const KeyOperation& operation : history.operations) times.push_back(operation.call);
  std::sort(times.begin(), times.end(), std::greater<>());
  KeyState start;
  const KeyState any{
      .value = kAnyValue, .leased = false, .create = kAnyNumber, .mod = kAnyNumber, .version = kAnyNumber};
  const size_t first = first_failing(times.size(), [&](size_t i) { return fails(from(history, times[i]), any); });
  if (KeyHistory part = from(history, times[first]); fails(part, any)) {
    history = std::move(part);
    start = any;
  }
  // A read more or less changes nothing but what has to be explained.
  size_t dropped = 0;
  for (size_t i = history.operations.size(); i-- > 0 && dropped < kReadsDroppedMax;) {
    const KeyOperation& operation = history.operations[i];
    if (!operation.must || operation.writes || operation.source->outcome != Outcome::kOk) continue;
    ++dropped;
    KeyHistory part = history;
    part.operations.erase(part.operations.begin() + static_cast<std::ptrdiff_t>(i));
    if (fails(part, start)) history = std::move(part);
  }
  return history;
}

constexpr size_t kLinesMax = 40;

std::string text_of(const KeyHistory& history) {
  std::string text = "no order explains these operations on key " + history.key + ":\n";
  size_t lines = 0;
  for (const KeyOperation& operation : history.operations) {
    if (++lines > kLinesMax) {
      return text + "  .. and " + std::to_string(history.operations.size() - kLinesMax) + " more\n";
    }
    text += "  " + describe(*operation.source) + "\n";
  }
  return text;
}

// The keys of the history, each with the operations that may touch it: those with a range belong to all.
std::map<std::string, std::vector<const Operation*>> by_key(const std::vector<const Operation*>& operations) {
  std::map<std::string, std::vector<const Operation*>> keys;
  std::vector<const Operation*> ranges;
  for (const Operation* operation : operations) {
    std::set<std::string> named;
    bool has_range = false;
    for (const Compare& compare : operation->compares) named.insert(compare.key);
    for (const auto* requests : {&operation->success, &operation->failure}) {
      for (const Request& request : *requests) {
        has_range |= !request.end.empty();
        if (request.end.empty()) named.insert(request.key);
      }
    }
    for (const Answer& answer : operation->answers) {
      for (const KeyValue& kv : answer.kvs) named.insert(kv.key);
    }
    if (has_range) ranges.push_back(operation);
    for (const std::string& key : named) {
      auto& list = keys[key];
      if (!has_range) list.push_back(operation);
    }
  }
  for (auto& [key, list] : keys) list.insert(list.end(), ranges.begin(), ranges.end());
  return keys;
}

bool checkable(const Operation& operation) {
  const auto old = [](const Request& request) { return request.kind == Request::Kind::kGet && request.revision != 0; };
  const std::vector<Request>& taken = operation.taken();
  const bool only_old =
      operation.outcome == Outcome::kOk && !taken.empty() && std::all_of(taken.begin(), taken.end(), old);
  return !operation.serializable && operation.outcome != Outcome::kFailed && !only_old;
}

}  // namespace

Verdict check_linearizable(const std::vector<Operation>& operations, const LinearizabilityLimits& limits) {
  std::vector<const Operation*> checked;
  for (const Operation& operation : operations) {
    if (checkable(operation)) checked.push_back(&operation);
  }
  Verdict worst;
  for (const auto& [key, touching] : by_key(checked)) {
    const KeyHistory history = project(key, touching);
    switch (search(history, {}, limits.states_max)) {
      case Verdict::Kind::kOk:
        break;
      case Verdict::Kind::kViolation:
        return violation(text_of(limits.shrink ? shrunk(history) : history));
      case Verdict::Kind::kUndecided:
        worst = {Verdict::Kind::kUndecided,
                 "key " + key + ": more than " + std::to_string(limits.states_max) + " states have to be looked at"};
    }
  }
  return worst;
}

}  // namespace history
