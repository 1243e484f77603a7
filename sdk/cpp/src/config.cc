// ConfigReloader without its type: the newest set is built and validated on a callback thread, and swapped in as a
// whole or not at all.
#include "conclave/config.h"

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "callbacks.h"
#include "config_values.h"
#include "core.h"
#include "list_watch.h"

namespace conclave {
inline namespace v1 {
namespace internal {
namespace {

// A change is taken over after so much quiet, or after so long since the first one that is waiting.
constexpr std::chrono::milliseconds kSettle{100};
constexpr std::chrono::milliseconds kSettleMax{1000};

}  // namespace

class Reloader::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(std::shared_ptr<Handle> handle, ReloaderHooks hooks)
      : handle_(std::move(handle)),
        hooks_(std::move(hooks)),
        queue_(core().callback_queue("configuration " + hooks_.prefix)) {}

  Status open();
  void end();
  std::shared_ptr<const void> snapshot() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }

 private:
  Core& core() const { return *handle_->core(); }
  void start();
  void news(std::unique_lock<std::mutex>& lock);
  void arm(std::unique_lock<std::mutex>& lock);
  void take_over();
  Result<std::shared_ptr<const void>> call_build(const ConfigValues& state, ViewSource source) const;
  Status build(const ConfigValues& state, ViewSource source);
  Status from_disk();
  void rejected(Revision revision, const Error& why);

  const std::shared_ptr<Handle> handle_;
  const ReloaderHooks hooks_;
  const std::unique_ptr<CallbackQueue> queue_;
  std::shared_ptr<ListWatch> list_watch_;

  mutable std::mutex mutex_;
  std::condition_variable_any news_came_;
  bool news_ = false;
  bool open_ = false;
  std::optional<ConfigValues> newest_;  // as the server has it
  std::optional<Error> trouble_;        // why there is nothing newer
  std::shared_ptr<const void> current_;
  std::map<std::string, std::string, std::less<>> values_;  // of current_
  bool on_disk_only_ = false;                               // current_ is from disk
  Revision looked_at_{};                                    // the last revision that was built, well or not
  TimePoint first_waiting_ = kNever;
  Loop::TimerId timer_ = 0;
};

void Reloader::Impl::start() {
  const auto weak = weak_from_this();
  ListWatch::Hooks hooks;
  hooks.on_list = [weak](const RangeResult& all) {
    const auto self = weak.lock();
    if (!self) return;
    std::unique_lock lock(self->mutex_);
    self->newest_ = ConfigValues::of(self->hooks_.prefix, all);
    self->news(lock);
  };
  hooks.on_batch = [weak](const WatchBatch& batch) {
    const auto self = weak.lock();
    if (!self) return;
    std::unique_lock lock(self->mutex_);
    self->newest_->apply(self->hooks_.prefix, batch);
    self->news(lock);
  };
  hooks.on_trouble = [weak](const Error& error) {
    const auto self = weak.lock();
    if (!self) return;
    const std::lock_guard lock(self->mutex_);
    self->trouble_ = error;
  };
  list_watch_ = std::make_shared<ListWatch>(handle_->core(), hooks_.prefix, std::move(hooks));
  list_watch_->start();
}

// Builds in the caller's thread until there is a valid set.
Status Reloader::Impl::open() {
  start();
  const TimePoint now = BootClock::now();
  const TimePoint deadline = deadline_of(hooks_.call, core().call_timeout());
  // Disk copies are used when no member gave a good set within half of the time.
  const bool has_file = !hooks_.cache_file.empty();
  TimePoint until = has_file && deadline != kNever ? now + (deadline - now) / 2 : deadline;
  std::optional<Error> why;
  while (true) {
    std::optional<ConfigValues> state;
    {
      std::unique_lock lock(mutex_);
      const auto came = [this] { return news_; };
      if (until == kNever) {
        news_came_.wait(lock, hooks_.call.stop, came);
      } else {
        news_came_.wait_for(lock, hooks_.call.stop, until - BootClock::now(), came);
      }
      if (std::exchange(news_, false)) state = newest_;
    }
    if (hooks_.call.stop.stop_requested()) return fail(Code::kCancelled, hooks_.prefix + ": cancelled");
    if (state) {
      auto built = build(*state, ViewSource::kServer);
      if (built) break;
      why = built.error();
      rejected(state->revision, *why);
      if (!has_file) continue;
      until = BootClock::now();  // the server's set is no good: the copy need not wait
      if (from_disk()) break;
      until = deadline;
      continue;
    }
    if (until < deadline) {
      if (from_disk()) break;
      until = deadline;
      continue;
    }
    if (why) return fail(std::move(*why));
    const std::lock_guard lock(mutex_);
    return fail(Code::kDeadlineExceeded,
                hooks_.prefix + ": no configuration in time" + (trouble_ ? ": " + trouble_->message : std::string()));
  }
  std::unique_lock lock(mutex_);
  open_ = true;
  if (news_) arm(lock);
  return {};
}

Status Reloader::Impl::from_disk() {
  if (hooks_.cache_file.empty()) return fail(Code::kNotFound, "no copy on disk");
  const auto state = read_config(hooks_.cache_file, hooks_.prefix);
  if (!state) {
    if (state.error().code != Code::kNotFound) core().log(LogLevel::kWarning, state.error().message);
    return fail(state.error());
  }
  return build(*state, ViewSource::kDisk);
}

void Reloader::Impl::end() {
  if (list_watch_) list_watch_->end();
  {
    const std::lock_guard lock(mutex_);
    if (timer_ != 0) core().loop().cancel(std::exchange(timer_, 0));
    open_ = false;
  }
  queue_->close();
}

void Reloader::Impl::news(std::unique_lock<std::mutex>& lock) {
  news_ = true;
  if (open_) {
    arm(lock);
  } else {
    news_came_.notify_all();
  }
}

void Reloader::Impl::arm(std::unique_lock<std::mutex>& lock) {
  const TimePoint now = BootClock::now();
  if (first_waiting_ == kNever) first_waiting_ = now;
  const TimePoint when = std::min(now + kSettle, first_waiting_ + kSettleMax);
  if (timer_ != 0) core().loop().cancel(timer_);
  timer_ = core().loop().at(when, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    {
      const std::lock_guard inner(self->mutex_);
      self->timer_ = 0;
      self->first_waiting_ = kNever;
    }
    self->queue_->post([weak] {
      if (const auto again = weak.lock()) again->take_over();
    });
  });
  (void)lock;
}

void Reloader::Impl::take_over() {
  std::optional<ConfigValues> state;
  std::shared_ptr<const void> before;
  bool same = false;
  {
    const std::lock_guard lock(mutex_);
    state = newest_;
    if (!state) return;
    news_ = false;
    if (state->revision == looked_at_ && !on_disk_only_) return;
    before = current_;
    same = state->values == values_;
    if (same && !on_disk_only_) {
      looked_at_ = state->revision;
      return;
    }
  }
  if (auto built = build(*state, ViewSource::kServer); !built) return rejected(state->revision, built.error());
  if (!same && hooks_.on_change) hooks_.on_change(before, snapshot());
}

// The user's code: an exception means no.
Result<std::shared_ptr<const void>> Reloader::Impl::call_build(const ConfigValues& state, ViewSource source) const {
  try {
    return hooks_.build(ConfigSet(state.values, state.revision), source);
  } catch (const std::exception& e) {
    return fail(Code::kInvalidArgument, std::string("bind or validate threw: ") + e.what());
  } catch (...) {
    return fail(Code::kInvalidArgument, "bind or validate threw");
  }
}

Status Reloader::Impl::build(const ConfigValues& state, ViewSource source) {
  {
    const std::lock_guard lock(mutex_);
    looked_at_ = state.revision;
  }
  auto built = call_build(state, source);
  if (!built) {
    Error why = std::move(built.error());
    why.message = hooks_.prefix + why.message;
    return fail(std::move(why));
  }
  {
    const std::lock_guard lock(mutex_);
    current_ = std::move(*built);
    values_ = state.values;
    on_disk_only_ = source == ViewSource::kDisk;
  }
  if (source == ViewSource::kServer && !hooks_.cache_file.empty()) {
    if (auto written = write_config(hooks_.cache_file, hooks_.prefix, state); !written) {
      core().log(LogLevel::kWarning, "the copy of the configuration was not written: " + written.error().message);
    }
  }
  return {};
}

void Reloader::Impl::rejected(Revision revision, const Error& why) {
  core().log(LogLevel::kWarning, "configuration of revision " + std::to_string(number(revision)) +
                                     " is rejected, the old values stay: " + why.message);
  if (!hooks_.on_rejected) return;
  bool on_queue = false;
  {
    const std::lock_guard lock(mutex_);
    on_queue = open_;
  }
  if (on_queue) {
    hooks_.on_rejected(revision, why);  // take_over() runs on the callback thread
  } else {
    queue_->post([call = hooks_.on_rejected, revision, why] { call(revision, why); });
  }
}

Reloader::Reloader(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reloader::Reloader(Reloader&&) noexcept = default;
Reloader& Reloader::operator=(Reloader&& other) noexcept {
  if (impl_) impl_->end();
  impl_ = std::move(other.impl_);
  return *this;
}
Reloader::~Reloader() {
  if (impl_) impl_->end();
}

std::shared_ptr<const void> Reloader::snapshot() const { return impl_->snapshot(); }

Result<Reloader> Reloader::open(const Client& client, ReloaderHooks hooks) {
  if (hooks.prefix.empty()) return fail(Code::kInvalidArgument, "ConfigReloader: prefix is not set");
  if (hooks.call.timeout && *hooks.call.timeout <= std::chrono::milliseconds(0)) {
    return fail(Code::kDeadlineExceeded, hooks.prefix + ": no time was given");
  }
  const auto& handle = Access::handle(client);
  if (handle->core()->closed()) return fail(Core::closed_error());
  auto impl = std::make_shared<Impl>(handle, std::move(hooks));
  if (auto opened = impl->open(); !opened) {
    impl->end();
    return fail(std::move(opened.error()));
  }
  return Reloader(std::move(impl));
}

}  // namespace internal
}  // namespace v1
}  // namespace conclave
