#include "conclave/watch.h"

#include <atomic>
#include <utility>

#include "codec.h"
#include "core.h"
#include "watch_core.h"

namespace conclave {
inline namespace v1 {

namespace internal {

OwnedWatch::OwnedWatch(std::shared_ptr<Handle> handle, WatchOptions options)
    : handle_(std::move(handle)), watch_(std::make_shared<WatchCore>(handle_->core(), std::move(options))) {
  closer_ = handle_->core()->on_close([watch = watch_] { watch->end(Core::closed_error()); });
}

OwnedWatch::~OwnedWatch() {
  handle_->core()->forget_close(closer_);
  close();
}

void OwnedWatch::close() { watch_->end({.code = Code::kFailedPrecondition, .message = "the watch is closed"}); }

Result<std::shared_ptr<OwnedWatch>> OwnedWatch::make(const Client& client, WatchOptions options) {
  const auto& handle = Access::handle(client);
  if (handle->core()->closed()) return fail(Core::closed_error());
  if (number(options.from) < 0) return fail(Code::kInvalidArgument, "from: must not be negative");
  if (!options.puts && !options.deletes) return fail(Code::kInvalidArgument, "puts and deletes are both left out");
  if (auto body = encode_watch(options, options.from, handle->core()->keys()); !body)
    return fail(std::move(body.error()));
  return std::make_shared<OwnedWatch>(handle, std::move(options));
}

}  // namespace internal

using internal::OwnedWatch;

class Watch::Impl {
 public:
  explicit Impl(std::shared_ptr<OwnedWatch> owned) : watch(std::move(owned)) {}
  const std::shared_ptr<OwnedWatch> watch;
};

Watch::Watch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Watch::Watch(Watch&&) noexcept = default;
Watch& Watch::operator=(Watch&&) noexcept = default;
Watch::~Watch() = default;

Result<Watch> Watch::open(const Client& client, WatchOptions options) {
  auto watch = OwnedWatch::make(client, std::move(options));
  if (!watch) return fail(std::move(watch.error()));
  (**watch)->start();
  return Watch(std::make_shared<Impl>(std::move(*watch)));
}

Status Watch::wait_ready(CallOptions call) const {
  return (*impl_->watch)->wait_ready(internal::deadline_of(call, std::nullopt), call.stop);
}

Result<WatchBatch> Watch::next(CallOptions call) {
  return (*impl_->watch)->next(internal::deadline_of(call, std::nullopt), call.stop);
}

Revision Watch::synced() const { return (*impl_->watch)->synced(); }

void Watch::close() { impl_->watch->close(); }

// Hands the batches to the user on the callback threads, one callback a batch.
class Subscription::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(std::shared_ptr<OwnedWatch> watch, WatchHandler handler, std::function<void(const Error&)> on_end)
      : watch_(std::move(watch)), handler_(std::move(handler)), on_end_(std::move(on_end)) {
    queue_ = watch_->core().callback_queue("subscription");
  }

  void start() {
    (*watch_)->set_listener([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->post();
    });
    (*watch_)->start();
  }

  void end() {
    (*watch_)->set_listener(nullptr);
    queue_->close();
    watch_->close();
  }

  OwnedWatch& watch() { return *watch_; }

 private:
  // At most one callback waits or runs.
  void post() {
    if (posted_.exchange(true)) return;
    queue_->post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->run();
    });
  }

  void run() {
    struct Again {  // also when the handler throws
      Impl& impl;
      ~Again() {
        impl.posted_ = false;  // first: what comes after the look posts by itself
        if ((*impl.watch_)->has_batch() || ((*impl.watch_)->ended() && !impl.told_end_)) impl.post();
      }
    } again{*this};
    if (const auto batch = (*watch_)->try_next()) {
      handler_(*batch);
    } else if (const auto why = (*watch_)->ended(); why && !told_end_.exchange(true) && on_end_) {
      on_end_(*why);
    }
  }

  const std::shared_ptr<OwnedWatch> watch_;
  const WatchHandler handler_;
  const std::function<void(const Error&)> on_end_;
  std::unique_ptr<internal::CallbackQueue> queue_;
  std::atomic<bool> posted_{false};
  std::atomic<bool> told_end_{false};
};

Subscription::Subscription(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Subscription::Subscription(Subscription&&) noexcept = default;
Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (impl_) impl_->end();
  impl_ = std::move(other.impl_);
  return *this;
}
Subscription::~Subscription() {
  if (impl_) impl_->end();
}

Status Subscription::wait_ready(CallOptions call) const {
  return impl_->watch()->wait_ready(internal::deadline_of(call, std::nullopt), call.stop);
}

Result<Subscription> subscribe(const Client& client, WatchOptions options, WatchHandler handler,
                               std::function<void(const Error&)> on_end) {
  if (!handler) return fail(Code::kInvalidArgument, "handler: not set");
  auto watch = OwnedWatch::make(client, std::move(options));
  if (!watch) return fail(std::move(watch.error()));
  auto impl = std::make_shared<Subscription::Impl>(std::move(*watch), std::move(handler), std::move(on_end));
  impl->start();
  return Subscription(std::move(impl));
}

}  // namespace v1
}  // namespace conclave
