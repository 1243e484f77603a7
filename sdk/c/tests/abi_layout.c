// The structs of this version on 64-bit machines. A number here changes for a struct with struct_size only, and only
// upwards; a member never moves.
#include "scenarios.h"

#define SIZE_IS(type, size) typedef char size_of_##type[sizeof(type) == (size) ? 1 : -1]
#define LIES_AT(type, member, offset) typedef char type##_##member[offsetof(type, member) == (offset) ? 1 : -1]

#if defined(__LP64__)
SIZE_IS(conclave_error, 512);
SIZE_IS(conclave_str, 16);
SIZE_IS(conclave_pair, 32);
SIZE_IS(conclave_client_options, 72);
SIZE_IS(conclave_get_options, 40);
SIZE_IS(conclave_range_options, 96);
SIZE_IS(conclave_put_options, 48);
SIZE_IS(conclave_delete_options, 48);
SIZE_IS(conclave_watch_options, 64);
SIZE_IS(conclave_session_options, 48);
SIZE_IS(conclave_service_options, 176);
SIZE_IS(conclave_discovery_options, 64);
SIZE_IS(conclave_pick_options, 24);
SIZE_IS(conclave_config_options, 88);

LIES_AT(conclave_error, message, 8);
LIES_AT(conclave_key_value, lease, 56);
LIES_AT(conclave_event, previous, 16);
LIES_AT(conclave_gap, reason, 16);
LIES_AT(conclave_client_options, user, 64);
LIES_AT(conclave_range_options, prefix, 80);
LIES_AT(conclave_put_options, lease, 24);
LIES_AT(conclave_service_options, metadata, 104);
LIES_AT(conclave_service_options, user, 168);
LIES_AT(conclave_instance, port, 112);
LIES_AT(conclave_instance, started_ms, 152);
LIES_AT(conclave_config_options, validate, 56);
#endif

// Nothing to do at run time: that this file compiles is the check.
void check_layout(void) {}
