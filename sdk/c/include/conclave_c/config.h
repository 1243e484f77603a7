// Configuration from the cluster: all values below a prefix as one consistent set, validated before it is used,
// reloaded.
#ifndef CONCLAVE_C_CONFIG_H
#define CONCLAVE_C_CONFIG_H

#include "conclave_c/discovery.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct conclave_config conclave_config;

// Immutable, of one revision. Names are what follows the prefix, in order.
typedef struct conclave_config_set conclave_config_set;
CONCLAVE_API size_t conclave_config_set_size(const conclave_config_set* set);
CONCLAVE_API const conclave_pair* conclave_config_set_at(const conclave_config_set* set, size_t index);
// 1 and *value, or 0 and the empty string if there is no such name.
CONCLAVE_API int conclave_config_set_find(const conclave_config_set* set, conclave_str name, conclave_str* value);
CONCLAVE_API int64_t conclave_config_set_revision(const conclave_config_set* set);
// Inside `validate` it is not said yet: CONCLAVE_FROM_NOWHERE.
CONCLAVE_API conclave_view_source conclave_config_set_source(const conclave_config_set* set);
CONCLAVE_API void conclave_config_set_free(conclave_config_set* set);

typedef struct conclave_config_options {
  size_t struct_size;
  int64_t timeout_ms;  // of conclave_config_open
  conclave_stop* stop;
  conclave_str prefix;      // "config/orders/"
  conclave_str cache_file;  // the last good set, for a start without any member; empty: none
  // Not 0: the set is refused and the old values stay; may write why, with a zero byte at its end, to `reason`. Runs in
  // the thread that opens, later on a callback thread. NULL: every set is good.
  int (*validate)(const conclave_config_set* set, char* reason, size_t reason_size, void* user);
  // Both on a callback thread; sets and error belong to the library. A slow on_change sees the newest set, not each.
  void (*on_change)(const conclave_config_set* before, const conclave_config_set* now, void* user);
  void (*on_rejected)(int64_t revision, const conclave_error* why, void* user);  // once for each revision
  void* user;
} conclave_config_options;
#define CONCLAVE_CONFIG_OPTIONS_INIT \
  { sizeof(conclave_config_options), -1, NULL, {NULL, 0}, {NULL, 0}, NULL, NULL, NULL, NULL }

// Waits for a valid set, from the server or from disk; without one there is no object. No keys are a set too, of size
// 0.
CONCLAVE_API conclave_code conclave_config_open(conclave_client* client, const conclave_config_options* options,
                                                conclave_config** config, conclave_error* error);
// The set of this moment, to be freed; NULL only for NULL. Never older than the one before.
CONCLAVE_API conclave_config_set* conclave_config_snapshot(const conclave_config* config);
CONCLAVE_API void conclave_config_free(conclave_config* config);

#ifdef __cplusplus
}
#endif

#endif
