#include "core.h"

#include <optional>
#include <utility>
#include <vector>

namespace conclave::inline v1::internal {

namespace {
// How long the end of a client waits for background work; the rest of the promised 200 ms is for stopping threads.
constexpr std::chrono::milliseconds kFarewell{150};
}  // namespace

std::shared_ptr<Core> Core::create(ClientOptions options) {
  auto core = std::make_shared<Core>(std::move(options));
  core->callbacks_->set_reporter([weak = std::weak_ptr<Core>(core)](const std::string& problem) {
    if (const auto core = weak.lock()) core->log(LogLevel::kWarning, problem);
  });
  return core;
}

Core::Core(ClientOptions options)
    : keys_(std::move(options.key_prefix)),
      call_timeout_(options.call_timeout),
      log_(std::move(options.log)),
      endpoints_(options.endpoints),
      callbacks_(std::make_shared<CallbackPool>(options.callback_threads)),
      log_queue_(std::make_unique<CallbackQueue>(callbacks_, "log")) {}

std::unique_ptr<CallbackQueue> Core::callback_queue(std::string name) const {
  return std::make_unique<CallbackQueue>(callbacks_, std::move(name));
}

void Core::log(LogLevel level, std::string text) {
  if (!log_) return;
  log_queue_->post([log = log_, line = LogLine{level, std::move(text)}] {
    try {
      log(line);
    } catch (...) {  // reporting it would call the same function again
    }
  });
}

std::shared_ptr<Call> Core::start(Request request, Done done) {
  auto call = std::make_shared<Call>(shared_from_this(), std::move(request), std::move(done));
  {
    std::scoped_lock lock(mutex_);
    calls_.emplace(call.get(), call);
  }
  budget_.called(BootClock::now());
  call->start();
  return call;
}

void Core::forget(Call* call) {
  std::scoped_lock lock(mutex_);
  calls_.erase(call);
}

Result<Reply> Core::call(Request request, const std::stop_token& stop) {
  struct Wait {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<Result<Reply>> result;
  };
  const auto wait = std::make_shared<Wait>();
  const auto call = start(std::move(request), [wait](Result<Reply> result) {
    std::scoped_lock lock(wait->mutex);
    wait->result = std::move(result);
    wait->done.notify_one();
  });
  const std::stop_callback on_stop(stop, [&call] { call->cancel(Code::kCancelled, "stopped by the caller"); });
  std::unique_lock lock(wait->mutex);
  wait->done.wait(lock, [&] { return wait->result.has_value(); });
  return std::move(*wait->result);
}

Result<Reply> Core::call(const char* path, Result<Json> body, Effect effect, const CallOptions& call) {
  if (!body) return fail(std::move(body.error()));
  if (call.stop.stop_requested()) return fail(Code::kCancelled, "stopped by the caller");
  return this->call(
      Request{.path = path, .body = body->dump(), .effect = effect, .deadline = deadline_of(call, call_timeout_)},
      call.stop);
}

std::shared_ptr<void> Core::busy() {
  {
    std::scoped_lock lock(mutex_);
    ++busy_;
  }
  return {nullptr, [core = shared_from_this()](std::nullptr_t) {
            std::scoped_lock lock(core->mutex_);
            if (--core->busy_ == 0) core->idle_.notify_all();
          }};
}

std::uint64_t Core::on_close(std::function<void()> end) {
  std::scoped_lock lock(mutex_);
  closers_.emplace(++last_number_, std::move(end));
  return last_number_;
}

void Core::forget_close(std::uint64_t number) {
  std::function<void()> dropped;
  std::scoped_lock lock(mutex_);
  const auto it = closers_.find(number);
  if (it == closers_.end()) return;
  dropped = std::move(it->second);
  closers_.erase(it);
}

Error Core::closed_error() {
  return {.code = Code::kFailedPrecondition, .outcome = Outcome::kNothingHappened, .message = "client is closed"};
}

bool Core::on_own_thread() const { return loop_.on_thread() || callbacks_->on_thread(); }

bool Core::wait_idle(TimePoint until, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (busy_ > 0 && !stop.stop_requested()) {
    const auto now = BootClock::now();
    if (now >= until) return false;
    const auto step = std::min<std::chrono::nanoseconds>(until == kNever ? std::chrono::hours(1) : until - now,
                                                         std::chrono::hours(1));
    idle_.wait_for(lock, stop, step, [this] { return busy_ == 0; });
  }
  return busy_ == 0;
}

void Core::cancel_calls(bool background_too) {
  std::vector<std::shared_ptr<Call>> calls;
  {
    std::scoped_lock lock(mutex_);
    for (const auto& [raw, weak] : calls_) {
      auto call = weak.lock();
      if (call && (background_too || !call->background())) calls.push_back(std::move(call));
    }
  }
  for (const auto& call : calls) call->cancel(closed_error().code, closed_error().message);
}

Status Core::close(const CallOptions& call) {
  if (closed_.exchange(true)) return {};
  std::map<std::uint64_t, std::function<void()>> closers;
  {
    std::scoped_lock lock(mutex_);
    closers.swap(closers_);
  }
  for (auto& [number, end] : closers) end();
  cancel_calls(false);
  if (on_own_thread()) return {};
  if (wait_idle(deadline_of(call, call_timeout_), call.stop)) return {};
  return fail(call.stop.stop_requested() ? Code::kCancelled : Code::kDeadlineExceeded,
              "closed, but the cluster has not confirmed the end of all sessions: their leases will expire",
              Outcome::kMayHaveHappened);
}

void Core::shut_down() {
  if (stopped_.exchange(true)) return;
  if (!on_own_thread()) wait_idle(after(kFarewell), {});
  closed_ = true;
  cancel_calls(true);
  loop_.stop();
  firing_.stop();
  log_queue_->close();
  callbacks_->stop();
}

}  // namespace conclave::inline v1::internal
