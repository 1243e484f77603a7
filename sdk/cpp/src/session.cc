#include "conclave/session.h"

#include <utility>

#include "session_core.h"
#include "session_impl.h"

namespace conclave {
inline namespace v1 {

namespace {
constexpr std::chrono::seconds kTtlMin{1};
constexpr std::chrono::seconds kTtlMax{86400};
constexpr const char* kClosed = "the session was closed";
}  // namespace

Session::Impl::Impl(std::shared_ptr<internal::Handle> handle, std::shared_ptr<internal::SessionCore> session)
    : handle_(std::move(handle)), session_(std::move(session)) {
  closer_ = handle_->core()->on_close([session = session_] { session->lose("the client was closed", true); });
}

Session::Impl::~Impl() {
  handle_->core()->forget_close(closer_);
  if (!orphaned_) session_->lose(kClosed, true, LogLevel::kInfo);
  session_->end_callbacks();
}

const std::shared_ptr<internal::Handle>& internal::Access::handle(const Session& session) {
  return session.impl_->handle();
}

const std::shared_ptr<internal::SessionCore>& internal::Access::session(const Session& session) {
  return session.impl_->session();
}

Session::Session(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::open(const Client& client, SessionOptions options) {
  if (options.ttl < kTtlMin || options.ttl > kTtlMax)
    return fail(Code::kInvalidArgument, "ttl: 1 s to " + std::to_string(kTtlMax.count()) + " s");
  if (options.call.stop.stop_requested()) return fail(Code::kCancelled, "stopped by the caller");
  const auto& handle = internal::Access::handle(client);
  auto session = internal::SessionCore::open(handle->core(), std::move(options));
  if (!session) return fail(std::move(session.error()));
  (*session)->start();
  return Session(std::make_shared<Impl>(handle, std::move(*session)));
}

std::stop_token Session::lost() const { return impl_->session()->lost(); }
bool Session::held() const { return impl_->session()->held(); }
SessionState Session::state() const { return impl_->session()->state(); }
LeaseId Session::lease() const { return impl_->session()->lease(); }
std::chrono::seconds Session::ttl() const { return impl_->session()->ttl(); }

Status Session::close(CallOptions call) {
  impl_->session()->lose(kClosed, false, LogLevel::kInfo);
  return impl_->session()->revoke(call);
}

void Session::orphan() { impl_->orphan(); }

}  // namespace v1
}  // namespace conclave
