// What the streams of a watch say, the queue that it becomes, and its reader.
#include <algorithm>
#include <utility>

#include "codec.h"
#include "watch_core.h"

namespace conclave::inline v1::internal {

namespace {

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
