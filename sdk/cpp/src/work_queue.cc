#include "work_queue.h"

namespace conclave::inline v1::internal {

void WorkQueue::add(const std::string& key) {
  State& state = keys_[key];
  if (state.due != kNever) {
    waiting_.erase({state.due, key});
    state.due = kNever;
  }
  if (state.queued) return;
  state.queued = true;
  if (!state.running) ready_.push_back(key);
}

std::optional<std::string> WorkQueue::take(TimePoint now) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    const std::string due = waiting_.begin()->second;
    add(due);
  }
  if (ready_.empty()) return std::nullopt;
  std::string key = std::move(ready_.front());
  ready_.pop_front();
  State& state = keys_[key];
  state.queued = false;
  state.running = true;
  return key;
}

void WorkQueue::done(const std::string& key, TimePoint again) {
  const auto found = keys_.find(key);
  if (found == keys_.end() || !found->second.running) return;
  State& state = found->second;
  state.running = false;
  if (state.queued) {
    ready_.push_back(key);
  } else if (again != kNever) {
    state.due = again;
    waiting_.emplace(again, key);
  } else {
    keys_.erase(found);
  }
}

TimePoint WorkQueue::next_due() const { return waiting_.empty() ? kNever : waiting_.begin()->first; }

}  // namespace conclave::inline v1::internal
