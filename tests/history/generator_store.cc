#include "history/generator_store.h"

#include <algorithm>

namespace history {

bool GeneratorStore::holds(const Compare& compare) const {
  const auto found = state_.find(compare.key);
  if (compare.target == Compare::Target::kValue) return found != state_.end() && found->second.value == compare.value;
  return (found == state_.end() ? 0 : found->second.mod_revision) == compare.number;
}

Answer GeneratorStore::get(const State& state, const Request& request) const {
  Answer answer;
  for (const auto& [key, kv] : state) {
    if (in_range(key, request.key, request.end)) answer.kvs.push_back(kv);
  }
  return answer;
}

GeneratorStore::State GeneratorStore::state_at(int64_t revision) const {
  State state;
  for (auto it = events_.begin(); it != events_.end() && it->first <= revision; ++it) {
    for (const Event& event : it->second) {
      if (event.is_delete) {
        state.erase(event.kv.key);
      } else {
        state[event.kv.key] = event.kv;
      }
    }
  }
  return state;
}

void GeneratorStore::erase(const std::string& key, std::vector<Event>& events) {
  state_.erase(key);
  events.push_back({true, {.key = key, .mod_revision = revision_ + 1}});
}

void GeneratorStore::execute(Operation& operation, const std::vector<Request>& requests) {
  std::vector<Event> events;
  operation.answers.clear();
  for (const Request& request : requests) {
    Answer& answer = operation.answers.emplace_back();
    if (request.kind == Request::Kind::kGet) {
      answer = get(request.revision != 0 ? state_at(request.revision) : state_, request);
      continue;
    }
    const Answer before = get(state_, request);
    if (request.previous) answer.kvs = before.kvs;
    if (request.kind == Request::Kind::kDelete) {
      for (const KeyValue& kv : before.kvs) erase(kv.key, events);
      answer.deleted = static_cast<int64_t>(before.kvs.size());
      continue;
    }
    KeyValue kv{request.key, request.value, revision_ + 1, revision_ + 1, 1, request.lease};
    if (!before.kvs.empty()) {
      kv.create_revision = before.kvs[0].create_revision;
      kv.version = before.kvs[0].version + 1;
    }
    state_[kv.key] = kv;
    events.push_back({false, kv});
  }
  if (!events.empty()) events_[++revision_] = std::move(events);
  operation.revision = revision_;
}

void GeneratorStore::run(Operation& operation) {
  operation.succeeded = std::all_of(operation.compares.begin(), operation.compares.end(),
                                    [this](const Compare& compare) { return holds(compare); });
  execute(operation, operation.taken());
}

void GeneratorStore::read_at(Operation& operation, int64_t revision) {
  const State state = state_at(revision);
  operation.answers.clear();
  for (const Request& request : operation.success) operation.answers.push_back(get(state, request));
  operation.revision = revision;
}

void GeneratorStore::expire_one(uint64_t random) {
  const int64_t lease = 1 + static_cast<int64_t>(random % 5);
  std::vector<std::string> keys;
  for (const auto& [key, kv] : state_) {
    if (kv.lease == lease) keys.push_back(key);
  }
  if (keys.empty()) return;
  std::vector<Event> events;
  for (const std::string& key : keys) erase(key, events);
  events_[++revision_] = std::move(events);
}

bool GeneratorStore::run_with(Bug bug, Operation& operation) {
  const bool plain = operation.compares.empty();
  const Request::Kind kind = operation.success[0].kind;
  const bool reads =
      plain && operation.success.size() == 1 && kind == Request::Kind::kGet && operation.success[0].revision == 0;
  const State before = state_;
  switch (bug) {
    case Bug::kLostWrite: {
      if (!plain || kind != Request::Kind::kPut) return false;
      run(operation);
      state_ = before;  // gone without a trace, but for the revision
      events_.erase(revision_);
      return true;
    }
    case Bug::kStaleRead:
    case Bug::kStaleContent: {
      if (!reads || revision_ < 20) return false;
      const int64_t at = revision_ - 12;
      const State old = state_at(at);
      if (get(old, operation.success[0]).kvs == get(state_, operation.success[0]).kvs) return false;
      read_at(operation, at);
      if (bug == Bug::kStaleContent) operation.revision = revision_;
      return true;
    }
    case Bug::kTwice: {
      if (!plain || kind != Request::Kind::kPut) return false;
      run(operation);
      Operation again = operation;
      run(again);
      return true;
    }
    case Bug::kHalfTransaction: {
      if (!plain || operation.success.size() < 3) return false;
      const std::string lost = operation.success[1].key;
      run(operation);
      if (before.contains(lost)) {
        state_[lost] = before.at(lost);
      } else {
        state_.erase(lost);
      }
      std::erase_if(events_[revision_], [&](const Event& event) { return event.kv.key == lost; });
      return true;
    }
    case Bug::kCompareIgnored:
      if (plain) return false;
      operation.succeeded = !holds(operation.compares[0]);
      execute(operation, operation.taken());
      return true;
    case Bug::kWrongPrevious:
      if (!plain || kind != Request::Kind::kPut || !operation.success[0].previous) return false;
      run(operation);
      if (operation.answers[0].kvs.empty()) {
        operation.answers[0].kvs.push_back({operation.success[0].key, "v1", 2, 2, 1, 0});
      } else {
        operation.answers[0].kvs.clear();
      }
      return true;
    case Bug::kMixedRange: {
      if (!reads || operation.success[0].end.empty() || revision_ < 20) return false;
      run(operation);
      auto& kvs = operation.answers[0].kvs;
      const State old = state_at(revision_ - 12);
      for (KeyValue& kv : kvs) {
        const auto earlier = old.find(kv.key);
        if (earlier == old.end() || earlier->second == kv) continue;
        kv = earlier->second;
        return true;
      }
      return false;
    }
    case Bug::kNone:
    case Bug::kRefusedHappens:
    case Bug::kGoesBack:
      return false;
  }
  return false;
}

}  // namespace history
