// The instances of one service, kept up to date in memory, and a choice among them.
#ifndef CONCLAVE_C_DISCOVERY_H
#define CONCLAVE_C_DISCOVERY_H

#include "conclave_c/registry.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct conclave_discovery conclave_discovery;

typedef struct conclave_instance {
  conclave_str id;
  conclave_str service;
  conclave_str address;
  conclave_str host_port;  // "10.0.0.7:8080", "[fd00::7]:8080"
  conclave_str version;
  conclave_str zone;
  const conclave_pair* metadata;  // by key
  size_t metadata_count;
  int32_t port;
  int32_t weight;
  conclave_health health;
  int32_t draining;
  int32_t usable;  // not critical, not draining, weight above 0
  int32_t reserved;
  conclave_str reason;  // of its health
  int64_t started_ms;   // since 1970
} conclave_instance;

typedef int32_t conclave_view_source;
enum { CONCLAVE_FROM_NOWHERE = 0, CONCLAVE_FROM_SERVER = 1, CONCLAVE_FROM_DISK = 2 };

// Immutable, of one revision, by id.
typedef struct conclave_instances conclave_instances;
CONCLAVE_API size_t conclave_instances_size(const conclave_instances* instances);
CONCLAVE_API const conclave_instance* conclave_instances_at(const conclave_instances* instances, size_t index);
CONCLAVE_API int64_t conclave_instances_revision(const conclave_instances* instances);
CONCLAVE_API conclave_view_source conclave_instances_source(const conclave_instances* instances);
CONCLAVE_API size_t conclave_instances_unreadable(const conclave_instances* instances);  // records that were left out
CONCLAVE_API void conclave_instances_free(conclave_instances* instances);

// Each heeds the weights.
typedef int32_t conclave_balancer;
enum {
  CONCLAVE_ROUND_ROBIN = 0,
  CONCLAVE_LEAST_PENDING = 1,  // the one with the fewest picks in use for its weight
  CONCLAVE_RANDOM = 2
};

typedef struct conclave_discovery_options {
  size_t struct_size;
  conclave_str service;
  // The last list from the server, kept on disk, for a start without any member: used when none has answered within
  // half of the time that is waited for.
  conclave_str cache_file;
  int64_t balancer;  // a conclave_balancer
  // On a callback thread; a slow one sees the newest list, not each. `now` belongs to the library.
  void (*on_change)(const conclave_instances* now, void* user);
  void* user;
} conclave_discovery_options;
#define CONCLAVE_DISCOVERY_OPTIONS_INIT \
  { sizeof(conclave_discovery_options), {NULL, 0}, {NULL, 0}, 0, NULL, NULL }

CONCLAVE_API conclave_code conclave_discovery_open(conclave_client* client, const conclave_discovery_options* options,
                                                   conclave_discovery** discovery, conclave_error* error);
// Until there is a list, from the server or from disk; -1: for as long as it takes.
CONCLAVE_API conclave_code conclave_discovery_wait_ready(conclave_discovery* discovery, int64_t timeout_ms,
                                                         conclave_error* error);
// The list of this moment, to be freed; NULL only for NULL.
CONCLAVE_API conclave_instances* conclave_discovery_snapshot(const conclave_discovery* discovery);
CONCLAVE_API void conclave_discovery_free(conclave_discovery* discovery);

typedef struct conclave_pick_options {
  size_t struct_size;
  const conclave_str* exclude;  // ids, `exclude_count` of them
  size_t exclude_count;
} conclave_pick_options;
#define CONCLAVE_PICK_OPTIONS_INIT \
  { sizeof(conclave_pick_options), NULL, 0 }

// An instance in use; counts as pending until freed. In memory, never blocks. CONCLAVE_UNAVAILABLE: nobody to call.
typedef struct conclave_pick_result conclave_pick_result;
CONCLAVE_API conclave_code conclave_pick(const conclave_discovery* discovery, const conclave_pick_options* options,
                                         conclave_pick_result** pick, conclave_error* error);
CONCLAVE_API const conclave_instance* conclave_pick_instance(const conclave_pick_result* pick);
// The call did not work. Three in a row keep the instance out for 10 s, never more than half of the list at once.
CONCLAVE_API void conclave_pick_failed(conclave_pick_result* pick);
CONCLAVE_API void conclave_pick_free(conclave_pick_result* pick);  // a success, unless it failed

#ifdef __cplusplus
}
#endif

#endif
