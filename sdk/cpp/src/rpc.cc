#include "rpc.h"

#include <algorithm>
#include <utility>

#include "codec.h"
#include "core.h"

namespace conclave::inline v1::internal {

namespace {

constexpr std::chrono::milliseconds kAttemptMin{300};
constexpr std::chrono::milliseconds kTooLate{5};  // less than this left: another attempt is no use
constexpr int kHttpOk = 200;

// Texts with which etcd refuses before it proposes anything.
bool refused_before_proposal(const Error& error) {
  return error.message == "etcdserver: no leader" || error.message == "etcdserver: too many requests" ||
         error.message == "etcdserver: not capable" || error.message == "etcdserver: rpc not supported for learner";
}

}  // namespace

Call::Call(std::shared_ptr<Core> core, Request request, Done done)
    : core_(std::move(core)), request_(std::move(request)), done_(std::move(done)), backoff_(request_.pause_max) {}

void Call::start() {
  std::unique_lock lock(mutex_);
  if (core_->closed() && !request_.background) return finish(lock, fail(Core::closed_error()));
  if (BootClock::now() >= request_.deadline)
    return finish(lock, fail(Code::kDeadlineExceeded, "no time left to send anything"));
  lock.unlock();
  attempt();
}

// Reads are tried on each member in turn, each with its share of the time left.
TimePoint Call::attempt_deadline() const {
  const std::size_t members = core_->endpoints().size();
  const auto now = BootClock::now();
  if (request_.attempt_max < request_.deadline - now) return now + request_.attempt_max;
  if (members == 1) return request_.deadline;
  const auto left = std::min<std::chrono::nanoseconds>(request_.deadline - now, core_->call_timeout());
  const auto share = std::max<std::chrono::nanoseconds>(left / static_cast<int>(members), kAttemptMin);
  return std::min(request_.deadline, now + share);
}

void Call::attempt() {
  std::unique_lock lock(mutex_);
  if (over_) return;
  Endpoints& endpoints = core_->endpoints();
  if (!endpoints.any_untried(tried_)) tried_ = 0;
  endpoint_ = endpoints.choose(tried_);
  tried_ |= std::uint64_t{1} << endpoint_;
  const int number = ++attempt_;
  const auto self = shared_from_this();
  timer_ = core_->loop().at(attempt_deadline(), [self, number] { self->on_timer(number); });
  posting_ = true;
  lock.unlock();
  const TimePoint sent_at = BootClock::now();
  auto exchange = endpoints.member(endpoint_).post(
      request_.path, request_.body, request_.effect == Effect::kOnce,
      [self, number, sent_at](HttpReply reply) { self->on_reply(number, std::move(reply), sent_at); });
  lock.lock();
  posting_ = false;
  if (!over_ && attempt_ == number) {
    exchange_ = std::move(exchange);
  } else if (over_) {
    lock.unlock();
    exchange->cancel();
  }
}

Call::Failure Call::classify(const HttpReply& reply) const {
  const std::string& endpoint = core_->endpoints().url(endpoint_);
  Failure failure;
  failure.error.endpoint = endpoint;
  if (reply.status == 0 || !reply.failure.empty()) {
    failure.error.code = Code::kUnavailable;
    failure.error.message = reply.failure;
    failure.repeat = true;
    failure.bad_member = true;
    failure.may_have_happened = reply.sent;
    failure.unsent = !reply.sent;
    return failure;
  }
  const auto parsed = Json::parse(reply.body);
  auto error = parsed ? decode_error(*parsed) : std::nullopt;
  if (!error) {  // not the gateway: something between it and us
    failure.error.code = Code::kUnavailable;
    failure.error.message = "HTTP status " + std::to_string(reply.status) + " without etcd's error";
    failure.repeat = true;
    failure.bad_member = true;
    failure.may_have_happened = true;
    return failure;
  }
  failure.error = std::move(*error);
  failure.error.endpoint = endpoint;
  const bool refused = refused_before_proposal(failure.error);
  const bool transient = failure.error.code == Code::kUnavailable || failure.error.code == Code::kDeadlineExceeded;
  failure.repeat = refused || transient;
  failure.bad_member = transient;
  failure.may_have_happened =
      !refused && (transient || failure.error.code == Code::kUnknown || failure.error.code == Code::kInternal ||
                   failure.error.code == Code::kCancelled);
  return failure;
}

void Call::on_reply(int attempt, HttpReply reply, TimePoint sent_at) {
  std::unique_lock lock(mutex_);
  if (over_ || attempt != attempt_) return;
  core_->loop().cancel(timer_);
  exchange_ = nullptr;
  if (reply.status == kHttpOk && reply.failure.empty()) {
    auto json = Json::parse(reply.body);
    if (json && !core_->endpoints().belongs(endpoint_, header_cluster(*json))) {
      core_->log(LogLevel::kError, core_->endpoints().url(endpoint_) + " belongs to another cluster and is left");
      return failed(lock, {.error = {.code = Code::kUnavailable,
                                     .message = "the member belongs to another cluster",
                                     .endpoint = core_->endpoints().url(endpoint_)},
                           .repeat = true,
                           .bad_member = true,
                           .may_have_happened = true});
    }
    if (json && !decode_error(*json)) {
      core_->endpoints().good(endpoint_);
      return finish(lock, Reply{.json = std::move(*json),
                                .endpoint = core_->endpoints().url(endpoint_),
                                .sent_at = sent_at,
                                .uncertain = uncertain_});
    }
  }
  failed(lock, classify(reply));
}

void Call::failed(std::unique_lock<std::mutex>& lock, Failure failure) {
  if (failure.bad_member) {
    core_->endpoints().bad(endpoint_);
  } else {
    core_->endpoints().good(endpoint_);
  }
  const bool effect = request_.effect != Effect::kNone;
  uncertain_ = uncertain_ || (effect && failure.may_have_happened);
  if (uncertain_) failure.error.outcome = Outcome::kMayHaveHappened;
  last_error_ = failure.error;
  const bool allowed = request_.effect != Effect::kOnce || !uncertain_;
  const auto now = BootClock::now();
  if (!failure.repeat || !allowed || request_.deadline - now < kTooLate)
    return finish(lock, fail(std::move(failure.error)));
  // The budget is for members that answer: where nobody is reached, the back-off is enough.
  if (request_.budgeted && !failure.unsent && !core_->budget().take(now)) {
    failure.error.message += " (not repeated: too many retries in this minute)";
    return finish(lock, fail(std::move(failure.error)));
  }
  ++attempt_;
  std::chrono::nanoseconds delay{0};
  if (!core_->endpoints().any_untried(tried_))
    delay = std::min<std::chrono::nanoseconds>(backoff_.next(), (request_.deadline - now) / 2);
  const auto self = shared_from_this();
  timer_ = core_->loop().at(now + delay, [self] { self->attempt(); });
}

bool Call::given_up_unsent() { return !posting_ && (exchange_ == nullptr || exchange_->cancel_unsent()); }

// The server was asked and did not answer (kDeadlineExceeded), or nobody could be asked (the last error).
Error Call::out_of_time(bool unsent) const {
  if (unsent && !last_error_.message.empty()) return last_error_;
  Error error{.code = unsent ? Code::kUnavailable : Code::kDeadlineExceeded,
              .message = unsent ? "cannot connect in time" : "no answer in time",
              .endpoint = core_->endpoints().url(endpoint_)};
  if (request_.effect != Effect::kNone && (uncertain_ || !unsent)) error.outcome = Outcome::kMayHaveHappened;
  return error;
}

void Call::on_timer(int attempt) {
  std::unique_lock lock(mutex_);
  if (over_ || attempt != attempt_) return;
  if (posting_) {
    const auto self = shared_from_this();
    timer_ = core_->loop().at(after(kTooLate), [self, attempt] { self->on_timer(attempt); });
    return;
  }
  const bool final = BootClock::now() >= request_.deadline;
  if (!final && request_.effect == Effect::kOnce && !given_up_unsent()) {
    // It is with the member now: wait for the answer as long as the caller does.
    const auto self = shared_from_this();
    timer_ = core_->loop().at(request_.deadline, [self, attempt] { self->on_timer(attempt); });
    return;
  }
  const bool unsent = given_up_unsent();
  if (exchange_ && !unsent && !exchange_->cancel()) return;  // the answer is just coming in
  exchange_ = nullptr;
  core_->endpoints().bad(endpoint_);
  if (final) return finish(lock, fail(out_of_time(unsent)));
  failed(lock, {.error = {.code = Code::kUnavailable,
                          .message = unsent ? "cannot connect in time" : "no answer in time",
                          .endpoint = core_->endpoints().url(endpoint_)},
                .repeat = true,
                .bad_member = true,
                .may_have_happened = !unsent,
                .unsent = unsent});
}

void Call::cancel(Code code, std::string message) {
  std::unique_lock lock(mutex_);
  if (over_) return;
  const bool unsent = given_up_unsent();
  if (exchange_ && !unsent) exchange_->cancel();
  Error error{.code = code, .message = std::move(message)};
  if (request_.effect != Effect::kNone && (uncertain_ || !unsent)) error.outcome = Outcome::kMayHaveHappened;
  finish(lock, fail(std::move(error)));
}

void Call::finish(std::unique_lock<std::mutex>& lock, Result<Reply> result) {
  over_ = true;
  core_->loop().cancel(timer_);
  exchange_ = nullptr;
  const Done done = std::move(done_);
  lock.unlock();
  core_->forget(this);
  done(std::move(result));
}

}  // namespace conclave::inline v1::internal
