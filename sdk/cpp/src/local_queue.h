// The threads of one session that want the same name: one at a time, first come first served. The server cannot tell
// them apart, since their key holds the lease.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>

#include "clock.h"

namespace conclave::inline v1::internal {

class LocalQueue {
 public:
  using Ticket = std::uint64_t;

  Ticket enter(const std::string& name) {
    std::scoped_lock lock(mutex_);
    names_[name].push_back(++last_);
    return last_;
  }

  // 0 if somebody is there already.
  Ticket try_enter(const std::string& name) {
    std::scoped_lock lock(mutex_);
    if (names_.contains(name)) return 0;
    names_[name].push_back(++last_);
    return last_;
  }

  // Until it is this ticket's turn; false if the time or `stop` ended the wait (leave() is still due).
  bool wait(const std::string& name, Ticket ticket, TimePoint deadline, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const auto turn = [&] { return names_.at(name).front() == ticket; };
    if (deadline == kNever) return turn_.wait(lock, stop, turn);
    return turn_.wait_until(lock, stop, deadline, turn);
  }

  void leave(const std::string& name, Ticket ticket) {
    std::scoped_lock lock(mutex_);
    const auto it = names_.find(name);
    if (it == names_.end()) return;
    std::erase(it->second, ticket);
    if (it->second.empty()) names_.erase(it);
    turn_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any turn_;
  std::map<std::string, std::deque<Ticket>> names_;
  Ticket last_ = 0;
};

}  // namespace conclave::inline v1::internal
