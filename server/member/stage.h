// A stage is an object with an inbox and a step(). In production a thread runs it (stage_thread.h); in the simulator a
// seeded scheduler does, in one thread, in any interleaving of steps.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "base/thread.h"

namespace member {

using Time = std::chrono::nanoseconds;           // of Clock::monotonic()
inline constexpr Time kNow = Time::min();        // there is more to do
inline constexpr Time kWhenWoken = Time::max();  // nothing to do until woken

class Stage {
 public:
  virtual ~Stage() = default;
  // Does a bounded piece of what is at hand. Returns when it wants to be run again without being woken.
  virtual Time step() = 0;
  virtual const char* name() const = 0;  // 15 characters at most

  // Set before anything runs. Any thread may wake.
  void set_waker(std::function<void()> waker) { waker_ = std::move(waker); }
  void wake() const { waker_(); }

 private:
  std::function<void()> waker_ = [] {};
};

// A bounded queue between threads: push wakes the owner on empty -> non-empty, the owner drains all at once.
template <class Item>
class Inbox {
 public:
  Inbox(Stage& owner, size_t items_max) : owner_(owner), items_max_(items_max) {}

  // False: full, the item is untouched.
  bool push(Item&& item) {
    bool was_empty = false;
    {
      MutexLock lock(mutex_);
      if (items_.size() >= items_max_) return false;
      was_empty = items_.empty();
      items_.push_back(std::move(item));
    }
    if (was_empty) owner_.wake();
    return true;
  }
  void drain(std::vector<Item>& into) {
    into.clear();
    MutexLock lock(mutex_);
    items_.swap(into);
  }

 private:
  Stage& owner_;
  const size_t items_max_;
  Mutex mutex_;
  std::vector<Item> items_ GUARDED_BY(mutex_);
};

}  // namespace member
