// Runs one stage in a thread of its own.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/world.h"
#include "member/stage.h"

namespace member {

class StageThread {
 public:
  StageThread(Stage& stage, Clock& clock);
  ~StageThread();  // stop()
  void start();
  void stop();  // after the step that is running; joins

 private:
  void run();
  void wake();
  void wait(Time until);

  Stage& stage_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable condition_;
  bool woken_ = false;     // under mutex_
  bool stopping_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace member
