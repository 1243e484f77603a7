#include "conclave/election.h"

#include <utility>

#include "claim.h"
#include "codec.h"
#include "leadership_impl.h"
#include "session_core.h"

namespace conclave {
inline namespace v1 {

using internal::Hold;
using internal::SessionCore;

namespace {
constexpr const char* kGivenBack = "the leadership was given back";
}

Leadership::Impl::Impl(std::shared_ptr<internal::Handle> handle, std::unique_ptr<Hold> hold)
    : handle_(std::move(handle)),
      token_(Token{hold->revision()}),
      key_(hold->key()),
      ownership_(std::make_shared<internal::Ownership>(*hold)),
      hold_(std::move(hold)) {
  ownership_->start();
}

Leadership::Impl::~Impl() { ownership_->end(); }

Leadership internal::Access::leadership(std::shared_ptr<Handle> handle, std::unique_ptr<Hold> hold) {
  return Leadership(std::make_unique<Leadership::Impl>(std::move(handle), std::move(hold)));
}

const std::shared_ptr<internal::Ownership>& internal::Access::ownership(const Leadership& leadership) {
  return leadership.impl_->ownership_;
}

Leadership::Leadership(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Leadership::Leadership(Leadership&&) noexcept = default;
Leadership& Leadership::operator=(Leadership&&) noexcept = default;
Leadership::~Leadership() = default;

Token Leadership::token() const { return impl_->token_; }
const std::string& Leadership::key() const { return impl_->key_; }
std::stop_token Leadership::lost() const { return impl_->ownership_->lost(); }
bool Leadership::held() const { return impl_->hold_ != nullptr && impl_->ownership_->held(); }

Status Leadership::proclaim(std::string value, CallOptions call) {
  if (!impl_->hold_) return fail(Code::kAborted, kGivenBack);
  return impl_->hold_->proclaim(value, call);
}

Result<TxnResult> Leadership::commit(const Txn& txn, CallOptions call) const {
  if (!impl_->hold_) return fail(Code::kAborted, kGivenBack);
  return impl_->hold_->commit(txn, call);
}

Status Leadership::resign(CallOptions call) {
  if (!impl_->hold_) return fail(Code::kAborted, kGivenBack);
  impl_->ownership_->end();
  auto removed = impl_->hold_->remove(call);
  impl_->hold_ = nullptr;  // what is not certain goes on in the background
  return removed;
}

class Election::Impl {
 public:
  Impl(std::shared_ptr<internal::Handle> handle, std::shared_ptr<SessionCore> session, std::string name)
      : handle_(std::move(handle)), claim_(std::move(session), std::move(name), internal::HoldKind::kLeadership) {}

  const std::shared_ptr<internal::Handle> handle_;
  const internal::Claim claim_;
};

Election::Election(const Session& session, std::string name)
    : impl_(std::make_shared<Impl>(internal::Access::handle(session), internal::Access::session(session),
                                   std::move(name))) {}

Result<Leadership> Election::campaign(std::string value, CallOptions call) const {
  auto hold = impl_->claim_.wait(std::move(value), call);
  if (!hold) return fail(std::move(hold.error()));
  return internal::Access::leadership(impl_->handle_, std::move(*hold));
}

Result<std::optional<Leader>> Election::leader(CallOptions call) const {
  internal::Core& core = *impl_->handle_->core();
  const internal::LockName name = impl_->claim_.name();
  auto reply = core.call(
      internal::path::kRange,
      internal::encode_range(
          {.key = name.range, .prefix = true, .limit = 1, .order = SortOrder::kAscend, .sort_by = SortTarget::kCreate},
          core.keys()),
      internal::Effect::kNone, call);
  if (!reply) return fail(std::move(reply.error()));
  auto found = internal::decode_range(reply->json, core.keys());
  if (found.kvs.empty()) return std::optional<Leader>();
  KeyValue& oldest = found.kvs.front();
  if (auto checked = internal::check_not_below(name, oldest.key); !checked) return fail(std::move(checked.error()));
  return std::optional<Leader>(Leader{.value = std::move(oldest.value),
                                      .key = std::move(oldest.key),
                                      .token = Token{number(oldest.create_revision)},
                                      .lease = oldest.lease});
}

}  // namespace v1
}  // namespace conclave
