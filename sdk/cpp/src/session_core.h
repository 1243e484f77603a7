// A lease and its keepalives. Timers and answers only change state under the mutex; the end is told on other threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "conclave/session.h"
#include "core.h"
#include "local_queue.h"

namespace conclave::inline v1::internal {

class SessionCore : public std::enable_shared_from_this<SessionCore> {
 public:
  // Grants the lease, in the caller's thread.
  static Result<std::shared_ptr<SessionCore>> open(const std::shared_ptr<Core>& core, SessionOptions options);

  SessionCore(std::shared_ptr<Core> core, LeaseId lease, std::chrono::seconds ttl, TimePoint granted_at,
              std::function<void(SessionState, const std::string&)> on_state);

  Core& core() { return *core_; }
  LocalQueue& queue() { return queue_; }
  LeaseId lease() const { return lease_; }
  std::chrono::seconds ttl() const { return ttl_; }
  std::stop_token lost() const { return lost_.get_token(); }
  bool held() const;
  SessionState state() const;
  std::string why() const;  // it was lost

  void start();
  // Final. The lease is revoked in the background, unless the caller does that or the session was left to expire.
  void lose(const std::string& why, bool revoke, LogLevel level = LogLevel::kWarning);
  void orphan();
  void end_callbacks();  // none runs or starts afterwards
  void check_now();      // asks the server soon whether the lease lives
  Status revoke(const CallOptions& call);

 private:
  void keep_alive();
  void on_answer(Result<Reply> reply);
  void on_timer();
  void arm();                                             // mutex_ held
  void keep_alive_at(TimePoint when);                     // mutex_ held
  void tell(SessionState state, const std::string& why);  // mutex_ held
  void revoke_in_background();
  Request request(const char* path, TimePoint deadline) const;

  const std::shared_ptr<Core> core_;
  const LeaseId lease_;
  const std::chrono::seconds ttl_;
  const std::uint64_t generation_;  // of the cluster
  const std::function<void(SessionState, const std::string&)> on_state_;
  const std::unique_ptr<CallbackQueue> callbacks_;
  LocalQueue queue_;
  std::stop_source lost_;

  mutable std::mutex mutex_;
  SessionState state_ = SessionState::kLive;
  std::string why_;
  TimePoint acknowledged_;  // sending time of the last keepalive that was
  TimePoint deadline_;
  bool orphaned_ = false;
  bool asking_ = false;         // a keepalive is in flight
  std::shared_ptr<Call> call_;  // that one
  Loop::TimerId check_timer_ = 0;
  Loop::TimerId keep_timer_ = 0;
};

}  // namespace conclave::inline v1::internal
