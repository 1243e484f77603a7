#include "conclave/mutex.h"

#include <utility>

#include "claim.h"
#include "hold.h"
#include "session_core.h"

namespace conclave {
inline namespace v1 {

using internal::Hold;
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
      : handle_(std::move(handle)), claim_(std::move(session), std::move(name), internal::HoldKind::kLock) {}

  const std::shared_ptr<internal::Handle> handle_;
  const internal::Claim claim_;
};

Mutex::Mutex(const Session& session, std::string name)
    : impl_(std::make_shared<Impl>(internal::Access::handle(session), internal::Access::session(session),
                                   std::move(name))) {}

Result<Lock> Mutex::lock(CallOptions call) const {
  auto hold = impl_->claim_.wait("", call);
  if (!hold) return fail(std::move(hold.error()));
  return Lock(std::make_unique<Lock::Impl>(impl_->handle_, std::move(*hold)));
}

Result<std::optional<Lock>> Mutex::try_lock(CallOptions call) const {
  auto hold = impl_->claim_.try_now(call);
  if (!hold) return fail(std::move(hold.error()));
  if (!*hold) return std::optional<Lock>();
  return std::optional<Lock>(Lock(std::make_unique<Lock::Impl>(impl_->handle_, std::move(*hold))));
}

}  // namespace v1
}  // namespace conclave
