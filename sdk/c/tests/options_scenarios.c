#define _POSIX_C_SOURCE 200809L

#include "scenarios.h"

void errors_are_filled(const char* endpoint) {
  conclave_error error;
  memset(&error, 'x', sizeof error);
  conclave_client* client = client_of(endpoint);
  OK(conclave_put(client, CONCLAVE_STR("a"), CONCLAVE_STR("b"), NULL, NULL, &error));
  CHECK(error.code == CONCLAVE_OK && error.outcome == CONCLAVE_NOTHING_HAPPENED && error.message[0] == '\0');

  conclave_kv_result* result = (conclave_kv_result*)endpoint; /* is not left as it was */
  conclave_get_options get = CONCLAVE_GET_OPTIONS_INIT;
  get.revision = 1000000;
  CHECK(conclave_get(client, CONCLAVE_STR("a"), &get, &result, &error) == CONCLAVE_OUT_OF_RANGE);
  CHECK(error.code == CONCLAVE_OUT_OF_RANGE && error.outcome == CONCLAVE_NEVER_WORKS && result == NULL);
  CHECK(strstr(error.message, "etcdserver: mvcc: required revision is a future revision") == error.message);
  CHECK(strstr(error.message, endpoint) != NULL);                                               /* who said so */
  CHECK(conclave_get(client, CONCLAVE_STR("a"), &get, &result, NULL) == CONCLAVE_OUT_OF_RANGE); /* no error wanted */

  get = (conclave_get_options)CONCLAVE_GET_OPTIONS_INIT;
  get.timeout_ms = 0;
  CHECK(conclave_get(client, CONCLAVE_STR("a"), &get, &result, &error) == CONCLAVE_DEADLINE_EXCEEDED);
  conclave_stop* stop = conclave_stop_new();
  CHECK(!conclave_stop_requested(stop));
  conclave_stop_request(stop);
  CHECK(conclave_stop_requested(stop));
  get = (conclave_get_options)CONCLAVE_GET_OPTIONS_INIT;
  get.stop = stop;
  CHECK(conclave_get(client, CONCLAVE_STR("a"), &get, &result, &error) == CONCLAVE_CANCELLED);
  conclave_stop_free(stop);

  conclave_put_options put = CONCLAVE_PUT_OPTIONS_INIT;
  put.lease = 7;
  CHECK(conclave_put(client, CONCLAVE_STR("a"), CONCLAVE_STR("b"), &put, NULL, &error) == CONCLAVE_NOT_FOUND);
  CHECK(strcmp(conclave_code_name(error.code), "not found") == 0);
  CHECK(strcmp(conclave_outcome_name(error.outcome), "never works as sent") == 0);
  CHECK(strcmp(conclave_code_name(-5), "unknown") == 0 && strcmp(conclave_code_name(0), "ok") == 0);

  /* A text that does not fit is cut, at a whole character: the culprit's name is as long as one likes. */
  char name[2000];
  for (size_t i = 0; i + 2 < sizeof name; i += 2) memcpy(name + i, "\xc3\xa4", 2);
  conclave_client* other = NULL;
  conclave_client_options where = CONCLAVE_CLIENT_OPTIONS_INIT;
  for (size_t shift = 0; shift < 2; ++shift) {
    name[0] = shift == 0 ? '\xc3' : 'x';
    name[1] = shift == 0 ? '\xa4' : 'x';
    where.endpoints.data = name + shift; /* either way one of the two would be cut in its middle */
    where.endpoints.size = sizeof name - 2 - shift;
    CHECK(conclave_client_open(&where, &other, &error) == CONCLAVE_INVALID_ARGUMENT);
    const size_t size = strlen(error.message);
    CHECK(size >= CONCLAVE_MESSAGE_SIZE - 2 && size < CONCLAVE_MESSAGE_SIZE);
    CHECK((unsigned char)error.message[size - 1] == 0xa4);
  }
  CHECK(other == NULL);

  OK(conclave_client_close(client, -1, &error));
  CHECK(conclave_client_state(client) == CONCLAVE_CLOSED);
  CHECK(conclave_get(client, CONCLAVE_STR("a"), NULL, &result, &error) == CONCLAVE_FAILED_PRECONDITION);
  CHECK(strcmp(error.message, "client is closed") == 0);
  conclave_client_free(client);
}

void null_is_fine(const char* endpoint) {
  (void)endpoint;
  conclave_client_free(NULL);
  conclave_config_free(NULL);
  conclave_config_set_free(NULL);
  conclave_discovery_free(NULL);
  conclave_instances_free(NULL);
  conclave_kv_result_free(NULL);
  conclave_lock_free(NULL);
  conclave_pick_free(NULL);
  conclave_registration_free(NULL);
  conclave_session_free(NULL);
  conclave_stop_free(NULL);
  conclave_txn_free(NULL);
  conclave_txn_result_free(NULL);
  conclave_watch_batch_free(NULL);
  conclave_watch_free(NULL);

  /* Accessors of NULL give what an empty one would. */
  CHECK(conclave_client_state(NULL) == CONCLAVE_CLOSED);
  CHECK(conclave_config_set_at(NULL, 0) == NULL && conclave_config_set_size(NULL) == 0);
  CHECK(conclave_config_snapshot(NULL) == NULL && conclave_discovery_snapshot(NULL) == NULL);
  CHECK(conclave_instances_at(NULL, 0) == NULL && conclave_kv_result_at(NULL, 0) == NULL);
  CHECK(conclave_lock_held(NULL) == 0 && conclave_lock_token(NULL) == 0 && conclave_lock_key(NULL).size == 0);
  CHECK(conclave_pick_instance(NULL) == NULL && conclave_registration_state(NULL) == CONCLAVE_GONE);
  CHECK(conclave_session_held(NULL) == 0 && conclave_session_state(NULL) == CONCLAVE_SESSION_LOST);
  CHECK(conclave_txn_result_at(NULL, 0) == NULL && conclave_watch_batch_at(NULL, 0) == NULL);
  CHECK(conclave_watch_batch_gap(NULL) == NULL && conclave_str_of(NULL).size == 0);
  conclave_session_orphan(NULL);
  conclave_watch_close(NULL);
  conclave_pick_failed(NULL);
  conclave_stop_request(NULL);
  conclave_lock_on_lost(NULL, NULL, NULL);

  /* Where a handle is needed its lack is an error that names it. */
  conclave_error error;
  conclave_lock* lock = NULL;
  CHECK(conclave_put(NULL, CONCLAVE_STR("a"), CONCLAVE_STR("b"), NULL, NULL, &error) == CONCLAVE_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "client") != NULL && error.outcome == CONCLAVE_NEVER_WORKS);
  CHECK(conclave_mutex_lock(NULL, CONCLAVE_STR("a"), -1, NULL, &lock, &error) == CONCLAVE_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "session") != NULL);
  CHECK(conclave_lock_unlock(NULL, -1, NULL) == CONCLAVE_INVALID_ARGUMENT);
  CHECK(conclave_client_open(NULL, NULL, &error) == CONCLAVE_INVALID_ARGUMENT);
}

void struct_sizes(const char* endpoint) {
  conclave_error error;
  conclave_client* client = client_of(endpoint);
  conclave_kv_result* result = NULL;
  OK(conclave_put(client, CONCLAVE_STR("a"), CONCLAVE_STR("b"), NULL, NULL, &error));

  /* An older program's struct: what lies behind it is not ours and is not looked at. */
  conclave_get_options older = CONCLAVE_GET_OPTIONS_INIT;
  older.struct_size = offsetof(conclave_get_options, revision);
  older.revision = 1000000;
  OK(conclave_get(client, CONCLAVE_STR("a"), &older, &result, &error));
  CHECK(conclave_kv_result_size(result) == 1);
  conclave_kv_result_free(result);
  /* What is left out has the default and not zero: no callback_threads at all would be refused. */
  conclave_client* other = NULL;
  conclave_client_options where = CONCLAVE_CLIENT_OPTIONS_INIT;
  where.endpoints = conclave_str_of(endpoint);
  where.callback_threads = 0;
  CHECK(conclave_client_open(&where, &other, &error) == CONCLAVE_INVALID_ARGUMENT);
  where.struct_size = offsetof(conclave_client_options, callback_threads);
  OK(conclave_client_open(&where, &other, &error));
  conclave_client_free(other);

  /* A newer program's struct: fine as long as it asks for nothing that is not known here. */
  struct {
    conclave_get_options known;
    int64_t unknown[2];
  } newer = {CONCLAVE_GET_OPTIONS_INIT, {0, 0}};
  newer.known.struct_size = sizeof newer;
  OK(conclave_get(client, CONCLAVE_STR("a"), &newer.known, &result, &error));
  conclave_kv_result_free(result);
  newer.unknown[1] = 1;
  CHECK(conclave_get(client, CONCLAVE_STR("a"), &newer.known, &result, &error) == CONCLAVE_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "conclave_get_options: sets a member that this library does not know") != NULL);
  CHECK(error.outcome == CONCLAVE_NEVER_WORKS && result == NULL);

  /* Forgotten, or cut in a member. */
  const size_t wrong[] = {0, 4, sizeof older - 1, (size_t)-8};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    older.struct_size = wrong[i];
    CHECK(conclave_get(client, CONCLAVE_STR("a"), &older, &result, &error) == CONCLAVE_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "_INIT") != NULL);
  }
  conclave_client_free(client);
}

void environment(const char* endpoint) {
  conclave_error error;
  conclave_client* client = NULL;
  conclave_client* plain = client_of(endpoint);
  conclave_kv_result* result = NULL;
  setenv("CONCLAVE_ENDPOINTS", endpoint, 1);
  setenv("CONCLAVE_KEY_PREFIX", "below/", 1);
  OK(conclave_client_open(NULL, &client, &error));
  OK(conclave_put(client, CONCLAVE_STR("a"), CONCLAVE_STR("b"), NULL, NULL, &error));
  OK(conclave_get(plain, CONCLAVE_STR("below/a"), NULL, &result, &error));
  CHECK(conclave_kv_result_size(result) == 1);
  CHECK(conclave_client_state(client) == CONCLAVE_CONNECTED);
  conclave_kv_result_free(result);
  conclave_client_free(client);
  setenv("CONCLAVE_USER", "somebody", 1); /* a feature that is not there is not ignored */
  CHECK(conclave_client_open(NULL, &client, &error) == CONCLAVE_INVALID_ARGUMENT && client == NULL);
  conclave_client_free(plain);
}
