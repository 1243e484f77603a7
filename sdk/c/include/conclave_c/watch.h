// The changes of a key or range, each exactly once and in order, through restarts of the server and changes of member.
#ifndef CONCLAVE_C_WATCH_H
#define CONCLAVE_C_WATCH_H

#include "conclave_c/kv.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct conclave_watch conclave_watch;

typedef struct conclave_watch_options {
  size_t struct_size;
  conclave_str key;
  conclave_str range_end;  // as in conclave_range_options
  int64_t from;            // the first revision wanted; 0: what happens after the watch is ready
  int32_t prefix;          // this one and the following: not 0 means yes
  int32_t prev_kv;
  int32_t no_puts;
  int32_t no_deletes;
} conclave_watch_options;
#define CONCLAVE_WATCH_OPTIONS_INIT \
  { sizeof(conclave_watch_options), {NULL, 0}, {NULL, 0}, 0, 0, 0, 0, 0 }

// Returns at once; the watch starts as soon as a member answers and lives until it is closed or freed.
CONCLAVE_API conclave_code conclave_watch_open(conclave_client* client, const conclave_watch_options* options,
                                               conclave_watch** watch, conclave_error* error);
// Waits until a member has accepted the watch: what happens from then on is seen.
CONCLAVE_API conclave_code conclave_watch_wait_ready(conclave_watch* watch, int64_t timeout_ms, conclave_error* error);

typedef int32_t conclave_event_type;
enum { CONCLAVE_EVENT_PUT = 0, CONCLAVE_EVENT_DELETE = 1 };

typedef struct conclave_event {
  conclave_event_type type;
  int32_t created;                     // a put that made the key
  const conclave_key_value* kv;        // of a delete: key and mod_revision only
  const conclave_key_value* previous;  // with `prev_kv`, else NULL
} conclave_event;

// Events were lost: the history was compacted, or replaced by an older one. Read the range again.
typedef struct conclave_gap {
  int64_t after;   // the last revision before the hole
  int64_t resume;  // events from this revision on follow, none of them missing
  conclave_str reason;
} conclave_gap;

// First the gap, if there is one, then the events: all of one revision.
typedef struct conclave_watch_batch conclave_watch_batch;
CONCLAVE_API int64_t conclave_watch_batch_revision(const conclave_watch_batch* batch);
CONCLAVE_API const conclave_gap* conclave_watch_batch_gap(const conclave_watch_batch* batch);  // NULL: none
CONCLAVE_API size_t conclave_watch_batch_size(const conclave_watch_batch* batch);
CONCLAVE_API const conclave_event* conclave_watch_batch_at(const conclave_watch_batch* batch, size_t index);
CONCLAVE_API void conclave_watch_batch_free(conclave_watch_batch* batch);

// The next revision with events, or the next gap; -1 waits for ever. CONCLAVE_DEADLINE_EXCEEDED and CONCLAVE_CANCELLED
// end the wait, not the watch; CONCLAVE_FAILED_PRECONDITION (closed) and CONCLAVE_NEVER_WORKS end it. One thread at a
// time.
CONCLAVE_API conclave_code conclave_watch_next(conclave_watch* watch, int64_t timeout_ms, conclave_stop* stop,
                                               conclave_watch_batch** batch, conclave_error* error);
CONCLAVE_API void conclave_watch_close(conclave_watch* watch);  // _next then ends with CONCLAVE_FAILED_PRECONDITION
CONCLAVE_API void conclave_watch_free(conclave_watch* watch);

#ifdef __cplusplus
}
#endif

#endif
