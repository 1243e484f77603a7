#include "conclave/leader_view.h"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "core.h"
#include "list_watch.h"

namespace conclave {
inline namespace v1 {

namespace internal {

// All candidates of one election, in the order of their turn.
class LeaderCore : public std::enable_shared_from_this<LeaderCore> {
 public:
  LeaderCore(const std::shared_ptr<Core>& core, LeaderViewOptions options)
      : core_(core),
        options_(std::move(options)),
        range_(options_.election + "/"),
        callbacks_(core->callback_queue("leader of " + options_.election)) {}

  void start();
  void close(Error why);  // what it knows stays; what waits gets `why`
  void end_callbacks() { callbacks_->close(); }

  Status wait_ready(const CallOptions& call);
  std::shared_ptr<const LeaderSnapshot> snapshot() const {
    std::scoped_lock lock(mutex_);
    return now_;
  }

 private:
  void on_list(const RangeResult& all);
  void on_batch(const WatchBatch& batch);
  void on_trouble(const Error& error);
  // With mutex_ held:
  void put(const KeyValue& kv);
  void remove(const std::string& key);
  std::optional<Leader> oldest();
  void publish(Revision revision);
  void tell();

  const std::shared_ptr<Core> core_;
  const LeaderViewOptions options_;
  const std::string range_;
  const std::unique_ptr<CallbackQueue> callbacks_;
  std::shared_ptr<ListWatch> list_watch_;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::map<std::string, std::int64_t> created_;                          // by key
  std::map<std::pair<std::int64_t, std::string>, KeyValue> candidates_;  // by create revision, then key
  std::shared_ptr<const LeaderSnapshot> now_ = std::make_shared<const LeaderSnapshot>();
  std::shared_ptr<const LeaderSnapshot> told_;
  std::string named_;  // the key below this name that was logged last
  std::string trouble_;
  std::optional<Error> closed_;
  bool telling_ = false;  // a callback waits, and will see the newest
};

void LeaderCore::start() {
  const auto weak = weak_from_this();
  ListWatch::Hooks hooks;
  hooks.on_list = [weak](const RangeResult& all) {
    if (const auto self = weak.lock()) self->on_list(all);
  };
  hooks.on_batch = [weak](const WatchBatch& batch) {
    if (const auto self = weak.lock()) self->on_batch(batch);
  };
  hooks.on_trouble = [weak](const Error& error) {
    if (const auto self = weak.lock()) self->on_trouble(error);
  };
  list_watch_ = std::make_shared<ListWatch>(core_, range_, std::move(hooks));
  list_watch_->start();
}

void LeaderCore::close(Error why) {
  list_watch_->end();
  std::scoped_lock lock(mutex_);
  if (!closed_) closed_ = std::move(why);
  wake_.notify_all();
}

void LeaderCore::on_list(const RangeResult& all) {
  std::scoped_lock lock(mutex_);
  created_.clear();
  candidates_.clear();
  for (const KeyValue& kv : all.kvs) put(kv);
  publish(all.revision);
}

void LeaderCore::on_batch(const WatchBatch& batch) {
  std::scoped_lock lock(mutex_);
  for (const Event& event : batch.events) {
    if (event.type == EventType::kPut) {
      put(event.kv);
    } else {
      remove(event.kv.key);
    }
  }
  publish(batch.revision);
}

void LeaderCore::on_trouble(const Error& error) {
  std::scoped_lock lock(mutex_);
  trouble_ = to_string(error);
}

void LeaderCore::put(const KeyValue& kv) {
  remove(kv.key);
  const std::int64_t created = number(kv.create_revision);
  created_.emplace(kv.key, created);
  candidates_.emplace(std::pair(created, kv.key), kv);
}

void LeaderCore::remove(const std::string& key) {
  const auto it = created_.find(key);
  if (it == created_.end()) return;
  candidates_.erase(std::pair(it->second, key));
  created_.erase(it);
}

// Nobody can be elected behind a key of a name below this one.
std::optional<Leader> LeaderCore::oldest() {
  if (candidates_.empty()) return std::nullopt;
  const KeyValue& kv = candidates_.begin()->second;
  if (kv.key.find('/', range_.size()) != std::string::npos) {
    if (named_ != kv.key)
      core_->log(LogLevel::kWarning,
                 kv.key + " belongs to a name below " + options_.election + ", which has no leader");
    named_ = kv.key;
    return std::nullopt;
  }
  return Leader{.value = kv.value, .key = kv.key, .token = Token{number(kv.create_revision)}, .lease = kv.lease};
}

void LeaderCore::publish(Revision revision) {
  now_ = std::make_shared<const LeaderSnapshot>(LeaderSnapshot{.leader = oldest(), .revision = revision});
  wake_.notify_all();
  if (!options_.on_change || telling_) return;
  if (told_ && told_->leader == now_->leader) return;
  telling_ = true;
  callbacks_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tell();
  });
}

void LeaderCore::tell() {
  std::shared_ptr<const LeaderSnapshot> now;
  {
    std::scoped_lock lock(mutex_);
    telling_ = false;                                    // first: what is published from here on is told again
    if (told_ && told_->leader == now_->leader) return;  // it changed back meanwhile
    told_ = now = now_;
  }
  options_.on_change(now->leader);
}

Status LeaderCore::wait_ready(const CallOptions& call) {
  const auto ready = [this] { return number(now_->revision) != 0 || closed_.has_value(); };
  const TimePoint until = deadline_of(call, std::nullopt);
  std::unique_lock lock(mutex_);
  if (until == kNever) {
    wake_.wait(lock, call.stop, ready);
  } else {
    wake_.wait_until(lock, call.stop, until, ready);
  }
  if (number(now_->revision) != 0) return {};
  if (closed_) return fail(*closed_);
  if (call.stop.stop_requested()) return fail(Code::kCancelled, "stopped by the caller");
  return fail(Code::kDeadlineExceeded,
              options_.election + ": not known yet" + (trouble_.empty() ? std::string() : ": " + trouble_));
}

}  // namespace internal

class LeaderView::Impl {
 public:
  Impl(std::shared_ptr<internal::Handle> handle, LeaderViewOptions options)
      : handle_(std::move(handle)), view(std::make_shared<internal::LeaderCore>(handle_->core(), std::move(options))) {
    view->start();
    closer_ = handle_->core()->on_close([view = view] { view->close(internal::Core::closed_error()); });
  }
  ~Impl() {
    handle_->core()->forget_close(closer_);
    view->close({.code = Code::kFailedPrecondition, .message = "the view is closed"});
    view->end_callbacks();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

 private:
  const std::shared_ptr<internal::Handle> handle_;  // ends last

 public:
  const std::shared_ptr<internal::LeaderCore> view;

 private:
  std::uint64_t closer_ = 0;
};

LeaderView::LeaderView(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
LeaderView::LeaderView(LeaderView&&) noexcept = default;
LeaderView& LeaderView::operator=(LeaderView&&) noexcept = default;
LeaderView::~LeaderView() = default;

Result<LeaderView> LeaderView::open(const Client& client, LeaderViewOptions options) {
  if (options.election.empty()) return fail(Code::kInvalidArgument, "election: missing");
  const auto& handle = internal::Access::handle(client);
  if (handle->core()->closed()) return fail(internal::Core::closed_error());
  return LeaderView(std::make_shared<Impl>(handle, std::move(options)));
}

Status LeaderView::wait_ready(CallOptions call) const { return impl_->view->wait_ready(call); }
std::shared_ptr<const LeaderSnapshot> LeaderView::snapshot() const { return impl_->view->snapshot(); }
std::optional<Leader> LeaderView::leader() const { return snapshot()->leader; }

}  // namespace v1
}  // namespace conclave
