#include "history/revision_state.h"

#include <algorithm>
#include <set>

namespace history {
namespace {

template <class T>
bool relate(const T& left, Compare::Relation relation, const T& right) {
  switch (relation) {
    case Compare::Relation::kEqual:
      return left == right;
    case Compare::Relation::kNotEqual:
      return left != right;
    case Compare::Relation::kLess:
      return left < right;
    case Compare::Relation::kGreater:
      return left > right;
  }
  return false;
}

bool differs(int64_t told, int64_t expected) { return told != 0 && told != expected; }

}  // namespace

RevisionState::Fault RevisionState::against(const Operation& operation, const std::string& what, const Known* known) {
  std::string text = what + ":\n";
  if (known != nullptr) {
    text += "  expected: " + std::string(known->alive ? describe(known->kv) : known->kv.key + " is not there") + "\n";
    if (known->writer != nullptr) text += "  " + describe(*known->writer) + "\n";
  }
  return text + "  " + describe(operation) + "\n";
}

RevisionState::Range RevisionState::range(const Request& request) {
  if (request.end.empty()) {
    const auto found = keys_.find(request.key);
    return found == keys_.end() ? Range{found, found} : Range{found, std::next(found)};
  }
  const auto begin = keys_.lower_bound(request.key);
  if (request.end == std::string(1, '\0')) return {begin, keys_.end()};
  return {begin, request.end <= request.key ? begin : keys_.lower_bound(request.end)};
}

const RevisionState::Known* RevisionState::find(const std::string& key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : &found->second;
}

bool RevisionState::open_may_write(const std::string& key) const {
  const auto [cached, is_new] = open_cache_.try_emplace(key, false, false);
  if (is_new) {
    for (const Operation* operation : open_) {
      for (const auto* requests : {&operation->success, &operation->failure}) {
        for (const Request& request : *requests) {
          if (request.kind == Request::Kind::kGet || !in_range(key, request.key, request.end)) continue;
          cached->second.first = true;
          cached->second.second |= request.kind == Request::Kind::kDelete;
        }
      }
    }
  }
  return cached->second.first;
}

bool RevisionState::open_may_delete(const std::string& key) const {
  return open_may_write(key) && open_cache_.at(key).second;
}

bool RevisionState::unsure(const std::string& key, const Known* known) const {
  if (exact_) return false;
  return open_may_write(key) || (known != nullptr && known->kv.lease != 0);
}

RevisionState::Fault RevisionState::check_compares(const Operation& operation, bool succeeded) const {
  bool all_hold = true;
  bool sure = true;
  const Known* last = nullptr;
  for (const Compare& compare : operation.compares) {
    const Known* known = find(compare.key);
    if (unsure(compare.key, known)) {
      sure = false;
      continue;
    }
    last = known;
    const bool alive = known != nullptr && known->alive;
    bool holds = false;
    if (compare.target == Compare::Target::kValue) {
      holds = alive && relate(known->kv.value, compare.relation, compare.value);
    } else {
      if (alive && !known->numbers && compare.target != Compare::Target::kModRevision) {
        sure = false;
        continue;
      }
      const int64_t number = !alive                                               ? 0
                             : compare.target == Compare::Target::kModRevision    ? known->kv.mod_revision
                             : compare.target == Compare::Target::kCreateRevision ? known->kv.create_revision
                                                                                  : known->kv.version;
      holds = relate(number, compare.relation, compare.number);
    }
    if (succeeded && !holds) return against(operation, "a compare held that should not", known);
    all_hold &= holds;
  }
  if (!succeeded && sure && all_hold) return against(operation, "a compare did not hold that should", last);
  return std::nullopt;
}

// A key that an answer has.
RevisionState::Fault RevisionState::check_seen(const Operation& operation, const KeyValue& kv) {
  const auto found = keys_.find(kv.key);
  if (found == keys_.end()) {
    if (kv.mod_revision == 0 && unsure(kv.key, nullptr)) return std::nullopt;
    return against(operation, "key " + kv.key + " should not be there yet", nullptr);
  }
  Known& known = found->second;
  if (kv.mod_revision == 0) {  // the client told values only
    if (known.alive && known.kv.value == kv.value) return std::nullopt;
    if (unsure(kv.key, &known)) return std::nullopt;
    return against(operation, "another value of " + kv.key, &known);
  }
  if (!known.alive || known.kv.mod_revision != kv.mod_revision) {
    const bool old = kv.mod_revision < known.kv.mod_revision || (!known.alive && !known.vanished);
    return against(operation,
                   known.vanished && !old ? "key " + kv.key + " is back without a write"
                   : old                  ? "an old state of key " + kv.key
                                          : "key " + kv.key + " from a later revision",
                   &known);
  }
  if (!known.numbers) {
    known.kv.create_revision = kv.create_revision;
    known.kv.version = kv.version;
    known.numbers = kv.create_revision != 0 && kv.version != 0;
  }
  if (kv.value != known.kv.value || differs(kv.create_revision, known.kv.create_revision) ||
      differs(kv.version, known.kv.version) || kv.lease != known.kv.lease) {
    return against(operation, "key " + kv.key + " differs", &known);
  }
  return std::nullopt;
}

// A key that an answer lacks.
RevisionState::Fault RevisionState::check_absent(const Operation& operation, const std::string& key, Known& known) {
  if (!known.alive) return std::nullopt;
  if (exact_ || (known.kv.lease == 0 && !open_may_delete(key))) {
    return against(operation, "key " + key + " is missing", &known);
  }
  known.alive = false;
  known.vanished = true;
  return std::nullopt;
}

RevisionState::Fault RevisionState::check_content(const Operation& operation, const Request& request,
                                                  const Answer& answer) {
  std::set<std::string> seen;
  for (const KeyValue& kv : answer.kvs) {
    seen.insert(kv.key);
    if (!in_range(kv.key, request.key, request.end)) {
      return against(operation, "key " + kv.key + " was not asked for", nullptr);
    }
    if (Fault fault = check_seen(operation, kv)) return fault;
  }
  const Range all = range(request);
  for (auto it = all.begin; it != all.end; ++it) {
    if (seen.contains(it->first)) continue;
    if (Fault fault = check_absent(operation, it->first, it->second)) return fault;
  }
  return std::nullopt;
}

RevisionState::Fault RevisionState::read(const Operation& operation) {
  if (Fault fault = check_compares(operation, operation.succeeded)) return fault;
  for (size_t i = 0; i < operation.taken().size() && i < operation.answers.size(); ++i) {
    const Request& request = operation.taken()[i];
    if (request.revision != 0) continue;
    if (request.kind == Request::Kind::kDelete) {  // found nothing
      if (Fault fault = check_content(operation, request, {})) return fault;
    } else if (Fault fault = check_content(operation, request, operation.answers[i])) {
      return fault;
    }
  }
  return std::nullopt;
}

RevisionState::Fault RevisionState::read_old(const Operation& operation, size_t request) {
  return check_content(operation, operation.taken()[request], operation.answers[request]);
}

RevisionState::Fault RevisionState::run_put(const Operation& operation, const Request& request, const Answer* answer,
                                            int64_t revision) {
  if (answer != nullptr && request.previous) {
    if (Fault fault = check_content(operation, {.key = request.key}, *answer)) return fault;
  }
  Known& known = keys_[request.key];
  const bool sure = !unsure(request.key, &known);
  const bool was_alive = known.alive;
  known.numbers = sure && (known.numbers || !was_alive);
  if (!was_alive) known.kv.create_revision = revision;
  known.kv.version = was_alive ? known.kv.version + 1 : 1;
  known.kv = {request.key, request.value, known.kv.create_revision, revision, known.kv.version, request.lease};
  known.alive = true;
  known.vanished = false;
  known.writer = &operation;
  effect_.push_back({false, known.kv});
  return std::nullopt;
}

RevisionState::Fault RevisionState::run_delete(const Operation& operation, const Request& request, const Answer* answer,
                                               int64_t revision) {
  if (answer != nullptr && request.previous) {
    if (Fault fault = check_content(operation, request, *answer)) return fault;
  }
  int64_t deleted = 0;
  bool sure = true;
  const Range all = range(request);
  for (auto it = all.begin; it != all.end; ++it) {
    Known& known = it->second;
    sure &= !unsure(it->first, &known);
    if (!known.alive) continue;
    ++deleted;
    known.alive = false;
    known.vanished = false;
    known.kv.mod_revision = revision;
    known.writer = &operation;
    effect_.push_back({true, {.key = it->first, .mod_revision = revision}});
  }
  if (answer == nullptr || deleted == answer->deleted) return std::nullopt;
  if (!sure || (!exact_ && !open_.empty() && !request.end.empty())) return std::nullopt;
  return against(operation, "should have deleted " + std::to_string(deleted), nullptr);
}

RevisionState::Fault RevisionState::run(const Operation& operation, bool succeeded, int64_t revision) {
  if (Fault fault = check_compares(operation, succeeded)) return fault;
  const auto& requests = succeeded ? operation.success : operation.failure;
  const bool answered = operation.outcome == Outcome::kOk;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    const Answer* answer = answered && i < operation.answers.size() ? &operation.answers[i] : nullptr;
    Fault fault;
    if (request.kind == Request::Kind::kPut) {
      fault = run_put(operation, request, answer, revision);
    } else if (request.kind == Request::Kind::kDelete) {
      fault = run_delete(operation, request, answer, revision);
    } else if (answer != nullptr && request.revision == 0) {
      fault = check_content(operation, request, *answer);
    }
    if (fault) return fault;
  }
  return std::nullopt;
}

RevisionState::Fault RevisionState::write(int64_t revision, const Written& written, const std::vector<Event>* events) {
  effect_.clear();
  if (Fault fault = run(*written.operation, written.succeeded, revision)) return fault;
  if (!exact_) return std::nullopt;
  std::vector<Event> expected = effect_;
  std::vector<Event> happened = events != nullptr ? *events : std::vector<Event>{};
  const auto by_key = [](const Event& a, const Event& b) { return a.kv.key < b.kv.key; };
  std::sort(expected.begin(), expected.end(), by_key);
  std::sort(happened.begin(), happened.end(), by_key);
  if (expected == happened) return std::nullopt;
  std::string text = "revision " + std::to_string(revision) + " is not what its operation does:\n  " +
                     describe(*written.operation) + "\n";
  for (const Event& event : expected) text += "  expected: " + describe(event) + "\n";
  for (const Event& event : happened) text += "  happened: " + describe(event) + "\n";
  return text;
}

void RevisionState::put_unowned(const KeyValue& kv) {
  Known& known = keys_[kv.key];
  known = {.kv = kv, .alive = true, .numbers = kv.create_revision != 0 && kv.version != 0};
}

RevisionState::Fault RevisionState::apply_events(const std::vector<Event>& events, bool owned) {
  for (const Event& event : events) {
    Known& known = keys_[event.kv.key];
    if (!owned && event.is_delete && known.kv.lease == 0 && !open_may_delete(event.kv.key)) {
      return "nobody deleted this key:\n  " + describe(known.kv) + "\n  " + describe(event) + "\n";
    }
    const bool told_already = known.writer != nullptr && known.kv.mod_revision == event.kv.mod_revision;
    if (!told_already) known.writer = nullptr;
    known.kv = event.kv;
    known.alive = !event.is_delete;
    known.vanished = false;
    known.numbers = true;
  }
  return std::nullopt;
}

}  // namespace history
