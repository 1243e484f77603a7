// The timer thread of a client. Runs what is posted and what is due, one at a time. Never the user's code, never
// anything that blocks. It follows CLOCK_BOOTTIME, so what became due while the machine slept runs right after it
// wakes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "clock.h"

namespace conclave::inline v1::internal {

class Loop {
 public:
  using Task = std::function<void()>;
  using TimerId = std::uint64_t;  // never 0

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // From any thread. After stop() they do nothing (the task is destroyed unrun).
  void post(Task task);
  TimerId at(TimePoint when, Task task);
  // True if the task will not run. False: it has run, is running, or there is none.
  bool cancel(TimerId id);

  // What has not run yet is destroyed. Waits for a running task, except from inside it.
  void stop();
  bool on_thread() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which may outlive this object
  std::thread thread_;
};

}  // namespace conclave::inline v1::internal
