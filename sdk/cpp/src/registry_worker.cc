// The worker thread of a registry: the lease, and each registration's way into and out of the cluster.
#include <algorithm>
#include <utility>

#include "codec.h"
#include "random.h"
#include "record.h"
#include "registry_core.h"

namespace conclave::inline v1::internal {

namespace {

constexpr const char* kLeaseNotFound = "etcdserver: requested lease not found";
constexpr std::chrono::seconds kFarewellCall{2};
constexpr std::chrono::seconds kSecondPass{1};  // after a removal that an unanswered put may follow
constexpr std::chrono::seconds kWatchAgain{2};  // after the server refused to watch the key

// Stands on the server for "the key as this lease made it": a newer instance's key has another lease.
Compare still_ours(const std::string& key, const SessionCore& session) {
  return compare::lease(key) == session.lease();
}

// Of two registrations of one id: which came later. The text decides what the clock does not.
bool newer(const Instance& a, const Instance& b) {
  return a.started_ms != b.started_ms ? a.started_ms > b.started_ms : a.start > b.start;
}

}  // namespace

void RegistryCore::work(const std::stop_token& stop) {
  Lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (lease_lost_) give_up_lease(lock);
    const std::uint64_t seen = changes_;
    std::erase_if(registrations_, [](const RegistrationPtr& r) { return r->final(); });
    for (const auto& registration : registrations_) read_watch(*registration);
    TimePoint wake_at = kNever;
    if (const RegistrationPtr due = next(wake_at)) {
      if (due->removal || hold_lease(lock, stop)) {
        settle(lock, due, stop);
        continue;
      }
      wake_at = std::min(wake_at, lease_retry_at_);
    }
    (void)wait(lock, wake_at, stop, [&] { return changes_ != seen; });
  }
}

// The next registration with something to do, else when to look again. Of two with one key, the earlier goes first: it
// is on its way out.
RegistrationPtr RegistryCore::next(TimePoint& wake_at) const {
  const auto now = BootClock::now();
  for (std::size_t i = 0; i < registrations_.size(); ++i) {
    const RegistrationPtr& registration = registrations_[i];
    const bool work =
        registration->removal || (registration->health_known && (registration->look || registration->write));
    if (!work || registration->final()) continue;
    const auto same = [&](const RegistrationPtr& other) { return other->key == registration->key && !other->final(); };
    if (std::find_if(registrations_.begin(), registrations_.end(), same) !=
        registrations_.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    if (registration->retry_at <= now) return registration;
    wake_at = std::min(wake_at, registration->retry_at);
  }
  return nullptr;
}

bool RegistryCore::hold_lease(Lock& lock, const std::stop_token& stop) {
  if (session_) return true;
  if (BootClock::now() < lease_retry_at_) return false;
  lock.unlock();
  auto opened = SessionCore::open(core_, {.ttl = ttl_, .call = {.timeout = core_->call_timeout(), .stop = stop}});
  lock.lock();
  if (!opened) {
    lease_retry_at_ = after(lease_backoff_.next());
    for (const auto& registration : registrations_)
      if (registration->health_known) registration->why = to_string(opened.error());
    return false;
  }
  lease_backoff_.reset();
  session_ = std::move(*opened);
  const auto session = session_;
  lock.unlock();
  session->start();
  on_lost_.emplace(session->lost(), [weak = weak_from_this(), lease = session->lease()] {
    const auto self = weak.lock();
    if (!self) return;
    Lock inner(self->mutex_);
    if (!self->session_ || self->session_->lease() != lease) return;
    self->lease_lost_ = true;
    self->changed();
  });
  lock.lock();
  return true;
}

// All registrations start over, under the next lease.
void RegistryCore::give_up_lease(Lock& lock) {
  lease_lost_ = false;
  const auto session = std::move(session_);
  session_ = nullptr;
  lock.unlock();
  on_lost_.reset();
  if (session) session->lose("the server does not know its lease", false);
  lock.lock();
  for (const auto& registration : registrations_) {
    registration->in_cluster = false;
    registration->draining_stored = false;
    registration->uncertain = false;
    registration->look = true;
    registration->write = true;
    registration->retry_at = {};
    if (registration->state == RegistrationState::kRegistered)
      set_state(*registration, RegistrationState::kRegistering,
                "the lease was lost (" + (session ? session->why() : std::string()) + "); registering again");
  }
  changed();
}

void RegistryCore::settle(Lock& lock, const RegistrationPtr& registration, const std::stop_token& stop) {
  if (registration->removal) return remove(lock, registration, stop);
  if (registration->record.draining && !registration->in_cluster) {  // expired while draining: it is out already
    registration->look = false;
    registration->write = false;
    return;
  }
  if (registration->look && !look(lock, registration, stop)) return;
  if (registration->write && !registration->final() && session_) write(lock, registration, stop);
}

Request RegistryCore::request(const char* path, std::string body, Effect effect) const {
  return {.path = path,
          .body = std::move(body),
          .effect = effect,
          .deadline = after(core_->call_timeout()),
          .attempt_max = core_->call_timeout() / 2,
          .budgeted = false};
}

Result<TxnResult> RegistryCore::commit(Lock& lock, const Txn& txn, const std::stop_token& stop) {
  lock.unlock();
  auto body = encode_txn(txn, core_->keys());
  Result<Reply> reply =
      body ? core_->call(request(path::kTxn, body->dump(), Effect::kIdempotent), stop) : fail(std::move(body.error()));
  lock.lock();
  if (!reply) return fail(std::move(reply.error()));
  return decode_txn(reply->json, core_->keys());
}

void RegistryCore::failed(RegistrationCore& registration, const Error& error) {
  if (error.code == Code::kNotFound || error.message == kLeaseNotFound) {
    lease_lost_ = true;
    return;
  }
  if (registration.why != to_string(error)) core_->log(LogLevel::kWarning, registration.key + ": " + to_string(error));
  registration.why = to_string(error);
  registration.retry_at = after(registration.backoff.next());
}

void RegistryCore::displaced(RegistrationCore& registration, const Instance& by) {
  registration.in_cluster = false;
  end_watch(registration);
  set_state(registration, RegistrationState::kDisplaced,
            "a newer instance took the id " + registration.id + ": " + by.host_port() + ", start " + by.start);
}

// What the key holds now. A first registration takes the id over; later on, a newer instance keeps it.
bool RegistryCore::look(Lock& lock, const RegistrationPtr& registration, const std::stop_token& stop) {
  RegistrationCore& own = *registration;
  lock.unlock();
  auto body = encode_range({.key = own.key}, core_->keys());
  Result<Reply> reply =
      body ? core_->call(request(path::kRange, body->dump(), Effect::kNone), stop) : fail(std::move(body.error()));
  lock.lock();
  if (!reply) {
    failed(own, reply.error());
    return false;
  }
  const RangeResult found = decode_range(reply->json, core_->keys());
  own.look = false;
  if (found.kvs.empty()) {
    own.mod_revision = 0;
    own.write = true;
    if (own.state == RegistrationState::kRegistered)
      set_state(own, RegistrationState::kRegistering, "its key was deleted; registering again");
    return true;
  }
  const KeyValue& kv = found.kvs.front();
  const auto there = decode_record(kv.key, kv.value);
  if (there && there->start != own.record.start && own.ever && newer(*there, own.record)) {
    displaced(own, *there);
    return true;
  }
  own.mod_revision = number(kv.mod_revision);
  own.write = true;
  if (there && there->start == own.record.start && session_ && kv.lease == session_->lease()) {
    own.ever = true;
    own.in_cluster = true;
    own.draining_stored = there->draining;
    own.write = kv.value != encode_record(own.record);
    start_watch(registration);
    if (!own.write && own.state == RegistrationState::kRegistering)
      set_state(own, RegistrationState::kRegistered, "registered");
  }
  return true;
}

void RegistryCore::write(Lock& lock, const RegistrationPtr& registration, const std::stop_token& stop) {
  RegistrationCore& own = *registration;
  const std::string text = encode_record(own.record);
  const bool draining = own.record.draining;
  own.in_cluster = true;
  Txn txn;
  txn.when(compare::mod_revision(own.key) == own.mod_revision)
      .then(op::put(own.key, text, {.lease = session_->lease()}));
  const auto stored = commit(lock, txn, stop);
  if (!stored) {
    own.uncertain = own.uncertain || stored.error().outcome == Outcome::kMayHaveHappened;
    own.look = true;
    return failed(own, stored.error());
  }
  if (!stored->succeeded) {  // somebody was faster, or an unanswered put of ours had arrived
    own.look = true;
    return;
  }
  own.mod_revision = number(stored->revision);
  own.uncertain = false;
  own.ever = true;
  own.draining_stored = draining;
  own.write = encode_record(own.record) != text;
  own.backoff.reset();
  start_watch(registration);
  if (own.state == RegistrationState::kRegistering) set_state(own, RegistrationState::kRegistered, "registered");
  changed();
}

void RegistryCore::remove(Lock& lock, const RegistrationPtr& registration, const std::stop_token& stop) {
  RegistrationCore& own = *registration;
  if (own.in_cluster && session_) {
    own.record.draining = true;
    if (!own.draining_stored) {
      Txn mark;
      mark.when(still_ours(own.key, *session_))
          .then(op::put(own.key, encode_record(own.record), {.lease = session_->lease()}));
      const auto marked = commit(lock, mark, stop);
      if (!marked) return failed(own, marked.error());
      own.draining_stored = true;
    }
    if (!session_) return;
    Txn removal;
    removal.when(still_ours(own.key, *session_)).then(op::del(own.key));
    const auto removed = commit(lock, removal, stop);
    if (!removed) return failed(own, removed.error());
    if (own.uncertain) {  // the unanswered put may arrive after the removal: once more, later
      own.uncertain = false;
      own.draining_stored = false;
      own.retry_at = after(kSecondPass);
      return;
    }
  }
  own.in_cluster = false;
  end_watch(own);
  set_state(own, RegistrationState::kGone, "removed");
}

void RegistryCore::start_watch(const RegistrationPtr& registration) {
  if (registration->watch) return;
  registration->watch = std::make_shared<WatchCore>(
      core_, WatchOptions{.key = registration->key, .from = Revision{registration->mod_revision + 1}});
  registration->watch->set_listener([weak = weak_from_this(), weak_own = std::weak_ptr(registration)] {
    const auto self = weak.lock();
    const auto own = weak_own.lock();
    if (!self || !own) return;
    Lock lock(self->mutex_);
    own->watch_news = true;
    self->changed();
  });
  registration->watch->start();
}

void end_watch(RegistrationCore& registration) {
  if (!registration.watch) return;
  registration.watch->set_listener(nullptr);  // its last word would come back to the one who holds the mutex
  registration.watch->end({.code = Code::kFailedPrecondition, .message = "the registration is over"});
  registration.watch = nullptr;
}

// Anything after our own last write is somebody else's, or the end of our lease.
void RegistryCore::read_watch(RegistrationCore& registration) {
  if (!registration.watch_news || !registration.watch) return;
  registration.watch_news = false;
  while (const auto batch = registration.watch->try_next())
    if (batch->gap || number(batch->revision) > registration.mod_revision) registration.look = true;
  if (const auto why = registration.watch->ended()) {
    core_->log(LogLevel::kWarning, registration.key + ": not watched: " + to_string(*why));
    registration.watch = nullptr;
    registration.look = true;
    registration.retry_at = after(kWatchAgain);
  }
}

namespace {

struct Farewell {
  explicit Farewell(std::shared_ptr<SessionCore> leaving) : session(std::move(leaving)), busy(session->core().busy()) {}
  ~Farewell() { session->lose("the registry was closed", true, LogLevel::kInfo); }
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;
  const std::shared_ptr<SessionCore> session;
  const std::shared_ptr<void> busy;
};

Request farewell_request(const Txn& txn, const Core& core) {
  auto body = encode_txn(txn, core.keys());
  return {.path = path::kTxn,
          .body = body ? body->dump() : std::string(),
          .effect = Effect::kIdempotent,
          .deadline = after(kFarewellCall),
          .budgeted = false,
          .background = true};
}

}  // namespace

void say_farewell(const std::shared_ptr<Core>& core, std::shared_ptr<SessionCore> session,
                  const std::vector<Instance>& records) {
  const auto farewell = std::make_shared<Farewell>(std::move(session));
  for (Instance record : records) {
    record.draining = true;
    const std::string key = record_key(record);
    Txn mark;
    Txn removal;
    mark.when(still_ours(key, *farewell->session))
        .then(op::put(key, encode_record(record), {.lease = farewell->session->lease()}));
    removal.when(still_ours(key, *farewell->session)).then(op::del(key));
    core->start(farewell_request(mark, *core),
                [core, farewell, last = farewell_request(removal, *core)](const Result<Reply>&) {
                  core->start(last, [farewell](const Result<Reply>&) {});
                });
  }
}

}  // namespace conclave::inline v1::internal
