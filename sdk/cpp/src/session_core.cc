#include "session_core.h"

#include <algorithm>
#include <utility>

#include "codec.h"
#include "random.h"

namespace conclave::inline v1::internal {

namespace {

constexpr const char* kLeaseExists = "etcdserver: lease already exists";
constexpr std::chrono::milliseconds kAttemptMin{300};
constexpr std::chrono::seconds kRevokeMin{10};

Json lease_body(LeaseId lease) { return Json::object().set("ID", int64(number(lease))); }

LeaseId new_lease() {
  return LeaseId{static_cast<std::int64_t>(random_number() >> 1 | 1)};  // positive, never zero
}

}  // namespace

// The id is ours, so that an unanswered grant can be asked for again: "exists" then means granted.
Result<std::shared_ptr<SessionCore>> SessionCore::open(const std::shared_ptr<Core>& core, SessionOptions options) {
  const LeaseId lease = new_lease();
  const Json body = lease_body(lease).set("TTL", int64(options.ttl.count()));
  Request grant{.path = path::kLeaseGrant,
                .body = body.dump(),
                .effect = Effect::kIdempotent,
                .deadline = deadline_of(options.call, core->call_timeout())};
  const TimePoint deadline = grant.deadline;
  auto reply = core->call(std::move(grant), options.call.stop);
  std::int64_t ttl = reply ? reply->json["TTL"].integer() : 0;
  if (!reply && reply.error().message == kLeaseExists && reply.error().outcome == Outcome::kMayHaveHappened) {
    reply = core->call({.path = path::kLeaseKeepAlive,
                        .body = lease_body(lease).dump(),
                        .effect = Effect::kIdempotent,
                        .deadline = deadline},
                       options.call.stop);
    ttl = reply ? reply->json["result"]["TTL"].integer() : 0;
  }
  const std::chrono::seconds granted(ttl > 0 ? ttl : options.ttl.count());
  auto session = std::make_shared<SessionCore>(core, lease, granted, reply ? reply->sent_at : BootClock::now(),
                                               std::move(options.on_state));
  if (reply && ttl > 0) return session;
  if (reply || reply.error().outcome == Outcome::kMayHaveHappened) session->revoke_in_background();
  if (!reply) return fail(std::move(reply.error()));
  return fail(Code::kUnavailable, "the lease was granted but is gone already");
}

SessionCore::SessionCore(std::shared_ptr<Core> core, LeaseId lease, std::chrono::seconds ttl, TimePoint granted_at,
                         std::function<void(SessionState, const std::string&)> on_state)
    : core_(std::move(core)),
      lease_(lease),
      ttl_(ttl),
      generation_(core_->endpoints().generation()),
      on_state_(std::move(on_state)),
      callbacks_(core_->callback_queue("session")),
      acknowledged_(granted_at),
      deadline_(granted_at + ttl) {}

bool SessionCore::held() const {
  std::scoped_lock lock(mutex_);
  return state_ != SessionState::kLost && BootClock::now() < deadline_;
}

SessionState SessionCore::state() const {
  std::scoped_lock lock(mutex_);
  if (BootClock::now() >= deadline_) return SessionState::kLost;
  return state_;
}

std::string SessionCore::why() const {
  std::scoped_lock lock(mutex_);
  return why_.empty() ? "no keepalive was acknowledged within its TTL" : why_;
}

void SessionCore::start() {
  std::scoped_lock lock(mutex_);
  keep_alive_at(acknowledged_ + BootClock::duration(ttl_) / 3);
  arm();
}

// Wakes when the session becomes suspect, and when it is lost.
void SessionCore::arm() {
  if (state_ == SessionState::kLost) return;
  core_->loop().cancel(check_timer_);
  const TimePoint suspect = acknowledged_ + BootClock::duration(ttl_) * 2 / 3;
  const TimePoint when = state_ == SessionState::kLive && !orphaned_ ? suspect : deadline_;
  check_timer_ = core_->loop().at(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_timer();
  });
}

void SessionCore::on_timer() {
  std::unique_lock lock(mutex_);
  if (state_ == SessionState::kLost) return;
  if (BootClock::now() >= deadline_) {
    lock.unlock();
    return lose("no keepalive was acknowledged within its TTL", true);
  }
  if (state_ == SessionState::kLive && !orphaned_) {
    state_ = SessionState::kSuspect;
    tell(state_, "no keepalive was acknowledged for two thirds of the TTL");
  }
  arm();
}

void SessionCore::keep_alive_at(TimePoint when) {
  if (state_ == SessionState::kLost || orphaned_) return;
  core_->loop().cancel(keep_timer_);
  keep_timer_ = core_->loop().at(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->keep_alive();
  });
}

Request SessionCore::request(const char* path, TimePoint deadline) const {
  const std::chrono::milliseconds ttl = ttl_;
  return {.path = path,
          .body = lease_body(lease_).dump(),
          .effect = Effect::kIdempotent,
          .deadline = deadline,
          .attempt_max = std::max(ttl / 6, kAttemptMin),
          .pause_max = std::max(ttl / 20, std::chrono::milliseconds(50)),
          .budgeted = false};
}

void SessionCore::keep_alive() {
  TimePoint deadline;
  {
    std::scoped_lock lock(mutex_);
    if (state_ == SessionState::kLost || orphaned_ || asking_) return;
    asking_ = true;
    deadline = deadline_;
  }
  auto call = core_->start(request(path::kLeaseKeepAlive, deadline), [weak = weak_from_this()](Result<Reply> reply) {
    if (const auto self = weak.lock()) self->on_answer(std::move(reply));
  });
  std::scoped_lock lock(mutex_);
  if (asking_) call_ = std::move(call);
}

void SessionCore::on_answer(Result<Reply> reply) {
  std::unique_lock lock(mutex_);
  asking_ = false;
  call_ = nullptr;
  if (state_ == SessionState::kLost || orphaned_) return;
  const auto now = BootClock::now();
  if (!reply) {
    const bool gone = reply.error().code == Code::kNotFound;
    if (!gone) return keep_alive_at(now + BootClock::duration(ttl_) / 6);
    lock.unlock();
    return lose("the server says: " + reply.error().message, false);
  }
  const std::int64_t ttl = reply->json["result"]["TTL"].integer();
  const bool replaced = core_->endpoints().generation() != generation_;
  // An answer that comes after the deadline changes nothing: whoever asked held() was told that it is over.
  if (ttl <= 0 || replaced || now >= deadline_) {
    lock.unlock();
    if (replaced) return lose("the cluster was replaced by one with another history", true);
    if (ttl <= 0) return lose("the server says that the lease is gone", false);
    return lose("no keepalive was acknowledged within its TTL", true);
  }
  acknowledged_ = std::max(acknowledged_, reply->sent_at);
  deadline_ = std::max(deadline_, reply->sent_at + std::chrono::seconds(ttl));
  if (state_ == SessionState::kSuspect) {
    state_ = SessionState::kLive;
    tell(state_, "keepalives are acknowledged again");
  }
  keep_alive_at(reply->sent_at + BootClock::duration(ttl_) / 3);
  arm();
}

void SessionCore::check_now() {
  std::scoped_lock lock(mutex_);
  keep_alive_at(BootClock::now());
}

void SessionCore::tell(SessionState state, const std::string& why) {
  if (on_state_) callbacks_->post([self = shared_from_this(), state, why] { self->on_state_(state, why); });
}

void SessionCore::lose(const std::string& why, bool revoke, LogLevel level) {
  std::shared_ptr<Call> call;
  {
    std::scoped_lock lock(mutex_);
    if (state_ == SessionState::kLost) return;
    state_ = SessionState::kLost;
    why_ = why;
    revoke = revoke && !orphaned_;
    call = std::move(call_);
    core_->loop().cancel(check_timer_);
    core_->loop().cancel(keep_timer_);
    tell(state_, why);
  }
  core_->firing().fire(lost_);
  if (call) call->cancel(Code::kCancelled, "the session is lost");
  core_->log(level, "session " + hex(static_cast<std::uint64_t>(number(lease_))) + " ended: " + why);
  if (revoke) revoke_in_background();
}

void SessionCore::orphan() {
  std::shared_ptr<Call> call;
  {
    std::scoped_lock lock(mutex_);
    if (state_ == SessionState::kLost) return;
    orphaned_ = true;
    call = std::move(call_);
    core_->loop().cancel(keep_timer_);
    core_->loop().cancel(check_timer_);
    // The timer keeps the session alive from now on, so that lost() fires even if the object is gone.
    check_timer_ = core_->loop().at(deadline_, [self = shared_from_this()] { self->on_timer(); });
  }
  if (call) call->cancel(Code::kCancelled, "the session is left to expire");
}

void SessionCore::end_callbacks() { callbacks_->close(); }

void SessionCore::revoke_in_background() {
  const std::chrono::nanoseconds limit = std::max<std::chrono::nanoseconds>(2 * ttl_, kRevokeMin);
  Request revoke = request(path::kLeaseRevoke, BootClock::now() + limit);
  revoke.background = true;
  // Gone already (kNotFound) is as good; anything else, and the lease expires by itself.
  core_->start(std::move(revoke), [busy = core_->busy()](const Result<Reply>&) {});
}

Status SessionCore::revoke(const CallOptions& call) {
  auto reply = core_->call({.path = path::kLeaseRevoke,
                            .body = lease_body(lease_).dump(),
                            .effect = Effect::kIdempotent,
                            .deadline = deadline_of(call, core_->call_timeout())},
                           call.stop);
  if (reply || reply.error().code == Code::kNotFound) return {};
  revoke_in_background();
  return fail(std::move(reply.error()));
}

}  // namespace conclave::inline v1::internal
