// What all objects of one client share: threads, members, calls, and the end of it all.
//
// Objects of the public interface hold a Handle; what they run in the background holds the Core only. When the last
// Handle goes, the Core gives background work (unlocks, revokes) a moment and stops.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "callbacks.h"
#include "conclave/call.h"
#include "conclave/client.h"
#include "conclave/result.h"
#include "conclave/session.h"
#include "endpoints.h"
#include "firing.h"
#include "key_space.h"
#include "loop.h"
#include "retry.h"
#include "rpc.h"

namespace conclave::inline v1 {
class Leadership;
}

namespace conclave::inline v1::internal {

class Hold;
class Ownership;
class SessionCore;

// Times that tests shorten.
struct Tuning {
  std::chrono::milliseconds watch_quiet{15000};  // a watch silent for this long is opened anew beside the old stream
  std::chrono::milliseconds watch_create{2000};  // a member that has not accepted a watch by then is left
  std::size_t watch_queue_bytes = 8u << 20;      // what a reader has not taken yet; more, and the stream is let go
};

class Core : public std::enable_shared_from_this<Core> {
 public:
  static std::shared_ptr<Core> create(ClientOptions options);
  explicit Core(ClientOptions options);

  const KeySpace& keys() const { return keys_; }
  std::chrono::milliseconds call_timeout() const { return call_timeout_; }
  Tuning& tuning() { return tuning_; }
  Loop& loop() { return loop_; }
  Firing& firing() { return firing_; }
  Endpoints& endpoints() { return endpoints_; }
  RetryBudget& budget() { return budget_; }
  const std::shared_ptr<CallbackPool>& callbacks() const { return callbacks_; }
  std::unique_ptr<CallbackQueue> callback_queue(std::string name) const;
  void log(LogLevel level, std::string text);

  // Asynchronous. The call can be cancelled as long as it is kept.
  std::shared_ptr<Call> start(Request request, Done done);
  // Waits in the caller's thread; request.deadline and call.stop end it. Not for the timer thread.
  Result<Reply> call(Request request, const std::stop_token& stop);
  // The same for the public calls: deadline from `call`, or call_timeout.
  Result<Reply> call(const char* path, Result<Json> body, Effect effect, const CallOptions& call);

  // While a token is held, close() and the end of the client wait for it (within their limits).
  std::shared_ptr<void> busy();

  // `end` runs in close(), on its thread. Take it back with the number given, when the object ends by itself.
  std::uint64_t on_close(std::function<void()> end);
  void forget_close(std::uint64_t number);

  bool closed() const { return closed_; }
  static Error closed_error();
  Status close(const CallOptions& call);
  void shut_down();

 private:
  friend class Call;
  void forget(Call* call);
  void cancel_calls(bool background_too);
  bool wait_idle(TimePoint until, const std::stop_token& stop);
  bool on_own_thread() const;

  const KeySpace keys_;
  const std::chrono::milliseconds call_timeout_;
  const std::function<void(const LogLine&)> log_;
  Tuning tuning_;
  Endpoints endpoints_;
  RetryBudget budget_;
  std::shared_ptr<CallbackPool> callbacks_;
  std::unique_ptr<CallbackQueue> log_queue_;

  std::atomic<bool> closed_{false};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::condition_variable_any idle_;
  int busy_ = 0;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::function<void()>> closers_;
  std::unordered_map<Call*, std::weak_ptr<Call>> calls_;

  Firing firing_;
  Loop loop_;  // last: its thread may use all of the above
};

class Handle {
 public:
  explicit Handle(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~Handle() { core_->shut_down(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  const std::shared_ptr<Core>& core() const { return core_; }

 private:
  const std::shared_ptr<Core> core_;
};

struct Access {
  static const std::shared_ptr<Handle>& handle(const Client& client) { return client.handle_; }
  static Core& core(const Client& client) { return *client.handle_->core(); }
  static const std::shared_ptr<Handle>& handle(const Session& session);
  static const std::shared_ptr<SessionCore>& session(const Session& session);
  static Client client(std::shared_ptr<Handle> handle) { return Client(std::move(handle)); }
  // `handle` is null inside a Candidate, which holds its own.
  static Leadership leadership(std::shared_ptr<Handle> handle, std::unique_ptr<Hold> hold);
  static const std::shared_ptr<Ownership>& ownership(const Leadership& leadership);
};

}  // namespace conclave::inline v1::internal
