// Scenarios of a C program against one server. Each gives 0, or ends the program and says where.
#ifndef SCENARIOS_H
#define SCENARIOS_H

#include <conclave_c/conclave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

// The call succeeds; else its text is shown.
#define OK(call)                                                                    \
  do {                                                                              \
    if ((call) != CONCLAVE_OK) {                                                    \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, error.message); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

// What is waited for happens within this time, or never.
#define LIMIT_MS 20000

conclave_client* client_of(const char* endpoint);
int same(conclave_str text, const char* expected);

// Something that a callback tells the main thread.
typedef struct told told;
told* told_new(void);
void told_say(told* all, long what);   // the newest counts
void told_wait(told* all, long what);  // until it was said
long told_times(told* all);            // how often anything was said
void told_free(told* all);

void check_layout(void);

void put_and_get(const char* endpoint);
void transactions(const char* endpoint);
void watch_sees_a_change(const char* endpoint);
void errors_are_filled(const char* endpoint);
void null_is_fine(const char* endpoint);
void struct_sizes(const char* endpoint);
void environment(const char* endpoint);
void lock_excludes(const char* endpoint);
void lock_is_lost(const char* endpoint);
void register_and_discover(const char* endpoint);
void health_and_refusals(const char* endpoint);
void configuration(const char* endpoint);

#endif
