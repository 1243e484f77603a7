// The connection to a cluster; safe to use from all threads.
#ifndef CONCLAVE_C_CLIENT_H
#define CONCLAVE_C_CLIENT_H

#include "conclave_c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct conclave_client conclave_client;

typedef int32_t conclave_log_level;
enum { CONCLAVE_LOG_INFO = 0, CONCLAVE_LOG_WARNING = 1, CONCLAVE_LOG_ERROR = 2 };

typedef int32_t conclave_connection_state;
enum {
  CONCLAVE_CONNECTING = 0,  // no member has answered lately
  CONCLAVE_CONNECTED = 1,
  CONCLAVE_CLOSED = 2
};

typedef struct conclave_client_options {
  size_t struct_size;
  conclave_str endpoints;    // comma-separated: "http://a:2379,http://b:2379"; at least one
  conclave_str key_prefix;   // put before every key and name; taken off again in answers
  int64_t call_timeout_ms;   // of calls with timeout -1; -1: 5 s
  int64_t callback_threads;  // 1 to 64
  void (*log)(conclave_log_level level, conclave_str line, void* user);  // on a callback thread, one line at a time
  void* user;
} conclave_client_options;
#define CONCLAVE_CLIENT_OPTIONS_INIT \
  { sizeof(conclave_client_options), {NULL, 0}, {NULL, 0}, -1, 2, NULL, NULL }

// Checks the options and returns at once; members that do not answer are no error here. CONCLAVE_INVALID_ARGUMENT: no
// endpoint, a malformed one, or an https one (not supported by this version). `options` NULL: CONCLAVE_ENDPOINTS
// (http://127.0.0.1:2379 if unset) and CONCLAVE_KEY_PREFIX from the environment.
CONCLAVE_API conclave_code conclave_client_open(const conclave_client_options* options, conclave_client** client,
                                                conclave_error* error);
CONCLAVE_API conclave_connection_state conclave_client_state(const conclave_client* client);  // in memory

// Ends everything made from this client (sessions are revoked, watches end), waits for that, and tells. Afterwards
// every call gives CONCLAVE_FAILED_PRECONDITION.
CONCLAVE_API conclave_code conclave_client_close(conclave_client* client, int64_t timeout_ms, conclave_error* error);

// What was made from the client goes on. When all of it is freed, everything ends within 200 ms.
CONCLAVE_API void conclave_client_free(conclave_client* client);

#ifdef __cplusplus
}
#endif

#endif
