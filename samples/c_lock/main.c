// Orders are counted by one worker at a time. The count is written under the lock: a worker that lost it writes
// nothing.
//
//   c_lock WORKER [ORDERS]      endpoints from CONCLAVE_ENDPOINTS, else http://127.0.0.1:2379
#include <conclave_c/conclave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static conclave_code read_count(conclave_client* client, long* count, conclave_error* error) {
  conclave_kv_result* found = NULL;
  const conclave_code code = conclave_get(client, CONCLAVE_STR("orders/counted"), NULL, &found, error);
  const conclave_key_value* kv = conclave_kv_result_at(found, 0);  // NULL: not there yet
  char text[32] = "0";
  if (kv != NULL && kv->value.size < sizeof text) {
    memcpy(text, kv->value.data, kv->value.size);
    text[kv->value.size] = '\0';
  }
  *count = strtol(text, NULL, 10);
  conclave_kv_result_free(found);
  return code;
}

static conclave_code count_one(conclave_client* client, conclave_session* session, const char* worker,
                               conclave_error* error) {
  conclave_lock* lock = NULL;
  long count = 0;
  conclave_code code = conclave_mutex_lock(session, CONCLAVE_STR("locks/count"), 30000, NULL, &lock, error);
  if (code == CONCLAVE_OK) code = read_count(client, &count, error);
  if (code == CONCLAVE_OK) {
    char text[32];
    snprintf(text, sizeof text, "%ld", count + 1);
    printf("%s: order %s, fencing token %lld\n", worker, text, (long long)conclave_lock_token(lock));
    conclave_txn* done = conclave_txn_new();
    conclave_txn_put(done, CONCLAVE_THEN, CONCLAVE_STR("orders/counted"), conclave_str_of(text), 0);
    code = conclave_lock_commit(lock, done, -1, NULL, NULL, error);
    conclave_txn_free(done);
  }
  if (code == CONCLAVE_OK) code = conclave_lock_unlock(lock, -1, error);
  conclave_lock_free(lock);  // after an error it unlocks in the background
  return code;
}

int main(int argc, char** argv) {
  const char* worker = argc > 1 ? argv[1] : "worker";
  const long orders = argc > 2 ? strtol(argv[2], NULL, 10) : 10;
  conclave_error error;
  conclave_client* client = NULL;
  conclave_session* session = NULL;
  conclave_code code = conclave_client_open(NULL, &client, &error);
  if (code == CONCLAVE_OK) code = conclave_session_open(client, NULL, &session, &error);
  for (long i = 0; code == CONCLAVE_OK && i < orders; ++i) code = count_one(client, session, worker, &error);
  if (code != CONCLAVE_OK) fprintf(stderr, "%s: %s: %s\n", worker, conclave_code_name(code), error.message);
  conclave_session_free(session);
  conclave_client_free(client);
  return code == CONCLAVE_OK ? 0 : 1;
}
