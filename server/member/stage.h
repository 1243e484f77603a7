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

class Stage;

// While one is begun on a thread, what that thread wakes is woken at end(): an io thread that proposes for many clients
// in a row wakes the loop once for all of them, which then shares one sync among them.
class WakeBatch {
 public:
  void begin() { current() = this; }
  void end();

 private:
  friend class Stage;
  static WakeBatch*& current() {
    thread_local WakeBatch* batch = nullptr;
    return batch;
  }
  inline void add(const Stage& stage);

  static constexpr size_t kStagesMax = 8;  // of one member there are fewer
  const Stage* woken_[kStagesMax] = {};
};

class Stage {
 public:
  virtual ~Stage() = default;
  // Does a bounded piece of what is at hand. Returns when it wants to be run again without being woken.
  virtual Time step() = 0;
  virtual const char* name() const = 0;  // 15 characters at most
  // What every write, and leadership, wait for: goes before readers where the system lets a thread do so.
  virtual bool is_urgent() const { return false; }

  // Set before anything runs. Any thread may wake.
  void set_waker(std::function<void()> waker) { waker_ = std::move(waker); }
  void wake() const {
    if (WakeBatch* batch = WakeBatch::current()) return batch->add(*this);
    waker_();
  }

 private:
  friend class WakeBatch;
  std::function<void()> waker_ = [] {};
};

inline void WakeBatch::add(const Stage& stage) {
  for (const Stage*& slot : woken_) {
    if (slot == &stage) return;
    if (slot == nullptr) {
      slot = &stage;
      return;
    }
  }
  stage.waker_();
}

inline void WakeBatch::end() {
  current() = nullptr;
  for (const Stage*& stage : woken_) {
    if (stage != nullptr) std::exchange(stage, nullptr)->waker_();
  }
}

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
    if (into.capacity() * sizeof(Item) > kBytesKept) into.shrink_to_fit();  // after a flood
    MutexLock lock(mutex_);
    items_.swap(into);
  }

 private:
  static constexpr size_t kBytesKept = 1 << 20;

  Stage& owner_;
  const size_t items_max_;
  Mutex mutex_;
  std::vector<Item> items_ GUARDED_BY(mutex_);
};

}  // namespace member
