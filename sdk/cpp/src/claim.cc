#include "claim.h"

#include <utility>

namespace conclave::inline v1::internal {

Claim::Claim(std::shared_ptr<SessionCore> session, std::string name, HoldKind kind)
    : session_(std::move(session)), name_(std::move(name)), kind_(kind) {}

// Why a wait ended: stopped by the caller, by the loss of the session, or its time is up.
Error Claim::ended(const CallOptions& call) const {
  if (session_->lost().stop_requested() || !session_->held())
    return {.code = Code::kAborted, .message = "the session is lost: " + session_->why()};
  if (call.stop.stop_requested()) return {.code = Code::kCancelled, .message = "stopped by the caller"};
  return {.code = Code::kDeadlineExceeded,
          .message = kind_ == HoldKind::kLock ? "the lock was not free in time" : "not elected in time"};
}

// The key that is left behind is removed in the background: nothing stays that could have happened.
Error Claim::waited(Error error, const CallOptions& call) const {
  if (error.code != Code::kCancelled && error.code != Code::kDeadlineExceeded) return error;
  return ended(call);
}

Result<std::unique_ptr<Hold>> Claim::wait(std::string value, const CallOptions& call,
                                          const std::function<void()>& queued) const {
  const TimePoint deadline = deadline_of(call, std::nullopt);
  if (call.stop.stop_requested() || !session_->held() || deadline <= BootClock::now()) return fail(ended(call));
  const AnyStop stop{call.stop, session_->lost()};
  const auto ticket = session_->queue().enter(name_);
  auto hold = std::make_unique<Hold>(session_, name(), ticket, kind_, std::move(value));
  if (!session_->queue().wait(name_, ticket, deadline, stop.token())) return fail(ended(call));
  if (auto key = hold->enqueue(deadline, stop.token()); !key) return fail(waited(std::move(key.error()), call));
  if (queued) queued();
  if (auto turn = hold->wait_turn(deadline, stop.token()); !turn) return fail(waited(std::move(turn.error()), call));
  return hold;
}

Result<std::unique_ptr<Hold>> Claim::try_now(const CallOptions& call) const {
  const TimePoint deadline = deadline_of(call, session_->core().call_timeout());
  if (call.stop.stop_requested() || !session_->held() || deadline <= BootClock::now()) return fail(ended(call));
  const AnyStop stop{call.stop, session_->lost()};
  const auto ticket = session_->queue().try_enter(name_);
  if (ticket == 0) return nullptr;
  auto hold = std::make_unique<Hold>(session_, name(), ticket, kind_, "");
  auto alone = hold->enqueue_if_alone(deadline, stop.token());
  if (!alone) return fail(waited(std::move(alone.error()), call));
  if (!*alone) return nullptr;
  if (!session_->held()) return fail(ended(call));
  return hold;
}

}  // namespace conclave::inline v1::internal
