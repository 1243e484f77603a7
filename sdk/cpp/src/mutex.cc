#include "conclave/mutex.h"

#include <utility>

#include "hold.h"
#include "session_core.h"

namespace conclave {
inline namespace v1 {

using internal::Hold;
using internal::LockName;
using internal::SessionCore;

class Lock::Impl {
 public:
  Impl(std::shared_ptr<internal::Handle> handle, std::unique_ptr<Hold> hold)
      : handle_(std::move(handle)),
        session_(hold->session().shared_from_this()),
        token_(Token{hold->revision()}),
        key_(hold->key()),
        hold_(std::move(hold)) {}

  const std::shared_ptr<internal::Handle> handle_;
  const std::shared_ptr<SessionCore> session_;
  const Token token_;
  const std::string key_;
  std::unique_ptr<Hold> hold_;  // null once given back
};

Lock::Lock(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Lock::Lock(Lock&&) noexcept = default;
Lock& Lock::operator=(Lock&&) noexcept = default;
Lock::~Lock() = default;

Token Lock::token() const { return impl_->token_; }
const std::string& Lock::key() const { return impl_->key_; }
std::stop_token Lock::lost() const { return impl_->session_->lost(); }
bool Lock::held() const { return impl_->hold_ != nullptr && impl_->session_->held(); }

Result<TxnResult> Lock::commit(const Txn& txn, CallOptions call) const {
  if (!impl_->hold_) return fail(Code::kAborted, "the lock was given back");
  return impl_->hold_->commit(txn, call);
}

Status Lock::unlock(CallOptions call) {
  if (!impl_->hold_) return fail(Code::kAborted, "the lock was given back");
  auto removed = impl_->hold_->remove(call);
  impl_->hold_ = nullptr;  // what is not certain goes on in the background
  return removed;
}

class Mutex::Impl {
 public:
  Impl(std::shared_ptr<internal::Handle> handle, std::shared_ptr<SessionCore> session, std::string name)
      : handle_(std::move(handle)), session_(std::move(session)), name_(std::move(name)) {}

  // Why a wait ended: stopped by the caller, by the loss of the session, or its time is up.
  Error ended(const CallOptions& call) const {
    if (session_->lost().stop_requested() || !session_->held())
      return {.code = Code::kAborted, .message = "the session is lost: " + session_->why()};
    if (call.stop.stop_requested()) return {.code = Code::kCancelled, .message = "stopped by the caller"};
    return {.code = Code::kDeadlineExceeded, .message = "the lock was not free in time"};
  }
  // The key that is left behind is removed in the background: nothing stays that could have happened.
  Error waited(Error error, const CallOptions& call) const {
    if (error.code != Code::kCancelled && error.code != Code::kDeadlineExceeded) return error;
    return ended(call);
  }

  std::unique_ptr<Hold> hold(internal::LocalQueue::Ticket ticket) const {
    return std::make_unique<Hold>(session_, LockName(name_, session_->lease()), ticket);
  }

  const std::shared_ptr<internal::Handle> handle_;
  const std::shared_ptr<SessionCore> session_;
  const std::string name_;
};

Mutex::Mutex(const Session& session, std::string name)
    : impl_(std::make_shared<Impl>(internal::Access::handle(session), internal::Access::session(session),
                                   std::move(name))) {}

Result<Lock> Mutex::lock(CallOptions call) const {
  const internal::TimePoint deadline = internal::deadline_of(call, std::nullopt);
  if (call.stop.stop_requested() || !impl_->session_->held() || deadline <= internal::BootClock::now())
    return fail(impl_->ended(call));
  const AnyStop stop{call.stop, impl_->session_->lost()};
  auto& queue = impl_->session_->queue();
  const auto ticket = queue.enter(impl_->name_);
  auto hold = impl_->hold(ticket);
  if (!queue.wait(impl_->name_, ticket, deadline, stop.token())) return fail(impl_->ended(call));
  if (auto queued = hold->enqueue(deadline, stop.token()); !queued)
    return fail(impl_->waited(std::move(queued.error()), call));
  if (auto turn = hold->wait_turn(deadline, stop.token()); !turn)
    return fail(impl_->waited(std::move(turn.error()), call));
  return Lock(std::make_unique<Lock::Impl>(impl_->handle_, std::move(hold)));
}

Result<std::optional<Lock>> Mutex::try_lock(CallOptions call) const {
  const internal::TimePoint deadline = internal::deadline_of(call, impl_->session_->core().call_timeout());
  if (call.stop.stop_requested() || !impl_->session_->held() || deadline <= internal::BootClock::now())
    return fail(impl_->ended(call));
  const AnyStop stop{call.stop, impl_->session_->lost()};
  const auto ticket = impl_->session_->queue().try_enter(impl_->name_);
  if (ticket == 0) return std::optional<Lock>();
  auto hold = impl_->hold(ticket);
  auto alone = hold->enqueue_if_alone(deadline, stop.token());
  if (!alone) return fail(impl_->waited(std::move(alone.error()), call));
  if (!*alone) return std::optional<Lock>();
  if (!impl_->session_->held()) return fail(impl_->ended(call));
  return std::optional<Lock>(Lock(std::make_unique<Lock::Impl>(impl_->handle_, std::move(hold))));
}

}  // namespace v1
}  // namespace conclave
