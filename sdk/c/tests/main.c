// c_scenarios SCENARIO ENDPOINT
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <time.h>

#include "scenarios.h"

struct told {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  long newest;
  long times;
};

told* told_new(void) {
  told* all = calloc(1, sizeof *all);
  CHECK(all != NULL);
  pthread_mutex_init(&all->mutex, NULL);
  pthread_cond_init(&all->changed, NULL);
  return all;
}

void told_say(told* all, long what) {
  pthread_mutex_lock(&all->mutex);
  all->newest = what;
  ++all->times;
  pthread_cond_broadcast(&all->changed);
  pthread_mutex_unlock(&all->mutex);
}

void told_wait(told* all, long what) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += LIMIT_MS / 1000;
  pthread_mutex_lock(&all->mutex);
  while (all->times == 0 || all->newest != what) CHECK(pthread_cond_timedwait(&all->changed, &all->mutex, &until) == 0);
  pthread_mutex_unlock(&all->mutex);
}

long told_times(told* all) {
  pthread_mutex_lock(&all->mutex);
  const long times = all->times;
  pthread_mutex_unlock(&all->mutex);
  return times;
}

void told_free(told* all) {
  pthread_cond_destroy(&all->changed);
  pthread_mutex_destroy(&all->mutex);
  free(all);
}

conclave_client* client_of(const char* endpoint) {
  conclave_error error;
  conclave_client* client = NULL;
  conclave_client_options options = CONCLAVE_CLIENT_OPTIONS_INIT;
  options.endpoints = conclave_str_of(endpoint);
  OK(conclave_client_open(&options, &client, &error));
  return client;
}

int same(conclave_str text, const char* expected) {
  return text.size == strlen(expected) && (text.size == 0 || memcmp(text.data, expected, text.size) == 0);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(const char* endpoint);
  } all[] = {
      {"put_and_get", put_and_get},
      {"transactions", transactions},
      {"watch_sees_a_change", watch_sees_a_change},
      {"errors_are_filled", errors_are_filled},
      {"null_is_fine", null_is_fine},
      {"struct_sizes", struct_sizes},
      {"environment", environment},
      {"lock_excludes", lock_excludes},
      {"lock_is_lost", lock_is_lost},
      {"register_and_discover", register_and_discover},
      {"health_and_refusals", health_and_refusals},
      {"configuration", configuration},
  };
  check_layout();
  for (size_t i = 0; argc == 3 && i < sizeof all / sizeof *all; ++i) {
    if (strcmp(all[i].name, argv[1]) == 0) {
      all[i].run(argv[2]);
      return 0;
    }
  }
  fprintf(stderr, "usage: c_scenarios SCENARIO ENDPOINT\n");
  return 2;
}
