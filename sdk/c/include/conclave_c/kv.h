// Get, range, put and delete.
#ifndef CONCLAVE_C_KV_H
#define CONCLAVE_C_KV_H

#include "conclave_c/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct conclave_key_value {
  conclave_str key;
  conclave_str value;
  int64_t create_revision;  // when the key came into being
  int64_t mod_revision;     // its last change
  int64_t version;          // 1 at creation, one more with each put
  int64_t lease;            // 0: none
} conclave_key_value;

// What a call answered: of get and range the keys found, of put and delete those that were there before (`prev_kv`).
typedef struct conclave_kv_result conclave_kv_result;
CONCLAVE_API int64_t conclave_kv_result_revision(const conclave_kv_result* result);  // the store's
CONCLAVE_API int64_t
conclave_kv_result_count(const conclave_kv_result* result);                  // in the range whatever the limit; deleted
CONCLAVE_API int conclave_kv_result_more(const conclave_kv_result* result);  // `limit` cut the list
CONCLAVE_API size_t conclave_kv_result_size(const conclave_kv_result* result);
// NULL from _size on: the first one of a get is NULL if the key is not there, which is no error.
CONCLAVE_API const conclave_key_value* conclave_kv_result_at(const conclave_kv_result* result, size_t index);
CONCLAVE_API void conclave_kv_result_free(conclave_kv_result* result);

typedef struct conclave_get_options {
  size_t struct_size;
  int64_t timeout_ms;
  conclave_stop* stop;
  int64_t revision;      // as it was then; 0: now. Compacted or in the future: CONCLAVE_OUT_OF_RANGE
  int64_t serializable;  // not 0: any member may answer from what it has: fast, perhaps stale
} conclave_get_options;
#define CONCLAVE_GET_OPTIONS_INIT \
  { sizeof(conclave_get_options), -1, NULL, 0, 0 }

CONCLAVE_API conclave_code conclave_get(conclave_client* client, conclave_str key, const conclave_get_options* options,
                                        conclave_kv_result** result, conclave_error* error);

typedef int32_t conclave_sort_order;
enum { CONCLAVE_SORT_NONE = 0, CONCLAVE_SORT_ASCEND = 1, CONCLAVE_SORT_DESCEND = 2 };

typedef int32_t conclave_sort_target;
enum {
  CONCLAVE_SORT_BY_KEY = 0,
  CONCLAVE_SORT_BY_VERSION = 1,
  CONCLAVE_SORT_BY_CREATE = 2,
  CONCLAVE_SORT_BY_MOD = 3,
  CONCLAVE_SORT_BY_VALUE = 4
};

// Which keys: `key` alone, with `prefix` all that begin with it, or with `range_end` all in [key, range_end); a
// range_end of one zero byte means "and all above". `prefix` and `range_end` exclude each other.
typedef struct conclave_range_options {
  size_t struct_size;
  int64_t timeout_ms;
  conclave_stop* stop;
  conclave_str key;
  conclave_str range_end;
  int64_t limit;  // 0: no limit
  int64_t revision;
  conclave_sort_order order;
  conclave_sort_target sort_by;
  int32_t prefix;  // this one and the following: not 0 means yes
  int32_t serializable;
  int32_t keys_only;
  int32_t count_only;
} conclave_range_options;
#define CONCLAVE_RANGE_OPTIONS_INIT \
  { sizeof(conclave_range_options), -1, NULL, {NULL, 0}, {NULL, 0}, 0, 0, 0, 0, 0, 0, 0, 0 }

CONCLAVE_API conclave_code conclave_range(conclave_client* client, const conclave_range_options* options,
                                          conclave_kv_result** result, conclave_error* error);

typedef struct conclave_put_options {
  size_t struct_size;
  int64_t timeout_ms;
  conclave_stop* stop;
  int64_t lease;         // the key goes when the lease does; 0: none
  int32_t prev_kv;       // give back what was there
  int32_t ignore_value;  // change the lease only; the value given must be empty
  int32_t ignore_lease;  // change the value only; `lease` must be 0
  int32_t reserved;      // 0
} conclave_put_options;
#define CONCLAVE_PUT_OPTIONS_INIT \
  { sizeof(conclave_put_options), -1, NULL, 0, 0, 0, 0, 0 }

// `result` may be NULL. A write that was sent and never answered is not repeated: CONCLAVE_MAY_HAVE_HAPPENED.
CONCLAVE_API conclave_code conclave_put(conclave_client* client, conclave_str key, conclave_str value,
                                        const conclave_put_options* options, conclave_kv_result** result,
                                        conclave_error* error);

typedef struct conclave_delete_options {
  size_t struct_size;
  int64_t timeout_ms;
  conclave_stop* stop;
  conclave_str range_end;  // as in conclave_range_options
  int32_t prefix;
  int32_t prev_kv;
} conclave_delete_options;
#define CONCLAVE_DELETE_OPTIONS_INIT \
  { sizeof(conclave_delete_options), -1, NULL, {NULL, 0}, 0, 0 }

// `result` may be NULL.
CONCLAVE_API conclave_code conclave_delete(conclave_client* client, conclave_str key,
                                           const conclave_delete_options* options, conclave_kv_result** result,
                                           conclave_error* error);

#ifdef __cplusplus
}
#endif

#endif
