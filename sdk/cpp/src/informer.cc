#include "conclave/informer.h"

#include <utility>

#include "informer_core.h"

namespace conclave {
inline namespace v1 {
namespace internal {
namespace {

constexpr int kWorkersMax = 64;

Status check(const InformerHooks& hooks) {
  if (hooks.prefix.empty()) return fail(Code::kInvalidArgument, "Informer: prefix is not set");
  if (!hooks.decode) return fail(Code::kInvalidArgument, "Informer: decode is not set");
  if (!hooks.reconcile) return fail(Code::kInvalidArgument, "Informer: reconcile is not set");
  if (hooks.workers < 1 || hooks.workers > kWorkersMax)
    return fail(Code::kInvalidArgument, "Informer: workers: 1 to " + std::to_string(kWorkersMax));
  if (hooks.resync < std::chrono::milliseconds::zero())
    return fail(Code::kInvalidArgument, "Informer: resync: must not be negative");
  if (hooks.retry_max <= std::chrono::milliseconds::zero())
    return fail(Code::kInvalidArgument, "Informer: retry_max: must be positive");
  return {};
}

}  // namespace

class InformerHandle::Impl {
 public:
  Impl(std::shared_ptr<Handle> handle, InformerHooks hooks)
      : handle_(std::move(handle)), informer(std::make_shared<InformerCore>(handle_->core(), std::move(hooks))) {
    informer->start();
    closer_ = handle_->core()->on_close([informer = informer] { informer->close(Core::closed_error()); });
  }
  ~Impl() {
    handle_->core()->forget_close(closer_);
    informer->close({.code = Code::kFailedPrecondition, .message = "the informer is closed"});
    informer->join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

 private:
  const std::shared_ptr<Handle> handle_;

 public:
  const std::shared_ptr<InformerCore> informer;

 private:
  std::uint64_t closer_ = 0;
};

InformerHandle::InformerHandle(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
InformerHandle::InformerHandle(InformerHandle&&) noexcept = default;
InformerHandle& InformerHandle::operator=(InformerHandle&&) noexcept = default;
InformerHandle::~InformerHandle() = default;

Status InformerHandle::wait_ready(const CallOptions& call) const { return impl_->informer->wait_ready(call); }
std::shared_ptr<const InformerState> InformerHandle::snapshot() const { return impl_->informer->snapshot(); }
std::shared_ptr<const void> InformerHandle::get(std::string_view key) const { return impl_->informer->get(key); }

Result<InformerHandle> InformerHandle::open(const Client& client, InformerHooks hooks) {
  if (auto checked = check(hooks); !checked) return fail(std::move(checked.error()));
  const auto& handle = Access::handle(client);
  if (handle->core()->closed()) return fail(Core::closed_error());
  return InformerHandle(std::make_unique<Impl>(handle, std::move(hooks)));
}

}  // namespace internal
}  // namespace v1
}  // namespace conclave
