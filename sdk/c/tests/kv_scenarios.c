#include "scenarios.h"

void put_and_get(const char* endpoint) {
  conclave_error error;
  conclave_client* client = client_of(endpoint);
  conclave_kv_result* result = NULL;
  OK(conclave_get(client, CONCLAVE_STR("a"), NULL, &result, &error));
  CHECK(conclave_kv_result_size(result) == 0);
  CHECK(conclave_kv_result_at(result, 0) == NULL); /* absence is no error */
  conclave_kv_result_free(result);

  const conclave_str bytes = {"b\0c", 3};
  OK(conclave_put(client, CONCLAVE_STR("a"), bytes, NULL, &result, &error));
  const int64_t first = conclave_kv_result_revision(result);
  CHECK(first > 0);
  CHECK(conclave_kv_result_size(result) == 0);
  conclave_kv_result_free(result);

  conclave_put_options put = CONCLAVE_PUT_OPTIONS_INIT;
  put.prev_kv = 1;
  OK(conclave_put(client, CONCLAVE_STR("a"), CONCLAVE_STR("d"), &put, &result, &error));
  const conclave_key_value* kv = conclave_kv_result_at(result, 0);
  CHECK(kv != NULL);
  CHECK(kv->value.size == bytes.size && memcmp(kv->value.data, bytes.data, bytes.size) == 0);
  CHECK(kv->version == 1 && kv->create_revision == first && kv->mod_revision == first && kv->lease == 0);
  conclave_kv_result_free(result);

  conclave_get_options get = CONCLAVE_GET_OPTIONS_INIT;
  OK(conclave_get(client, CONCLAVE_STR("a"), &get, &result, &error));
  kv = conclave_kv_result_at(result, 0);
  CHECK(kv != NULL && same(kv->key, "a") && same(kv->value, "d") && kv->version == 2 && kv->mod_revision == first + 1);
  conclave_kv_result_free(result);
  get.revision = first; /* as it was then */
  OK(conclave_get(client, CONCLAVE_STR("a"), &get, &result, &error));
  CHECK(conclave_kv_result_at(result, 0)->value.size == bytes.size);
  conclave_kv_result_free(result);

  OK(conclave_put(client, CONCLAVE_STR("ab"), CONCLAVE_STR("e"), NULL, NULL, &error));
  OK(conclave_put(client, CONCLAVE_STR("b"), CONCLAVE_STR(""), NULL, NULL, &error));
  conclave_range_options range = CONCLAVE_RANGE_OPTIONS_INIT;
  range.key = CONCLAVE_STR("a");
  range.prefix = 1;
  range.limit = 1;
  range.order = CONCLAVE_SORT_DESCEND;
  OK(conclave_range(client, &range, &result, &error));
  CHECK(conclave_kv_result_count(result) == 2 && conclave_kv_result_more(result));
  CHECK(conclave_kv_result_size(result) == 1 && same(conclave_kv_result_at(result, 0)->key, "ab"));
  conclave_kv_result_free(result);

  conclave_delete_options gone = CONCLAVE_DELETE_OPTIONS_INIT;
  gone.prefix = 1;
  gone.prev_kv = 1;
  OK(conclave_delete(client, CONCLAVE_STR("a"), &gone, &result, &error));
  CHECK(conclave_kv_result_count(result) == 2 && conclave_kv_result_size(result) == 2);
  CHECK(same(conclave_kv_result_at(result, 1)->value, "e"));
  conclave_kv_result_free(result);
  conclave_client_free(client);
}

void transactions(const char* endpoint) {
  conclave_error error;
  conclave_client* client = client_of(endpoint);
  conclave_txn* txn = conclave_txn_new();
  conclave_txn_when(txn, CONCLAVE_COMPARE_CREATE, CONCLAVE_STR("k"), CONCLAVE_EQUAL, 0);
  conclave_txn_put(txn, CONCLAVE_THEN, CONCLAVE_STR("k"), CONCLAVE_STR("v"), 0);
  conclave_txn_get(txn, CONCLAVE_OTHERWISE, CONCLAVE_STR("k"), 0);
  conclave_txn_delete(txn, CONCLAVE_OTHERWISE, CONCLAVE_STR("k"), 1);

  conclave_txn_result* result = NULL;
  OK(conclave_commit(client, txn, -1, NULL, &result, &error));
  CHECK(conclave_txn_result_succeeded(result) && conclave_txn_result_size(result) == 1);
  CHECK(conclave_txn_result_revision(result) > 0);
  conclave_txn_result_free(result);
  OK(conclave_commit(client, txn, -1, NULL, &result, &error));
  CHECK(!conclave_txn_result_succeeded(result) && conclave_txn_result_size(result) == 2);
  CHECK(same(conclave_kv_result_at(conclave_txn_result_at(result, 0), 0)->value, "v"));
  CHECK(conclave_kv_result_count(conclave_txn_result_at(result, 1)) == 1);
  CHECK(conclave_txn_result_at(result, 2) == NULL);
  conclave_txn_result_free(result);
  conclave_txn_free(txn);

  txn = conclave_txn_new();
  conclave_txn_when_value(txn, CONCLAVE_STR("k"), CONCLAVE_EQUAL, CONCLAVE_STR("v"));
  OK(conclave_commit(client, txn, -1, NULL, &result, &error));
  CHECK(!conclave_txn_result_succeeded(result)); /* it was deleted */
  conclave_txn_result_free(result);
  conclave_txn_when_value(txn, CONCLAVE_STR("k"), 9, CONCLAVE_STR("v"));
  CHECK(conclave_commit(client, txn, -1, NULL, &result, &error) == CONCLAVE_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "relation") != NULL && result == NULL);
  conclave_txn_free(txn);
  conclave_client_free(client);
}

void watch_sees_a_change(const char* endpoint) {
  conclave_error error;
  conclave_client* client = client_of(endpoint);
  conclave_watch* watch = NULL;
  conclave_watch_batch* batch = NULL;
  conclave_watch_options options = CONCLAVE_WATCH_OPTIONS_INIT;
  options.key = CONCLAVE_STR("app/");
  options.prefix = 1;
  options.prev_kv = 1;
  OK(conclave_watch_open(client, &options, &watch, &error));
  OK(conclave_watch_wait_ready(watch, LIMIT_MS, &error));
  CHECK(conclave_watch_next(watch, 20, NULL, &batch, &error) == CONCLAVE_DEADLINE_EXCEEDED); /* nothing happens */
  CHECK(batch == NULL && error.code == CONCLAVE_DEADLINE_EXCEEDED);

  OK(conclave_put(client, CONCLAVE_STR("other"), CONCLAVE_STR("x"), NULL, NULL, &error));
  OK(conclave_put(client, CONCLAVE_STR("app/a"), CONCLAVE_STR("1"), NULL, NULL, &error));
  OK(conclave_put(client, CONCLAVE_STR("app/a"), CONCLAVE_STR("2"), NULL, NULL, &error));
  OK(conclave_delete(client, CONCLAVE_STR("app/a"), NULL, NULL, &error));

  OK(conclave_watch_next(watch, LIMIT_MS, NULL, &batch, &error));
  const int64_t revision = conclave_watch_batch_revision(batch);
  CHECK(conclave_watch_batch_gap(batch) == NULL && conclave_watch_batch_size(batch) == 1);
  const conclave_event* event = conclave_watch_batch_at(batch, 0);
  CHECK(event->type == CONCLAVE_EVENT_PUT && event->created && event->previous == NULL);
  CHECK(same(event->kv->key, "app/a") && same(event->kv->value, "1") && event->kv->mod_revision == revision);
  CHECK(conclave_watch_batch_at(batch, 1) == NULL);
  conclave_watch_batch_free(batch);

  OK(conclave_watch_next(watch, LIMIT_MS, NULL, &batch, &error));
  event = conclave_watch_batch_at(batch, 0);
  CHECK(!event->created && same(event->kv->value, "2") && same(event->previous->value, "1"));
  conclave_watch_batch_free(batch);
  OK(conclave_watch_next(watch, LIMIT_MS, NULL, &batch, &error));
  event = conclave_watch_batch_at(batch, 0);
  CHECK(event->type == CONCLAVE_EVENT_DELETE && same(event->kv->key, "app/a") && same(event->previous->value, "2"));
  CHECK(conclave_watch_batch_revision(batch) == revision + 2);
  conclave_watch_batch_free(batch);

  conclave_stop* stop = conclave_stop_new();
  conclave_stop_request(stop);
  CHECK(conclave_watch_next(watch, -1, stop, &batch, &error) == CONCLAVE_CANCELLED);
  conclave_stop_free(stop);
  conclave_client_free(client); /* the watch keeps what it needs */
  conclave_watch_close(watch);
  CHECK(conclave_watch_next(watch, -1, NULL, &batch, &error) == CONCLAVE_FAILED_PRECONDITION);
  conclave_watch_free(watch);
}
