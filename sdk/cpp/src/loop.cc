#include "loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "thread.h"

namespace conclave::inline v1::internal {

namespace {

void drain(int fd) {
  std::uint64_t count = 0;
  while (::read(fd, &count, sizeof count) > 0) {
  }
}

}  // namespace

struct Loop::State {
  using Key = std::pair<TimePoint, TimerId>;  // ids rise: tasks posted for one time run in order

  std::mutex mutex;
  std::map<Key, Task> tasks;
  std::unordered_map<TimerId, TimePoint> due;
  TimerId last_id = 0;
  bool stopped = false;
  std::atomic<std::thread::id> thread{};
  int timer_fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  int wake_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

  ~State() {
    ::close(timer_fd);
    ::close(wake_fd);
  }

  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_fd, &one, sizeof one);
  }

  TimerId add(TimePoint when, Task task) {
    std::unique_lock lock(mutex);
    if (stopped) return ++last_id;
    const TimerId id = ++last_id;
    const bool first = tasks.empty() || Key(when, id) < tasks.begin()->first;
    tasks.emplace(Key(when, id), std::move(task));
    due.emplace(id, when);
    lock.unlock();
    if (first) wake();
    return id;
  }

  void arm(TimePoint when) {
    itimerspec spec{};
    if (when != kNever) {
      const auto since = when.time_since_epoch();
      const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since);
      spec.it_value.tv_sec = whole.count();
      spec.it_value.tv_nsec = (since - whole).count();
    }
    ::timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &spec, nullptr);
  }

  // The next task that is due, else when to look again.
  bool take(Task& task, TimePoint& next) {
    std::scoped_lock lock(mutex);
    next = kNever;
    if (stopped || tasks.empty()) return false;
    const auto first = tasks.begin();
    if (first->first.first > BootClock::now()) {
      next = first->first.first;
      return false;
    }
    due.erase(first->first.second);
    task = std::move(first->second);
    tasks.erase(first);
    return true;
  }

  bool is_stopped() {
    std::scoped_lock lock(mutex);
    return stopped;
  }

  void run() {
    thread = std::this_thread::get_id();
    while (!is_stopped()) {
      Task task;
      TimePoint next;
      while (take(task, next)) {
        task();
        task = nullptr;
      }
      if (is_stopped()) break;
      arm(next);
      pollfd fds[2] = {{timer_fd, POLLIN, 0}, {wake_fd, POLLIN, 0}};
      ::poll(fds, 2, -1);
      drain(timer_fd);
      drain(wake_fd);
    }
  }
};

Loop::Loop() : state_(std::make_shared<State>()) {
  thread_ = start_thread("conclave-timer", [state = state_] { state->run(); });
}

Loop::~Loop() { stop(); }

void Loop::post(Task task) { state_->add(TimePoint{}, std::move(task)); }

Loop::TimerId Loop::at(TimePoint when, Task task) { return state_->add(when, std::move(task)); }

bool Loop::cancel(TimerId id) {
  Task dropped;  // destroyed after the mutex is free: it may own the last reference to something
  std::scoped_lock lock(state_->mutex);
  const auto it = state_->due.find(id);
  if (it == state_->due.end()) return false;
  const auto task = state_->tasks.find({it->second, id});
  dropped = std::move(task->second);
  state_->tasks.erase(task);
  state_->due.erase(it);
  return true;
}

void Loop::stop() {
  std::map<State::Key, Task> dropped;
  {
    std::scoped_lock lock(state_->mutex);
    state_->stopped = true;
    dropped.swap(state_->tasks);
    state_->due.clear();
  }
  state_->wake();
  join_or_detach(thread_);
}

bool Loop::on_thread() const { return state_->thread == std::this_thread::get_id(); }

}  // namespace conclave::inline v1::internal
