#include "callbacks.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "thread.h"

namespace conclave::inline v1::internal {

namespace {
constexpr std::chrono::seconds kSlowCallback{1};
}

struct CallbackPool::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::shared_ptr<CallbackQueue::State>> ready;  // queues with work, each at most once
  bool stopped = false;
  std::uint64_t thrown = 0;
  std::function<void(const std::string&)> report;
  std::vector<std::thread> threads;
  std::vector<std::thread::id> ids;

  void run();
  void run_one(const std::shared_ptr<CallbackQueue::State>& queue);
  void call(const std::function<void()>& callback, const std::string& name);
};

struct CallbackQueue::State {
  std::shared_ptr<CallbackPool::State> pool;
  std::string name;
  // Guarded by the pool's mutex.
  std::deque<std::function<void()>> waiting;
  bool scheduled = false;  // in `ready`, or being run
  bool closed = false;
  std::thread::id running{};
  std::condition_variable idle;
};

void CallbackPool::State::run() {
  std::unique_lock lock(mutex);
  while (true) {
    wake.wait(lock, [this] { return stopped || !ready.empty(); });
    if (stopped) return;
    const auto queue = std::move(ready.front());
    ready.pop_front();
    lock.unlock();
    run_one(queue);
    lock.lock();
  }
}

// One callback, then the queue goes to the back: a busy object does not keep the others waiting.
void CallbackPool::State::run_one(const std::shared_ptr<CallbackQueue::State>& queue) {
  std::function<void()> callback;
  {
    std::scoped_lock lock(mutex);
    if (queue->closed || queue->waiting.empty()) {
      queue->scheduled = false;
      return;
    }
    callback = std::move(queue->waiting.front());
    queue->waiting.pop_front();
    queue->running = std::this_thread::get_id();
  }
  call(callback, queue->name);
  callback = nullptr;  // what it captured ends before close() may return
  std::scoped_lock lock(mutex);
  queue->running = {};
  queue->idle.notify_all();
  if (queue->waiting.empty() || queue->closed || stopped) {
    queue->scheduled = false;
  } else {
    ready.push_back(queue);
    wake.notify_one();
  }
}

void CallbackPool::State::call(const std::function<void()>& callback, const std::string& name) {
  const auto start = std::chrono::steady_clock::now();
  std::string problem;
  try {
    callback();
  } catch (const std::exception& e) {
    problem = name + ": callback threw: " + e.what();
  } catch (...) {
    problem = name + ": callback threw";
  }
  const bool threw = !problem.empty();
  const auto took = std::chrono::steady_clock::now() - start;
  if (!threw && took > kSlowCallback)
    problem = name + ": callback took " +
              std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()) + " ms";
  if (problem.empty()) return;
  std::function<void(const std::string&)> tell;
  {
    std::scoped_lock lock(mutex);
    if (threw) ++thrown;
    tell = report;
  }
  if (tell) tell(problem);
}

CallbackPool::CallbackPool(int threads) : state_(std::make_shared<State>()) {
  for (int i = 0; i < threads; ++i) {
    auto thread = start_thread("conclave-cb" + std::to_string(i), [state = state_] { state->run(); });
    std::scoped_lock lock(state_->mutex);
    state_->ids.push_back(thread.get_id());
    state_->threads.push_back(std::move(thread));
  }
}

CallbackPool::~CallbackPool() { stop(); }

void CallbackPool::set_reporter(std::function<void(const std::string&)> report) {
  std::scoped_lock lock(state_->mutex);
  state_->report = std::move(report);
}

std::uint64_t CallbackPool::thrown() const {
  std::scoped_lock lock(state_->mutex);
  return state_->thrown;
}

void CallbackPool::stop() {
  std::vector<std::thread> threads;
  std::deque<std::shared_ptr<CallbackQueue::State>> dropped;
  std::function<void(const std::string&)> report;
  {
    std::scoped_lock lock(state_->mutex);
    state_->stopped = true;
    threads.swap(state_->threads);
    dropped.swap(state_->ready);
    report.swap(state_->report);
    state_->wake.notify_all();
  }
  for (std::thread& thread : threads) join_or_detach(thread);
}

bool CallbackPool::on_thread() const {
  std::scoped_lock lock(state_->mutex);
  for (const auto id : state_->ids)
    if (id == std::this_thread::get_id()) return true;
  return false;
}

CallbackQueue::CallbackQueue(std::shared_ptr<CallbackPool> pool, std::string name) : state_(std::make_shared<State>()) {
  state_->pool = pool->state_;
  state_->name = std::move(name);
}

CallbackQueue::~CallbackQueue() { close(); }

bool CallbackQueue::post(std::function<void()> callback) {
  auto& pool = *state_->pool;
  std::scoped_lock lock(pool.mutex);
  if (state_->closed || pool.stopped || state_->waiting.size() >= kCallbacksWaitingMax) return false;
  state_->waiting.push_back(std::move(callback));
  if (!state_->scheduled) {
    state_->scheduled = true;
    pool.ready.push_back(state_);
    pool.wake.notify_one();
  }
  return true;
}

void CallbackQueue::close() {
  std::deque<std::function<void()>> dropped;  // destroyed after the mutex is free
  auto& pool = *state_->pool;
  std::unique_lock lock(pool.mutex);
  state_->closed = true;
  dropped.swap(state_->waiting);
  state_->idle.wait(
      lock, [this] { return state_->running == std::thread::id{} || state_->running == std::this_thread::get_id(); });
}

}  // namespace conclave::inline v1::internal
