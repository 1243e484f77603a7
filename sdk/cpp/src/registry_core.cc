#include "registry_core.h"

#include <algorithm>
#include <utility>

#include "random.h"
#include "record.h"
#include "thread.h"

namespace conclave::inline v1::internal {

namespace {

constexpr std::chrono::milliseconds kIdlePoll{50};  // how often drain() asks whether the program is idle
constexpr std::size_t kRegistrationsMax = 1000;

}  // namespace

RegistrationCore::RegistrationCore(ServiceOptions options, Instance instance, std::unique_ptr<CallbackQueue> queue)
    : key(record_key(instance)),
      id(instance.id),
      check(std::move(options.health)),
      on_state(std::move(options.on_state)),
      callbacks(std::move(queue)),
      record(std::move(instance)),
      health_known(check.check == nullptr),
      filter(check.fall, check.rise) {
  if (!health_known) why = "the first health check has not answered yet";
}

RegistryCore::RegistryCore(std::shared_ptr<Core> core, std::chrono::seconds ttl) : core_(std::move(core)), ttl_(ttl) {}

void RegistryCore::start() {
  worker_ = start_thread("conclave-reg", [self = shared_from_this(), stop = stop_.get_token()] { self->work(stop); });
}

void RegistryCore::end(const std::string& why) {
  std::vector<Instance> leaving;
  std::shared_ptr<SessionCore> session;
  {
    Lock lock(mutex_);
    if (ended_) return;
    ended_ = true;
  }
  stop_.request_stop();
  join_or_detach(worker_);
  join_or_detach(health_);
  on_lost_.reset();
  {
    Lock lock(mutex_);
    session = std::move(session_);
    for (const auto& registration : registrations_) {
      end_watch(*registration);
      if (registration->in_cluster) leaving.push_back(registration->record);
      if (!registration->final()) set_state(*registration, RegistrationState::kGone, why);
    }
    registrations_.clear();
  }
  if (session) say_farewell(core_, std::move(session), leaving);
}

Result<RegistrationPtr> RegistryCore::add(ServiceOptions options) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Instance instance;  // assigned to: GCC 12 takes the defaults of an initialiser list for uninitialised
  instance.id = options.id;
  instance.service = options.service;
  instance.address = options.address;
  instance.port = options.port;
  instance.version = options.version;
  instance.zone = options.zone;
  instance.weight = options.weight;
  instance.metadata = options.metadata;
  instance.start = random_hex(16);
  instance.started_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  auto queue = core_->callback_queue("registration " + instance.service + "/" + instance.id);
  auto registration = std::make_shared<RegistrationCore>(std::move(options), std::move(instance), std::move(queue));
  Lock lock(mutex_);
  if (ended_) return fail(Core::closed_error());
  if (registrations_.size() >= kRegistrationsMax)
    return fail(Code::kResourceExhausted, "at most " + std::to_string(kRegistrationsMax) + " in one registry");
  for (const auto& other : registrations_) {
    if (other->key == registration->key && !other->final() && !other->removal)
      return fail(Code::kInvalidArgument, registration->key + " is registered by this registry already");
  }
  registrations_.push_back(registration);
  if (registration->check.check && !health_.joinable()) {
    health_ = start_thread("conclave-health",
                           [self = shared_from_this(), stop = stop_.get_token()] { self->check_health(stop); });
    health_id_ = health_.get_id();
  }
  changed();
  return registration;
}

void RegistryCore::forget(const RegistrationPtr& registration) {
  {
    Lock lock(mutex_);
    registration->removal = true;
    changed();
    if (health_id_ != std::this_thread::get_id()) wake_.wait(lock, [&] { return checking_ != registration; });
  }
  registration->callbacks->close();
}

RegistrationState RegistryCore::state(const RegistrationPtr& registration) const {
  Lock lock(mutex_);
  return registration->state;
}

void RegistryCore::changed() {
  ++changes_;
  wake_.notify_all();
}

void RegistryCore::set_state(RegistrationCore& registration, RegistrationState state, const std::string& why) {
  registration.why = why;
  if (registration.state != state) {
    registration.state = state;
    if (registration.on_state)
      registration.callbacks->post([tell = registration.on_state, state, why] { tell(state, why); });
  }
  changed();
}

Status RegistryCore::wait(Lock& lock, TimePoint until, const std::stop_token& stop,
                          const std::function<bool()>& ready) {
  if (until == kNever) {
    wake_.wait(lock, stop, ready);
  } else {
    wake_.wait_until(lock, stop, until, ready);
  }
  if (ready()) return {};
  if (stop.stop_requested()) return fail(Code::kCancelled, "stopped by the caller");
  return fail(Code::kDeadlineExceeded, "not in time");
}

Status RegistryCore::wait_ready(const RegistrationPtr& registration, const CallOptions& call) {
  Lock lock(mutex_);
  auto waited = wait(lock, deadline_of(call, std::nullopt), call.stop,
                     [&] { return registration->state != RegistrationState::kRegistering; });
  if (!waited) {
    waited.error().message = "not registered yet" + (registration->why.empty() ? "" : ": " + registration->why);
    return waited;
  }
  if (registration->state == RegistrationState::kRegistered) return {};
  return fail(registration->state == RegistrationState::kDisplaced ? Code::kAborted : Code::kFailedPrecondition,
              registration->why);
}

Status RegistryCore::drain(const RegistrationPtr& registration, const DrainOptions& options) {
  const TimePoint grace_over = after(options.grace);
  Lock lock(mutex_);
  if (registration->state == RegistrationState::kGone) return {};
  if (registration->state == RegistrationState::kDisplaced) return fail(Code::kAborted, registration->why);
  registration->record.draining = true;
  registration->write = true;
  set_state(*registration, RegistrationState::kDraining, "draining");
  // Others must know before the grace is of use; but a cluster that does not answer must not make it longer.
  (void)wait(lock, std::min(grace_over, deadline_of(options.call, core_->call_timeout())), options.call.stop,
             [&] { return registration->draining_stored || !registration->in_cluster || registration->final(); });
  while (registration->in_cluster && !registration->final() && !options.call.stop.stop_requested() &&
         BootClock::now() < grace_over) {
    if (options.idle) {
      lock.unlock();
      const bool idle = options.idle();
      lock.lock();
      if (idle) break;
    }
    const TimePoint step = options.idle ? std::min(grace_over, after(kIdlePoll)) : grace_over;
    (void)wait(lock, step, options.call.stop, [&] { return registration->final(); });
  }
  registration->removal = true;
  registration->retry_at = {};
  changed();
  auto gone = wait(lock, deadline_of(options.call, core_->call_timeout()), options.call.stop,
                   [&] { return registration->final(); });
  if (!gone) {
    gone.error().message += "; it is removed in the background, or expires with its lease";
    gone.error().outcome = Outcome::kMayHaveHappened;
    return gone;
  }
  if (registration->state == RegistrationState::kDisplaced) return fail(Code::kAborted, registration->why);
  return {};
}

// The user's checks, one after the other, each when it is due.
void RegistryCore::check_health(const std::stop_token& stop) {
  Lock lock(mutex_);
  while (!stop.stop_requested()) {
    TimePoint wake_at = kNever;
    RegistrationPtr due;
    for (const auto& registration : registrations_) {
      if (!registration->check.check || registration->removal || registration->final()) continue;
      if (registration->check_at < wake_at) {
        wake_at = registration->check_at;
        due = registration;
      }
    }
    if (!due || wake_at > BootClock::now()) {
      const auto count = registrations_.size();
      (void)wait(lock, wake_at, stop, [&] { return registrations_.size() != count; });
      continue;
    }
    checking_ = due;
    lock.unlock();
    Health answer;
    try {
      answer = due->check.check();
    } catch (const std::exception& e) {
      answer = Health::critical(std::string("the check threw: ") + e.what());
    } catch (...) {
      answer = Health::critical("the check threw");
    }
    if (!valid_utf8(answer.reason)) answer.reason = "(the reason is not UTF-8)";
    if (answer.reason.size() > kReasonBytesMax) {
      std::size_t cut = kReasonBytesMax;
      while ((static_cast<unsigned char>(answer.reason[cut]) & 0xC0) == 0x80) --cut;  // not inside a character
      answer.reason.resize(cut);
    }
    lock.lock();
    checking_ = nullptr;
    due->check_at = after(due->check.every);
    if (auto changed = due->filter.observe(std::move(answer))) {
      due->record.health = std::move(*changed);
      if (!due->health_known) due->why.clear();
      due->health_known = true;
      due->write = true;
    }
    changed();
  }
}

}  // namespace conclave::inline v1::internal
