#include "candidate_core.h"

#include <utility>

#include "claim.h"
#include "thread.h"

namespace conclave::inline v1::internal {

namespace {
constexpr std::chrono::seconds kShortRound{1};  // what ends earlier is followed by a growing pause
}

CandidateCore::CandidateCore(std::shared_ptr<Core> core, CandidateOptions options)
    : core_(std::move(core)),
      options_(std::move(options)),
      callbacks_(core_->callback_queue("candidate for " + options_.election)) {}

void CandidateCore::start() {
  Lock lock(mutex_);
  thread_ = start_thread("conclave-lead", [self = shared_from_this(), stop = stop_.get_token()] { self->work(stop); });
  thread_id_ = thread_.get_id();
}

void CandidateCore::ask_to_stop(const std::string& why) {
  {
    Lock lock(mutex_);
    if (end_why_.empty()) end_why_ = why;
    if (state_ != CandidateState::kClosed && !farewell_ && thread_id_ != std::this_thread::get_id())
      farewell_ = core_->busy();
  }
  stop_.request_stop();
}

void CandidateCore::end() {
  ask_to_stop("the candidate was closed");
  join_or_detach(thread_);
  callbacks_->close();
}

Status CandidateCore::close(const CallOptions& call) {
  const TimePoint deadline = deadline_of(call, core_->call_timeout());
  std::shared_ptr<SessionCore> session;
  {
    Lock lock(mutex_);
    if (thread_id_ == std::this_thread::get_id())
      return fail(Code::kFailedPrecondition, "close() from inside `lead`: it would wait for itself");
  }
  ask_to_stop("the candidate was closed");
  {
    Lock lock(mutex_);
    if (!wait(lock, deadline, call.stop, [this] { return state_ == CandidateState::kClosed; }))
      return fail(call.stop.stop_requested() ? Code::kCancelled : Code::kDeadlineExceeded,
                  options_.election + ": `lead` has not returned yet; it resigns when it does",
                  Outcome::kMayHaveHappened);
    session = session_;
  }
  if (!session) return {};
  CallOptions rest{.stop = call.stop};
  if (deadline != kNever)
    rest.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - BootClock::now());
  auto revoked = session->revoke(rest);
  if (!revoked) revoked.error().outcome = Outcome::kMayHaveHappened;  // it is being revoked anyway
  return revoked;
}

CandidateState CandidateCore::state() const {
  Lock lock(mutex_);
  if (state_ == CandidateState::kLeading && !ownership_->held()) return CandidateState::kJoining;
  return state_;
}

Status CandidateCore::wait_ready(const CallOptions& call) {
  Lock lock(mutex_);
  const bool ready =
      wait(lock, deadline_of(call, std::nullopt), call.stop, [this] { return state_ != CandidateState::kJoining; });
  if (ready && state_ != CandidateState::kClosed) return {};
  if (ready) return fail(Code::kFailedPrecondition, end_why_);
  if (call.stop.stop_requested()) return fail(Code::kCancelled, "stopped by the caller");
  return fail(Code::kDeadlineExceeded,
              options_.election + ": not in the queue yet" + (why_.empty() ? std::string() : ": " + why_));
}

template <class Ready>
bool CandidateCore::wait(Lock& lock, TimePoint until, const std::stop_token& stop, Ready ready) {
  if (until == kNever) return wake_.wait(lock, stop, ready);
  return wake_.wait_until(lock, stop, until, ready);
}

void CandidateCore::set_state(Lock&, CandidateState state, const std::string& why) {
  why_ = why;
  if (state_ == state) return;
  state_ = state;
  if (options_.on_state) callbacks_->post([tell = options_.on_state, state, why] { tell(state, why); });
  wake_.notify_all();
}

// What keeps it out of the queue. The same thing again is not logged again.
void CandidateCore::trouble(const std::string& why, const std::stop_token& stop) {
  if (stop.stop_requested()) return;
  Lock lock(mutex_);
  if (why_ != why) core_->log(LogLevel::kWarning, "election " + options_.election + ": " + why);
  set_state(lock, CandidateState::kJoining, why);
}

void CandidateCore::pause(std::chrono::milliseconds time, const std::stop_token& stop) {
  Lock lock(mutex_);
  (void)wait(lock, after(time), stop, [] { return false; });
}

void CandidateCore::work(const std::stop_token& stop) {
  Backoff backoff;
  while (!stop.stop_requested()) {
    const TimePoint start = BootClock::now();
    stand(stop);
    if (BootClock::now() - start >= kShortRound) backoff.reset();
    pause(backoff.next(), stop);
  }
  leave();
}

// One round, as far as it gets.
void CandidateCore::stand(const std::stop_token& stop) {
  const auto session = hold_session(stop);
  if (!session) return trouble(to_string(session.error()), stop);
  const Claim claim(*session, options_.election, HoldKind::kLeadership);
  auto hold = claim.wait(options_.value, {.stop = stop}, [this] {
    Lock lock(mutex_);
    set_state(lock, CandidateState::kWaiting, "in the queue");
  });
  if (!hold) return trouble(to_string(hold.error()), stop);
  lead(std::move(*hold), stop);
}

Result<std::shared_ptr<SessionCore>> CandidateCore::hold_session(const std::stop_token& stop) {
  if (session_ && session_->held()) return session_;
  if (session_) session_->lose("no keepalive was acknowledged within its TTL", true);
  auto opened =
      SessionCore::open(core_, {.ttl = options_.ttl, .call = {.timeout = core_->call_timeout(), .stop = stop}});
  Lock lock(mutex_);
  session_ = opened ? *opened : nullptr;
  if (opened) session_->start();
  return opened;
}

// `lead`, and the end of the term: the key is removed in the background, and the next campaign waits for that.
void CandidateCore::lead(std::unique_ptr<Hold> hold, const std::stop_token& stop) {
  Leadership mine = Access::leadership(nullptr, std::move(hold));
  const auto ownership = Access::ownership(mine);
  {
    Lock lock(mutex_);
    ownership_ = ownership;
    set_state(lock, CandidateState::kLeading, "elected, token " + std::to_string(number(mine.token())));
  }
  std::string why = "`lead` returned";
  try {
    const AnyStop either{stop, ownership->lost()};
    options_.lead(mine, either.token());
  } catch (const std::exception& e) {
    why = std::string("`lead` threw: ") + e.what();
  } catch (...) {
    why = "`lead` threw";
  }
  if (why.starts_with("`lead` threw")) core_->log(LogLevel::kWarning, "election " + options_.election + ": " + why);
  if (stop.stop_requested()) return;
  if (ownership->lost().stop_requested() || !session_->held()) why = "the term was lost: " + ownership->why();
  Lock lock(mutex_);
  set_state(lock, CandidateState::kJoining, why);
}

void CandidateCore::leave() {
  if (session_) session_->lose("the candidate was closed", true, LogLevel::kInfo);
  std::shared_ptr<void> farewell;  // after the mutex is free
  Lock lock(mutex_);
  set_state(lock, CandidateState::kClosed, end_why_);
  farewell = std::move(farewell_);
}

}  // namespace conclave::inline v1::internal
