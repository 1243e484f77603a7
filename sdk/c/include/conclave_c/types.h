// Conventions of the C interface, stated once. C99; link conclave::c.
//
// Functions that can fail return a conclave_code, 0 for success, and fill `error` unless it is NULL; then what they
// would have handed out is NULL. Handles are opaque, belong to the caller and are given back with their _free, which
// takes NULL. Each keeps alive what it needs: the order of frees is free. After a _free has returned no callback of
// that handle runs or starts: a running one is waited for, except from inside itself.
//
// What an accessor gives (a conclave_str, a pointer to a struct) belongs to the handle and lives as long as it. Structs
// that are read through a pointer may get more members at their end: do not copy arrays of them by size.
//
// Options begin with struct_size and are made by their _INIT, which holds the defaults; NULL instead of options means
// the defaults. Shorter structs of older programs are accepted. A longer one of a newer header is accepted as long as
// the members that this library does not know are zero, else CONCLAVE_INVALID_ARGUMENT.
//
// Timeouts are in milliseconds: -1 is the default, zero or less otherwise gives CONCLAVE_DEADLINE_EXCEEDED and nothing
// is sent. Callbacks get `user` last; they run on the client's callback threads, one at a time for each handle, unless
// stated. All functions may be called from any thread; one handle is not freed while another thread uses it.
#ifndef CONCLAVE_C_TYPES_H
#define CONCLAVE_C_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CONCLAVE_API __attribute__((visibility("default")))
#else
#define CONCLAVE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// gRPC's numbers.
typedef int32_t conclave_code;
enum {
  CONCLAVE_OK = 0,
  CONCLAVE_CANCELLED = 1,
  CONCLAVE_UNKNOWN = 2,
  CONCLAVE_INVALID_ARGUMENT = 3,
  CONCLAVE_DEADLINE_EXCEEDED = 4,
  CONCLAVE_NOT_FOUND = 5,
  CONCLAVE_ALREADY_EXISTS = 6,
  CONCLAVE_PERMISSION_DENIED = 7,
  CONCLAVE_RESOURCE_EXHAUSTED = 8,
  CONCLAVE_FAILED_PRECONDITION = 9,
  CONCLAVE_ABORTED = 10,
  CONCLAVE_OUT_OF_RANGE = 11,
  CONCLAVE_UNIMPLEMENTED = 12,
  CONCLAVE_INTERNAL = 13,
  CONCLAVE_UNAVAILABLE = 14,
  CONCLAVE_DATA_LOSS = 15,
  CONCLAVE_UNAUTHENTICATED = 16
};

// What an error means for the one who asked.
typedef int32_t conclave_outcome;
enum {
  CONCLAVE_NOTHING_HAPPENED = 0,   // repeat at will
  CONCLAVE_MAY_HAVE_HAPPENED = 1,  // look before repeating
  CONCLAVE_NEVER_WORKS = 2         // not as sent: the arguments or the permission are wrong
};

#define CONCLAVE_MESSAGE_SIZE 504

// Nothing to free. After success: code 0 and an empty message.
typedef struct conclave_error {
  conclave_code code;
  conclave_outcome outcome;
  char message[CONCLAVE_MESSAGE_SIZE];  // ends with a zero byte; cut at a whole UTF-8 character if too long
} conclave_error;

// Any bytes, not ended by a zero byte. `data` NULL means empty.
typedef struct conclave_str {
  const char* data;
  size_t size;
} conclave_str;

// Of a string literal. Others: conclave_str_of, or the two members by hand.
#ifdef __cplusplus
#define CONCLAVE_STR(literal) \
  conclave_str { "" literal, sizeof(literal) - 1 }
#else
#define CONCLAVE_STR(literal) ((conclave_str){"" literal, sizeof(literal) - 1})
#endif

// Of a text that ends with a zero byte and outlives the result; NULL gives the empty one.
CONCLAVE_API conclave_str conclave_str_of(const char* text);

typedef struct conclave_pair {
  conclave_str key;
  conclave_str value;
} conclave_pair;

// Ends calls early, also several at once: they give CONCLAVE_CANCELLED. Its free may come before the calls' end.
typedef struct conclave_stop conclave_stop;
CONCLAVE_API conclave_stop* conclave_stop_new(void);
CONCLAVE_API void conclave_stop_request(conclave_stop* stop);  // not from a signal handler
CONCLAVE_API int conclave_stop_requested(const conclave_stop* stop);
CONCLAVE_API void conclave_stop_free(conclave_stop* stop);

CONCLAVE_API const char* conclave_code_name(conclave_code code);           // "unavailable"; never NULL
CONCLAVE_API const char* conclave_outcome_name(conclave_outcome outcome);  // "nothing happened"; never NULL

#ifdef __cplusplus
}
#endif

#endif
