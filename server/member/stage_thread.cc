#include "member/stage_thread.h"

#include <algorithm>

#include "base/thread.h"

namespace member {

StageThread::StageThread(Stage& stage, Clock& clock) : stage_(stage), clock_(clock) {
  stage_.set_waker([this] { wake(); });
}

StageThread::~StageThread() { stop(); }

void StageThread::start() {
  thread_ = std::thread([this] { run(); });
}

void StageThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  condition_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void StageThread::wake() {
  {
    const std::lock_guard lock(mutex_);
    if (woken_) return;
    woken_ = true;
  }
  condition_.notify_one();
}

void StageThread::run() {
  begin_thread(stage_.name());
  if (stage_.is_urgent()) hurry_thread();
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      woken_ = false;
    }
    const Time next = stage_.step();
    if (next != kNow) wait(next);
  }
}

void StageThread::wait(Time until) {
  std::unique_lock lock(mutex_);
  const auto stirred = [this] { return woken_ || stopping_; };
  if (until == kWhenWoken) {
    condition_.wait(lock, stirred);
    return;
  }
  const Time now = clock_.monotonic();
  if (until > now) condition_.wait_for(lock, std::min(until - now, Time(std::chrono::hours(1))), stirred);
}

}  // namespace member
