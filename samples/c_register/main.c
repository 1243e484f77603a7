// A service written in C that registers itself, and leaves gracefully on SIGINT or SIGTERM.
//
//   c_register SERVICE ADDRESS PORT     endpoints from CONCLAVE_ENDPOINTS, else http://127.0.0.1:2379
#define _POSIX_C_SOURCE 200809L

#include <conclave_c/conclave.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void on_state(conclave_registration_state_code state, conclave_str why, void* user) {
  (void)user;
  printf("registration: %.*s (state %d)\n", (int)why.size, why.data, (int)state);
  fflush(stdout);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: c_register SERVICE ADDRESS PORT\n");
    return 2;
  }
  // First: all threads to come inherit that these signals are blocked, and sigwait takes them.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, NULL);

  conclave_error error;
  conclave_client* client = NULL;
  conclave_registration* self = NULL;
  conclave_service_options what = CONCLAVE_SERVICE_OPTIONS_INIT;
  what.service = conclave_str_of(argv[1]);
  what.address = conclave_str_of(argv[2]);
  what.port = atoi(argv[3]);
  what.ttl_s = 3;  // a killed instance is gone after this time
  what.on_state = on_state;
  if (conclave_client_open(NULL, &client, &error) || conclave_register(client, &what, &self, &error)) {
    fprintf(stderr, "%s\n", error.message);
    conclave_client_free(client);
    return 1;
  }
  if (conclave_registration_wait_ready(self, 5000, &error)) fprintf(stderr, "still trying: %s\n", error.message);

  int signal_number = 0;
  sigwait(&ends, &signal_number);
  if (conclave_registration_drain(self, 1000, &error)) fprintf(stderr, "the lease will remove it: %s\n", error.message);
  conclave_registration_free(self);
  conclave_client_free(client);
  return 0;
}
