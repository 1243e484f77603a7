// Declared registrations, and the thread that makes the cluster agree with them.
//
// The worker thread has all the calls: it holds one lease (a session that is replaced whenever it is lost) and brings
// one registration after the other to what is wanted. It never assumes: after anything uncertain it reads the key
// again. The health thread, started with the first check, runs the user's checks and nothing else, so that a check that
// hangs delays no lease.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "conclave/discovery.h"
#include "conclave/registry.h"
#include "core.h"
#include "health_filter.h"
#include "session_core.h"
#include "watch_core.h"

namespace conclave::inline v1::internal {

// One registration. All of it is guarded by the registry's mutex, but what is const.
struct RegistrationCore {
  RegistrationCore(ServiceOptions options, Instance instance, std::unique_ptr<CallbackQueue> queue);

  const std::string key;
  const std::string id;
  const HealthCheck check;
  const std::function<void(RegistrationState, const std::string&)> on_state;
  const std::unique_ptr<CallbackQueue> callbacks;

  // What is wanted.
  Instance record;
  bool removal = false;

  // What is known.
  RegistrationState state = RegistrationState::kRegistering;
  std::string why;          // of the state, or the last obstacle
  bool health_known;        // the first answer is in (or there is no check): it may be registered
  bool look = true;         // the key may hold something else than we think: read it
  bool write = true;        // the record differs from what was stored
  bool ever = false;        // was registered once
  bool in_cluster = false;  // may be there under the present lease
  bool draining_stored = false;
  bool uncertain = false;         // a put was never answered: it may still arrive
  std::int64_t mod_revision = 0;  // of the key as last seen; 0: missing
  std::shared_ptr<WatchCore> watch;
  bool watch_news = false;
  Backoff backoff;
  TimePoint retry_at{};

  HealthFilter filter;
  TimePoint check_at{};

  bool final() const { return state == RegistrationState::kDisplaced || state == RegistrationState::kGone; }
};

using RegistrationPtr = std::shared_ptr<RegistrationCore>;

class RegistryCore : public std::enable_shared_from_this<RegistryCore> {
 public:
  RegistryCore(std::shared_ptr<Core> core, std::chrono::seconds ttl);

  void start();
  // Ends the threads and removes all registrations in the background; the lease is revoked after that.
  void end(const std::string& why);

  Result<RegistrationPtr> add(ServiceOptions options);
  // Takes it out in the background; none of its callbacks and checks runs afterwards.
  void forget(const RegistrationPtr& registration);

  RegistrationState state(const RegistrationPtr& registration) const;
  Status wait_ready(const RegistrationPtr& registration, const CallOptions& call);
  Status drain(const RegistrationPtr& registration, const DrainOptions& options);

 private:
  using Lock = std::unique_lock<std::mutex>;

  void work(const std::stop_token& stop);
  bool hold_lease(Lock& lock, const std::stop_token& stop);  // false: not now
  void give_up_lease(Lock& lock);
  RegistrationPtr next(TimePoint& wake_at) const;
  void settle(Lock& lock, const RegistrationPtr& registration, const std::stop_token& stop);
  bool look(Lock& lock, const RegistrationPtr& registration, const std::stop_token& stop);
  void write(Lock& lock, const RegistrationPtr& registration, const std::stop_token& stop);
  void remove(Lock& lock, const RegistrationPtr& registration, const std::stop_token& stop);
  void displaced(RegistrationCore& registration, const Instance& by);
  void read_watch(RegistrationCore& registration);
  void start_watch(const RegistrationPtr& registration);
  void failed(RegistrationCore& registration, const Error& error);
  void set_state(RegistrationCore& registration, RegistrationState state, const std::string& why);
  void changed();
  Status wait(Lock& lock, TimePoint until, const std::stop_token& stop, const std::function<bool()>& ready);

  void check_health(const std::stop_token& stop);

  Request request(const char* path, std::string body, Effect effect) const;
  Result<TxnResult> commit(Lock& lock, const Txn& txn, const std::stop_token& stop);  // unlocked meanwhile

  const std::shared_ptr<Core> core_;
  const std::chrono::seconds ttl_;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;  // with changed()
  std::uint64_t changes_ = 0;
  std::vector<RegistrationPtr> registrations_;
  bool ended_ = false;
  std::shared_ptr<SessionCore> session_;
  bool lease_lost_ = false;
  std::optional<std::stop_callback<std::function<void()>>> on_lost_;  // worker thread only, without the mutex
  Backoff lease_backoff_;
  TimePoint lease_retry_at_{};
  RegistrationPtr checking_;  // whose health check runs now, on the health thread
  std::stop_source stop_;
  std::thread worker_;
  std::thread health_;
  std::thread::id health_id_;
};

void end_watch(RegistrationCore& registration);

// Marks the keys draining, deletes them, then revokes the lease; in the background.
void say_farewell(const std::shared_ptr<Core>& core, std::shared_ptr<SessionCore> session,
                  const std::vector<Instance>& records);

}  // namespace conclave::inline v1::internal
