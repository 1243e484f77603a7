#include "conclave/discovery.h"

#include <utility>

#include "discovery_core.h"
#include "record.h"

namespace conclave {
inline namespace v1 {

class Pick::Impl {
 public:
  Impl(std::shared_ptr<internal::Picker> picker, internal::Picker::Choice choice)
      : choice(std::move(choice)), picker_(std::move(picker)) {}
  ~Impl() { picker_->released(choice, failed_); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void failed() {
    if (failed_) return;
    failed_ = true;
    picker_->failed(choice, internal::BootClock::now());
  }

  const internal::Picker::Choice choice;

 private:
  const std::shared_ptr<internal::Picker> picker_;
  bool failed_ = false;
};

Pick::Pick(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Pick::Pick(Pick&&) noexcept = default;
Pick& Pick::operator=(Pick&&) noexcept = default;
Pick::~Pick() = default;
const Instance& Pick::instance() const { return impl_->choice.instance(); }
void Pick::failed() { impl_->failed(); }

class Discovery::Impl {
 public:
  Impl(std::shared_ptr<internal::Handle> handle, DiscoveryOptions options)
      : handle_(std::move(handle)),
        discovery(std::make_shared<internal::DiscoveryCore>(handle_->core(), std::move(options))) {
    discovery->start();
    closer_ = handle_->core()->on_close([discovery = discovery] { discovery->close(internal::Core::closed_error()); });
  }
  ~Impl() {
    handle_->core()->forget_close(closer_);
    discovery->close({.code = Code::kFailedPrecondition, .message = "the discovery is closed"});
    discovery->end_callbacks();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

 private:
  const std::shared_ptr<internal::Handle> handle_;

 public:
  const std::shared_ptr<internal::DiscoveryCore> discovery;

 private:
  std::uint64_t closer_ = 0;
};

Discovery::Discovery(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Discovery::Discovery(Discovery&&) noexcept = default;
Discovery& Discovery::operator=(Discovery&&) noexcept = default;
Discovery::~Discovery() = default;

Result<Discovery> Discovery::open(const Client& client, DiscoveryOptions options) {
  if (!internal::valid_name(options.service))
    return fail(Code::kInvalidArgument,
                "service: '" + options.service + "' is not like [A-Za-z0-9][A-Za-z0-9._-]{0,127}");
  if (options.balancer != Balancer::kRoundRobin && options.balancer != Balancer::kLeastPending &&
      options.balancer != Balancer::kRandom)
    return fail(Code::kInvalidArgument, "balancer: unknown value");
  const auto& handle = internal::Access::handle(client);
  if (handle->core()->closed()) return fail(internal::Core::closed_error());
  return Discovery(std::make_shared<Impl>(handle, std::move(options)));
}

Status Discovery::wait_ready(CallOptions call) const { return impl_->discovery->wait_ready(call); }
std::shared_ptr<const InstanceList> Discovery::snapshot() const { return impl_->discovery->snapshot(); }

Result<Pick> Discovery::pick(PickOptions options) const {
  auto choice = impl_->discovery->pick(options);
  if (!choice) return fail(std::move(choice.error()));
  return Pick(std::make_unique<Pick::Impl>(impl_->discovery->picker(), std::move(*choice)));
}

}  // namespace v1
}  // namespace conclave
