// A lock held by at most one session of the cluster. Fair: granted in the order of arrival. Same keys as etcd's Go
// client (`concurrency.Mutex`), so both exclude each other.
//
//   Mutex mutex{session, "locks/orders/42"};
//   auto lock = mutex.lock({.timeout = 30s, .stop = stop});
//   if (!lock) return fail(lock.error());
//   ... lock->lost() fires, lock->held() turns false, when the session is lost ...
//
// A lock is a promise about time. Pass token() to what you protect, or write through commit(), to be safe against your
// own pauses too.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "conclave/call.h"
#include "conclave/result.h"
#include "conclave/session.h"
#include "conclave/txn.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

// Held from Mutex::lock until unlocked, destroyed (unlocks in the background), or lost.
class [[nodiscard]] Lock {
 public:
  Lock(Lock&&) noexcept;
  Lock& operator=(Lock&&) noexcept;
  ~Lock();

  Token token() const;             // create revision of the key; stays readable
  const std::string& key() const;  // without the client's key_prefix
  std::stop_token lost() const;    // the session's
  bool held() const;               // exact: reads the clock

  // Runs `txn` only if this lock is still held, in one step on the server; `succeeded` speaks of the user's compares
  // only. No longer held: kAborted, nothing happened.
  Result<TxnResult> commit(const Txn& txn, CallOptions call = {}) const;

  // Deletes the key of this very hold. kAborted (nothing happened) if the lock was lost before, so that one who never
  // looked learns it too. Goes on in the background if `call` ends first.
  Status unlock(CallOptions call = {});

 private:
  friend class Mutex;
  class Impl;
  explicit Lock(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Mutex {
 public:
  Mutex(const Session& session, std::string name);
  Mutex(Session&&, std::string) = delete;  // a temporary session would end at once

  // Waits its turn, without limit unless `call` sets one; ends early with kAborted when the session is lost. Threads of
  // one session queue too, first come first served; not re-entrant. kFailedPrecondition: another program uses a name
  // below this one (`a` and `a/b`).
  Result<Lock> lock(CallOptions call = {}) const;

  // The lock if nobody holds or awaits it, nothing otherwise.
  Result<std::optional<Lock>> try_lock(CallOptions call = {}) const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace conclave
