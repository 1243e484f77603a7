// A service's own entry, kept in the cluster as declared state: registered as soon as a member answers, again when its
// lease was lost, with its health. Each registration has a lease of its own.
#ifndef CONCLAVE_C_REGISTRY_H
#define CONCLAVE_C_REGISTRY_H

#include "conclave_c/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct conclave_registration conclave_registration;

typedef int32_t conclave_health;
enum { CONCLAVE_HEALTH_PASSING = 0, CONCLAVE_HEALTH_WARNING = 1, CONCLAVE_HEALTH_CRITICAL = 2 };

typedef int32_t conclave_registration_state_code;
enum {
  CONCLAVE_REGISTERING = 0,  // not (or no longer) in the cluster, still trying
  CONCLAVE_REGISTERED = 1,
  CONCLAVE_DISPLACED = 2,  // a newer instance with the same id took its place; final
  CONCLAVE_DRAINING = 3,
  CONCLAVE_GONE = 4  // removed; final
};

typedef struct conclave_service_options {
  size_t struct_size;
  conclave_str service;  // [A-Za-z0-9][A-Za-z0-9._-]{0,127}
  conclave_str id;       // same alphabet; empty: <host>-<pid>-<8 hex digits>
  conclave_str address;  // host or bare IP
  int64_t port;          // 1 to 65535
  conclave_str version;
  conclave_str zone;
  int64_t weight;                 // 0 to 65535; 0 is never picked
  const conclave_pair* metadata;  // `metadata_count` of them, copied
  size_t metadata_count;
  int64_t ttl_s;  // 1 s to 1 day: how long after its end (or a pause) a program is gone from the list
  // Runs every `check_every_ms` on a health thread of its own; may write why, with a zero byte at its end, to `reason`.
  // The level changes after `fall` worse or `rise` better answers in a row; the very first answer counts at once, and
  // nothing is registered before it. NULL: always passing.
  conclave_health (*check)(char* reason, size_t reason_size, void* user);
  int64_t check_every_ms;
  int32_t fall;
  int32_t rise;
  void (*on_state)(conclave_registration_state_code state, conclave_str why, void* user);  // on a callback thread
  int (*idle)(void* user);  // asked every 50 ms by the thread that drains; not 0: it need not wait longer
  void* user;
} conclave_service_options;
#define CONCLAVE_SERVICE_OPTIONS_INIT                                                                             \
  {                                                                                                               \
    sizeof(conclave_service_options), {NULL, 0}, {NULL, 0}, {NULL, 0}, 0, {NULL, 0}, {NULL, 0}, 100, NULL, 0, 10, \
        NULL, 2000, 3, 2, NULL, NULL, NULL                                                                        \
  }

// Fails only for bad arguments (CONCLAVE_INVALID_ARGUMENT); the cluster may still be down.
CONCLAVE_API conclave_code conclave_register(conclave_client* client, const conclave_service_options* options,
                                             conclave_registration** registration, conclave_error* error);
CONCLAVE_API conclave_str conclave_registration_id(const conclave_registration* registration);
CONCLAVE_API conclave_registration_state_code conclave_registration_state(const conclave_registration* registration);
// Until registered; -1: for as long as it takes. CONCLAVE_ABORTED: displaced. CONCLAVE_FAILED_PRECONDITION: gone.
CONCLAVE_API conclave_code conclave_registration_wait_ready(conclave_registration* registration, int64_t timeout_ms,
                                                            conclave_error* error);
// Marks the instance draining, waits until `idle` or for `grace_ms` (-1: 10 s), removes it. CONCLAVE_ABORTED: it was
// displaced before. Not confirmed in time: CONCLAVE_MAY_HAVE_HAPPENED; it is removed in the background, or expires.
CONCLAVE_API conclave_code conclave_registration_drain(conclave_registration* registration, int64_t grace_ms,
                                                       conclave_error* error);
// Marked draining and removed, in the background.
CONCLAVE_API void conclave_registration_free(conclave_registration* registration);

#ifdef __cplusplus
}
#endif

#endif
