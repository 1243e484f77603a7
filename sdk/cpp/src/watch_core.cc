// The streams of a watch: opened, changed over, let go. What they say is in watch_messages.cc.
#include "watch_core.h"

#include <algorithm>
#include <utility>

#include "codec.h"

namespace conclave::inline v1::internal {

namespace {

// How long after a renewed watch its progress is asked for: enough for the server to catch up with the position.
constexpr std::chrono::milliseconds kProgressDelay{500};
constexpr const char* kProgress = "{\"progress_request\":{}}\n";
constexpr int kHttpOk = 200;

}  // namespace

WatchCore::WatchCore(std::shared_ptr<Core> core, WatchOptions options)
    : core_(std::move(core)), options_(std::move(options)), next_(number(options_.from)) {}

template <class Change>
void WatchCore::change(Change&& change) {
  After after;
  std::function<void()> listener;
  {
    std::scoped_lock lock(mutex_);
    change(after);
    if (after.notify) {
      wake_.notify_all();
      listener = listener_;
    }
  }
  for (const auto& stream : after.cancel)
    if (stream) stream->cancel();
  if (listener) listener();
}

void WatchCore::start() {
  change([this](After&) { connect_later(false, {}); });
}

void WatchCore::set_listener(std::function<void()> listener) {
  std::scoped_lock lock(mutex_);
  listener_ = std::move(listener);
}

void WatchCore::end(Error why) {
  change([&](After& after) { stop(after, std::move(why)); });
}

void WatchCore::stop(After& after, Error why) {
  if (end_) return;
  end_ = std::move(why);
  drop_all(after);
  after.notify = true;
}

void WatchCore::drop_all(After& after) {
  for (Attempt& attempt : attempts_) after.cancel.push_back(std::move(attempt.stream));
  attempts_.clear();
}

WatchCore::Attempt* WatchCore::find(std::uint64_t id) {
  for (Attempt& attempt : attempts_)
    if (attempt.id == id) return &attempt;
  return nullptr;
}

// The first try after a failure is on another member at once, where there is one.
void WatchCore::drop(After& after, std::uint64_t id) {
  const Attempt* attempt = find(id);
  if (attempt == nullptr) return;
  core_->endpoints().bad(attempt->endpoint);
  const bool was_renewal = attempt->renewal;
  after.cancel.push_back(attempt->stream);
  std::erase_if(attempts_, [id](const Attempt& a) { return a.id == id; });
  const bool others = core_->endpoints().any_untried(tried_);
  std::chrono::nanoseconds delay{0};
  if (!others) delay = backoff_.next();
  if (was_renewal || attempts_.empty()) connect_later(was_renewal && !attempts_.empty(), delay);
}

void WatchCore::connect_later(bool renewal, std::chrono::nanoseconds delay) {
  if (end_ || paused_ || connecting_) return;
  connecting_ = true;
  core_->loop().at(BootClock::now() + delay, [weak = weak_from_this(), renewal] {
    if (const auto self = weak.lock()) self->connect(renewal);
  });
}

void WatchCore::connect(bool renewal) {
  std::uint64_t id = 0;
  std::size_t endpoint = 0;
  StreamRequest request{.path = path::kWatch};
  {
    std::scoped_lock lock(mutex_);
    connecting_ = false;
    if (end_ || paused_) return;
    Endpoints& endpoints = core_->endpoints();
    if (!endpoints.any_untried(tried_)) tried_ = 0;
    endpoint = endpoints.choose(tried_);
    tried_ |= std::uint64_t{1} << endpoint;
    id = ++last_id_;
    auto body = encode_watch(options_, Revision{next_}, core_->keys());
    request.head = body->dump() + "\n";  // was encoded once before, by open
    if (renewal) request.tail = kProgress;
    Attempt attempt;
    attempt.id = id;
    attempt.endpoint = endpoint;
    attempt.renewal = renewal;
    attempts_.push_back(std::move(attempt));
  }
  const auto weak = weak_from_this();
  auto stream = core_->endpoints().member(endpoint).stream(
      std::move(request),
      [weak, id](std::string_view piece) {
        if (const auto self = weak.lock()) self->on_data(id, piece);
      },
      [weak, id](const HttpReply& reply) {
        if (const auto self = weak.lock()) self->on_done(id, reply);
      });
  auto limit = core_->tuning().watch_create;
  if (renewal) {
    limit += kProgressDelay;
    core_->loop().at(after(kProgressDelay), [stream] { stream->finish(); });
  }
  core_->loop().at(after(limit), [weak, id] {
    if (const auto self = weak.lock()) self->on_create_timeout(id);
  });
  std::unique_lock lock(mutex_);
  if (Attempt* attempt = find(id)) {
    attempt->stream = std::move(stream);
    return;
  }
  lock.unlock();
  stream->cancel();
}

void WatchCore::on_create_timeout(std::uint64_t id) {
  change([&](After& after) {
    const Attempt* attempt = find(id);
    if (attempt != nullptr && !attempt->created) drop(after, id);
  });
}

void WatchCore::on_data(std::uint64_t id, std::string_view piece) {
  change([&](After& after) {
    Attempt* attempt = find(id);
    if (attempt == nullptr) return;
    last_message_ = BootClock::now();
    // A message may end the attempt, and with it the cutter: it works on its own copy.
    LineCutter lines = std::move(attempt->lines);
    const bool fits = lines.add(piece, [&](std::string_view line) { on_message(after, id, line); });
    if (!fits) return stop(after, {.code = Code::kInternal, .message = "a watch message without an end"});
    attempt = find(id);
    if (attempt != nullptr) attempt->lines = std::move(lines);
  });
}

void WatchCore::on_done(std::uint64_t id, const HttpReply& reply) {
  change([&](After& after) {
    const Attempt* attempt = find(id);
    if (attempt == nullptr) return;
    if (reply.status != 0 && reply.status != kHttpOk) {
      const auto parsed = Json::parse(reply.body);
      if (parsed && refused(after, *attempt, *parsed)) return;
    }
    drop(after, id);
  });
}

void WatchCore::arm_quiet_timer(std::chrono::nanoseconds delay) {
  core_->loop().at(BootClock::now() + delay, [weak = weak_from_this(), id = last_id_] {
    if (const auto self = weak.lock())
      self->change([&](After&) {
        if (self->last_id_ == id && self->find(id) != nullptr) self->on_quiet_timer();
      });
  });
}

void WatchCore::on_quiet_timer() {
  const auto quiet = BootClock::now() - last_message_;
  const std::chrono::nanoseconds limit = core_->tuning().watch_quiet;
  backoff_.reset();
  if (quiet < limit) return arm_quiet_timer(limit - quiet);
  connect_later(true, {});
}

}  // namespace conclave::inline v1::internal
