#include "conclave_c/mutex.h"

#include "binding.h"
#include "conclave/mutex.h"
#include "handles.h"

using namespace conclave::c;
using conclave::fail;
using conclave::Status;

namespace {

// Set while this thread installs a callback, which runs inside that if the session is lost already.
thread_local bool installing = false;
thread_local bool lost_already = false;

struct Lost {
  void (*call)(void* user);
  void* user;
  void operator()() const {
    if (installing) {
      lost_already = true;
      return;
    }
    // The call may free the lock and this with it.
    const Lost self = *this;
    self.call(self.user);
  }
};

}  // namespace

struct conclave_lock {
  explicit conclave_lock(conclave::Lock of) : lock(std::move(of)) {}
  conclave::Lock lock;
  std::optional<std::stop_callback<Lost>> on_lost;  // goes first
};

conclave_code conclave_mutex_lock(conclave_session* session, conclave_str name, int64_t timeout_ms, conclave_stop* stop,
                                  conclave_lock** lock, conclave_error* error) {
  if (lock != nullptr) *lock = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"session", session}, {"lock", lock}}); !given) return given;
    const conclave::Mutex mutex(session->session, text(name));
    auto got = mutex.lock(call_of(timeout_ms, stop));
    if (!got) return fail(std::move(got.error()));
    *lock = new conclave_lock(std::move(*got));
    return {};
  });
}

conclave_code conclave_mutex_try_lock(conclave_session* session, conclave_str name, int64_t timeout_ms,
                                      conclave_stop* stop, conclave_lock** lock, conclave_error* error) {
  if (lock != nullptr) *lock = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"session", session}, {"lock", lock}}); !given) return given;
    const conclave::Mutex mutex(session->session, text(name));
    auto got = mutex.try_lock(call_of(timeout_ms, stop));
    if (!got) return fail(std::move(got.error()));
    if (*got) *lock = new conclave_lock(std::move(**got));
    return {};
  });
}

int64_t conclave_lock_token(const conclave_lock* lock) { return lock != nullptr ? number(lock->lock.token()) : 0; }
conclave_str conclave_lock_key(const conclave_lock* lock) {
  return lock != nullptr ? borrow(std::string_view(lock->lock.key())) : conclave_str{};
}
int conclave_lock_held(const conclave_lock* lock) { return lock != nullptr && lock->lock.held(); }

void conclave_lock_on_lost(conclave_lock* lock, void (*lost)(void* user), void* user) {
  if (lock == nullptr) return;
  lock->on_lost.reset();
  if (lost == nullptr) return;
  installing = true;
  lost_already = false;
  lock->on_lost.emplace(lock->lock.lost(), Lost{lost, user});
  installing = false;
  if (lost_already) lost(user);  // only now: it may free the lock
}

conclave_code conclave_lock_commit(conclave_lock* lock, const conclave_txn* txn, int64_t timeout_ms,
                                   conclave_stop* stop, conclave_txn_result** result, conclave_error* error) {
  if (result != nullptr) *result = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"lock", lock}, {"txn", txn}}); !given) return given;
    if (txn->bad) return fail(*txn->bad);
    auto done = lock->lock.commit(txn->txn, call_of(timeout_ms, stop));
    if (!done) return fail(std::move(done.error()));
    if (result != nullptr) *result = result_of(std::move(*done));
    return {};
  });
}

conclave_code conclave_lock_unlock(conclave_lock* lock, int64_t timeout_ms, conclave_error* error) {
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"lock", lock}}); !given) return given;
    return lock->lock.unlock(call_of(timeout_ms));
  });
}

void conclave_lock_free(conclave_lock* lock) { delete lock; }
