// A lease kept alive: the life of a program, as the cluster sees it. Lost is final: open a new one.
#ifndef CONCLAVE_C_SESSION_H
#define CONCLAVE_C_SESSION_H

#include "conclave_c/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct conclave_session conclave_session;

typedef int32_t conclave_session_state_code;
enum {
  CONCLAVE_SESSION_LIVE = 0,
  CONCLAVE_SESSION_SUSPECT = 1,  // two thirds of the TTL passed without an answer; it may still recover
  CONCLAVE_SESSION_LOST = 2      // final: expired, revoked, closed or freed
};

typedef struct conclave_session_options {
  size_t struct_size;
  int64_t timeout_ms;  // of conclave_session_open
  conclave_stop* stop;
  int64_t ttl_s;  // 1 s to 1 day; the server may grant more
  // On a callback thread. Not for what must stop at once: that is conclave_lock_on_lost.
  void (*on_state)(conclave_session_state_code state, conclave_str why, void* user);
  void* user;
} conclave_session_options;
#define CONCLAVE_SESSION_OPTIONS_INIT \
  { sizeof(conclave_session_options), -1, NULL, 10, NULL, NULL }

// Waits until the lease is granted.
CONCLAVE_API conclave_code conclave_session_open(conclave_client* client, const conclave_session_options* options,
                                                 conclave_session** session, conclave_error* error);
CONCLAVE_API int conclave_session_held(const conclave_session* session);  // reads the clock: exact
CONCLAVE_API conclave_session_state_code conclave_session_state(const conclave_session* session);
CONCLAVE_API int64_t conclave_session_lease(const conclave_session* session);
CONCLAVE_API int64_t conclave_session_ttl_s(const conclave_session* session);  // as granted

// Revokes the lease, waits, and tells.
CONCLAVE_API conclave_code conclave_session_close(conclave_session* session, int64_t timeout_ms, conclave_error* error);
// Stops the keepalives and leaves the keys: they go when the lease expires.
CONCLAVE_API void conclave_session_orphan(conclave_session* session);
// Ends the session and its locks; the lease is revoked in the background.
CONCLAVE_API void conclave_session_free(conclave_session* session);

#ifdef __cplusplus
}
#endif

#endif
