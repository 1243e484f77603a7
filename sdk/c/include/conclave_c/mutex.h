// A lock held by at most one session of the cluster. Fair: granted in the order of arrival. Same keys as etcd's Go
// client (concurrency.Mutex), so both exclude each other.
//
// A lock is a promise about time. Pass conclave_lock_token to what you protect, or write through conclave_lock_commit,
// to be safe against your own pauses too.
#ifndef CONCLAVE_C_MUTEX_H
#define CONCLAVE_C_MUTEX_H

#include "conclave_c/session.h"
#include "conclave_c/txn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct conclave_lock conclave_lock;

// Waits its turn, with timeout -1 without limit; ends early with CONCLAVE_ABORTED when the session is lost, with
// CONCLAVE_CANCELLED when `stop` (may be NULL) asks for it. Threads of one session queue too; not re-entrant.
// CONCLAVE_FAILED_PRECONDITION: another program uses a name below this one (`a` and `a/b`).
CONCLAVE_API conclave_code conclave_mutex_lock(conclave_session* session, conclave_str name, int64_t timeout_ms,
                                               conclave_stop* stop, conclave_lock** lock, conclave_error* error);
// The lock if nobody holds or awaits it; else success too, and *lock is NULL.
CONCLAVE_API conclave_code conclave_mutex_try_lock(conclave_session* session, conclave_str name, int64_t timeout_ms,
                                                   conclave_stop* stop, conclave_lock** lock, conclave_error* error);

// A fencing token: positive, rising from holder to holder of one name, meaningless across names. Stays readable.
CONCLAVE_API int64_t conclave_lock_token(const conclave_lock* lock);
CONCLAVE_API conclave_str conclave_lock_key(const conclave_lock* lock);
CONCLAVE_API int conclave_lock_held(const conclave_lock* lock);  // reads the clock: exact even when no thread has run

// `lost` is called once when the session is lost, on a thread that does nothing else, so it must return soon; at once
// in this thread if the session is lost already. A second call replaces the first, NULL removes it. One thread at a
// time.
CONCLAVE_API void conclave_lock_on_lost(conclave_lock* lock, void (*lost)(void* user), void* user);

// Runs `txn` only if this lock is still held, in one step on the server; whether it succeeded speaks of its own
// compares only. No longer held: CONCLAVE_ABORTED, nothing happened. `result` may be NULL.
CONCLAVE_API conclave_code conclave_lock_commit(conclave_lock* lock, const conclave_txn* txn, int64_t timeout_ms,
                                                conclave_stop* stop, conclave_txn_result** result,
                                                conclave_error* error);

// CONCLAVE_ABORTED (nothing happened) if the lock was lost before, so that one who never looked learns it too. Goes on
// in the background if the time ends first. The handle stays to be freed.
CONCLAVE_API conclave_code conclave_lock_unlock(conclave_lock* lock, int64_t timeout_ms, conclave_error* error);
CONCLAVE_API void conclave_lock_free(conclave_lock* lock);  // unlocks in the background

#ifdef __cplusplus
}
#endif

#endif
