#include "firing.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "thread.h"

namespace conclave::inline v1::internal {

struct Firing::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::stop_source> waiting;
  bool stopped = false;

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [this] { return stopped || !waiting.empty(); });
      if (waiting.empty()) return;
      std::stop_source next = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      next.request_stop();
      lock.lock();
    }
  }
};

Firing::Firing() : state_(std::make_shared<State>()) {
  thread_ = start_thread("conclave-lost", [state = state_] { state->run(); });
}

Firing::~Firing() { stop(); }

void Firing::fire(std::stop_source source) {
  {
    std::scoped_lock lock(state_->mutex);
    if (!state_->stopped) {
      state_->waiting.push_back(std::move(source));
      state_->wake.notify_one();
      return;
    }
  }
  source.request_stop();
}

void Firing::stop() {
  {
    std::scoped_lock lock(state_->mutex);
    state_->stopped = true;
    state_->wake.notify_one();
  }
  join_or_detach(thread_);
}

}  // namespace conclave::inline v1::internal
