// One call to the cluster: attempts on one member after the other until it succeeds, fails for good, or its time is up.
// This is where an error gets its outcome.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "clock.h"
#include "conclave/result.h"
#include "http/transport.h"
#include "json.h"
#include "loop.h"
#include "retry.h"

namespace conclave::inline v1::internal {

class Core;

enum class Effect : std::uint8_t {
  kNone,        // a read: repeated at will
  kOnce,        // a write: repeated only while nothing can have happened
  kIdempotent,  // a write that may run twice (its keys are unique): repeated at will, and `uncertain` told
};

struct Request {
  const char* path = nullptr;
  std::string body = {};
  Effect effect = Effect::kNone;
  TimePoint deadline = kNever;
  // For recipes, which must not give up: no attempt longer than this (a dead connection is left), no pause longer than
  // that between two, and retries that do not count.
  std::chrono::nanoseconds attempt_max = std::chrono::nanoseconds::max();
  std::chrono::milliseconds pause_max{2000};
  bool budgeted = true;
  bool background = false;  // also while the client is closing
};

struct Reply {
  Json json;
  std::string endpoint;
  TimePoint sent_at{};     // no later than the sending of the attempt that succeeded
  bool uncertain = false;  // an earlier attempt may have taken effect too
};

using Done = std::function<void(Result<Reply>)>;

class Call : public std::enable_shared_from_this<Call> {
 public:
  // `done` runs once: on a transport thread, the timer thread, or inside start() or cancel().
  Call(std::shared_ptr<Core> core, Request request, Done done);

  void start();
  // Ends it with this code and message; the outcome is found out. Does nothing once it is over.
  void cancel(Code code, std::string message);
  bool background() const { return request_.background; }

 private:
  struct Failure {
    Error error;
    bool repeat = false;      // may be repeated, if nothing can have happened or the effect allows it
    bool bad_member = false;  // others should be tried first
    bool may_have_happened = false;
    bool unsent = false;  // nobody was reached
  };

  void attempt();
  void on_reply(int attempt, HttpReply reply, TimePoint sent_at);
  void on_timer(int attempt);
  TimePoint attempt_deadline() const;
  Failure classify(const HttpReply& reply) const;
  void failed(std::unique_lock<std::mutex>& lock, Failure failure);
  void finish(std::unique_lock<std::mutex>& lock, Result<Reply> result);
  Error out_of_time(bool unsent) const;
  bool given_up_unsent();

  const std::shared_ptr<Core> core_;
  const Request request_;
  std::mutex mutex_;
  Done done_;
  bool over_ = false;
  int attempt_ = 0;  // the one in flight; replies to others are late
  std::size_t endpoint_ = 0;
  std::uint64_t tried_ = 0;  // members of this round
  bool uncertain_ = false;
  Error last_error_;
  Backoff backoff_;
  std::shared_ptr<Exchange> exchange_;
  bool posting_ = false;  // the request is being handed over: it may leave before `exchange_` is set
  Loop::TimerId timer_ = 0;
};

}  // namespace conclave::inline v1::internal
