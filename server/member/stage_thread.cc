#include "member/stage_thread.h"

#include <sys/resource.h>

#include <algorithm>

namespace member {
namespace {

// With readers on all cores, p99 of a commit fell from 15 to 4 ms (bench/seam load, two cores).
constexpr int kUrgentNiceness = -10;

}  // namespace

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
  // A wish: without the privilege (CAP_SYS_NICE or a limit) all threads stay equal.
  if (stage_.is_urgent()) (void)setpriority(PRIO_PROCESS, 0, kUrgentNiceness);
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
