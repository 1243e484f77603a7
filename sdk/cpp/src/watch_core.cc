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
constexpr std::size_t kEventOverhead = 200;  // bytes, beside key and value

std::size_t weight(const WatchBatch& batch) {
  std::size_t bytes = kEventOverhead;
  for (const Event& event : batch.events) {
    bytes += kEventOverhead + event.kv.key.size() + event.kv.value.size();
    if (event.previous) bytes += event.previous->key.size() + event.previous->value.size();
  }
  return bytes;
}

bool permanent(Code code) {
  return usual_outcome(code) == Outcome::kNeverWorks || code == Code::kNotFound || code == Code::kFailedPrecondition;
}

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

// What will never work ends the watch.
bool WatchCore::refused(After& after, const Attempt& attempt, const Json& answer) {
  auto error = decode_error(answer);
  if (!error || !permanent(error->code)) return false;
  error->outcome = Outcome::kNeverWorks;
  error->endpoint = core_->endpoints().url(attempt.endpoint);
  stop(after, std::move(*error));
  return true;
}

void WatchCore::on_message(After& after, std::uint64_t id, std::string_view line) {
  Attempt* attempt = find(id);
  if (attempt == nullptr || line.empty()) return;
  const auto message = Json::parse(line);
  if (message && refused(after, *attempt, *message)) return;
  if (!message || !message->has("result")) return drop(after, id);
  const Json& result = (*message)["result"];
  if (result["canceled"].boolean()) return on_cancelled(after, *attempt, result);
  if (result["created"].boolean()) on_created(after, *attempt, result);
  attempt = find(id);
  if (attempt == nullptr || !attempt->created) return;
  if (!result["created"].boolean()) backoff_.reset();  // it works, not only begins
  if (!result["events"].items().empty()) {
    on_events(after, result);
  } else if (!result["created"].boolean()) {
    moved_to(number(header_revision(result)));  // progress: all up to here has been sent
  }
}

void WatchCore::on_created(After& after, Attempt& attempt, const Json& result) {
  Endpoints& endpoints = core_->endpoints();
  const std::uint64_t id = attempt.id;
  if (!endpoints.belongs(attempt.endpoint, header_cluster(result))) return drop(after, id);
  endpoints.good(attempt.endpoint);
  const std::int64_t revision = number(header_revision(result));
  const bool replaced = ready_ && endpoints.generation() != generation_;
  generation_ = endpoints.generation();
  tried_ = std::uint64_t{1} << attempt.endpoint;  // should it fail right away, others come first
  attempt.created = true;
  attempt.renewal = false;
  if (next_ == 0) next_ = revision + 1;
  ready_ = true;
  after.notify = true;
  for (Attempt& other : attempts_)
    if (other.id != id) after.cancel.push_back(std::move(other.stream));
  std::erase_if(attempts_, [id](const Attempt& a) { return a.id != id; });
  if (replaced) return gap(after, Revision{revision + 1}, "the cluster was replaced by one with another history");
  arm_quiet_timer(core_->tuning().watch_quiet);
}

void WatchCore::on_cancelled(After& after, Attempt& attempt, const Json& result) {
  const std::int64_t compacted = result["compact_revision"].integer();
  if (compacted > 0) return gap(after, Revision{compacted + 1}, "the history was compacted");
  if (attempt.created) return drop(after, attempt.id);  // a server that is going away
  stop(after, {.code = Code::kInvalidArgument,
               .outcome = Outcome::kNeverWorks,
               .message = result["cancel_reason"].text(),
               .endpoint = core_->endpoints().url(attempt.endpoint)});
}

void WatchCore::gap(After& after, Revision resume, std::string reason) {
  WatchBatch batch;
  batch.gap =
      Gap{.after = Revision{std::max<std::int64_t>(next_ - 1, 0)}, .resume = resume, .reason = std::move(reason)};
  batch.revision = Revision{number(resume) - 1};
  next_ = number(resume);
  queue(after, std::move(batch));
  drop_all(after);
  connect_later(false, {});
}

void WatchCore::on_events(After& after, const Json& result) {
  WatchBatch batch;
  const auto flush = [&] {
    const std::int64_t revision = number(batch.revision);
    if (!batch.events.empty() && revision >= next_) {
      next_ = revision + 1;
      queue(after, std::move(batch));
    }
    batch = {};
  };
  for (const Json& item : result["events"].items()) {
    const Revision revision{item["kv"]["mod_revision"].integer()};
    if (revision != batch.revision) flush();
    batch.revision = revision;
    if (number(revision) >= next_) batch.events.push_back(decode_event(item, core_->keys()));
  }
  flush();
  if (queue_bytes_ <= core_->tuning().watch_queue_bytes) return;
  paused_ = true;  // memory is bounded; the position is kept, so nothing is lost
  drop_all(after);
}

void WatchCore::moved_to(std::int64_t revision) { next_ = std::max(next_, revision + 1); }

void WatchCore::queue(After& after, WatchBatch batch) {
  queue_bytes_ += weight(batch);
  queue_.push_back(std::move(batch));
  after.notify = true;
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

std::optional<WatchBatch> WatchCore::try_next() {
  std::scoped_lock lock(mutex_);
  if (queue_.empty()) return std::nullopt;
  WatchBatch batch = std::move(queue_.front());
  queue_.pop_front();
  queue_bytes_ -= std::min(queue_bytes_, weight(batch));
  taken();
  return batch;
}

void WatchCore::taken() {
  if (!paused_ || queue_bytes_ > core_->tuning().watch_queue_bytes / 2) return;
  paused_ = false;
  connect_later(false, {});
}

bool WatchCore::has_batch() const {
  std::scoped_lock lock(mutex_);
  return !queue_.empty();
}

std::optional<Error> WatchCore::ended() const {
  std::scoped_lock lock(mutex_);
  return queue_.empty() ? end_ : std::nullopt;
}

namespace {

template <class Ready>
Status wait(std::unique_lock<std::mutex>& lock, std::condition_variable_any& wake, TimePoint deadline,
            const std::stop_token& stop, Ready ready) {
  if (deadline == kNever) {
    wake.wait(lock, stop, ready);
  } else {
    wake.wait_until(lock, stop, deadline, ready);
  }
  if (ready()) return {};
  if (stop.stop_requested()) return fail(Code::kCancelled, "stopped by the caller");
  return fail(Code::kDeadlineExceeded, "nothing came in time");
}

}  // namespace

Result<WatchBatch> WatchCore::next(TimePoint deadline, const std::stop_token& stop) {
  {
    std::unique_lock lock(mutex_);
    if (auto waited = wait(lock, wake_, deadline, stop, [this] { return !queue_.empty() || end_; }); !waited)
      return fail(std::move(waited.error()));
    if (queue_.empty()) return fail(*end_);
  }
  return *try_next();  // one reader at a time: nobody else took it
}

Status WatchCore::wait_ready(TimePoint deadline, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (auto waited = wait(lock, wake_, deadline, stop, [this] { return ready_ || end_; }); !waited) return waited;
  if (!ready_) return fail(*end_);
  return {};
}

Revision WatchCore::synced() const {
  std::scoped_lock lock(mutex_);
  const std::int64_t first = queue_.empty() ? next_ : number(queue_.front().revision);
  return Revision{std::max<std::int64_t>(first - 1, 0)};
}

}  // namespace conclave::inline v1::internal
