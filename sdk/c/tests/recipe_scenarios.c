#include "scenarios.h"

void lock_excludes(const char* endpoint) {
  conclave_error error;
  conclave_client* clients[2];
  conclave_session* sessions[2];
  for (int i = 0; i < 2; ++i) {
    clients[i] = client_of(endpoint);
    OK(conclave_session_open(clients[i], NULL, &sessions[i], &error));
    CHECK(conclave_session_held(sessions[i]) && conclave_session_state(sessions[i]) == CONCLAVE_SESSION_LIVE);
    CHECK(conclave_session_ttl_s(sessions[i]) >= 10 && conclave_session_lease(sessions[i]) != 0);
  }
  const conclave_str name = CONCLAVE_STR("locks/orders/42");
  conclave_lock* held = NULL;
  conclave_lock* other = NULL;
  OK(conclave_mutex_lock(sessions[0], name, LIMIT_MS, NULL, &held, &error));
  CHECK(conclave_lock_held(held) && conclave_lock_token(held) > 0);
  CHECK(conclave_lock_key(held).size > name.size && memcmp(conclave_lock_key(held).data, name.data, name.size) == 0);

  OK(conclave_mutex_try_lock(sessions[1], name, -1, NULL, &other, &error));
  CHECK(other == NULL);
  CHECK(conclave_mutex_lock(sessions[1], name, 100, NULL, &other, &error) == CONCLAVE_DEADLINE_EXCEEDED);
  CHECK(other == NULL && error.outcome == CONCLAVE_NOTHING_HAPPENED);
  conclave_stop* stop = conclave_stop_new();
  conclave_stop_request(stop);
  CHECK(conclave_mutex_lock(sessions[1], name, -1, stop, &other, &error) == CONCLAVE_CANCELLED);
  conclave_stop_free(stop);

  const int64_t token = conclave_lock_token(held);
  OK(conclave_lock_unlock(held, -1, &error));
  CHECK(!conclave_lock_held(held) && conclave_lock_token(held) == token);
  CHECK(conclave_lock_unlock(held, -1, &error) == CONCLAVE_ABORTED);
  conclave_lock_free(held);

  OK(conclave_mutex_lock(sessions[1], name, LIMIT_MS, NULL, &other, &error));
  CHECK(conclave_lock_token(other) > token);
  conclave_lock_free(other); /* unlocks in the background */
  OK(conclave_mutex_lock(sessions[0], name, LIMIT_MS, NULL, &held, &error));
  conclave_lock_free(held);
  for (int i = 0; i < 2; ++i) {
    conclave_client_free(clients[i]); /* in whatever order */
    conclave_session_free(sessions[i]);
  }
}

static void say_lost(void* user) { told_say(user, 1); }

static void say_state(conclave_session_state_code state, conclave_str why, void* user) {
  CHECK(why.size > 0);
  told_say(user, state);
}

struct freed_inside {
  conclave_lock* lock;
  told* done;
};
static void free_inside(void* user) {
  struct freed_inside* inside = user;
  conclave_lock_free(inside->lock);
  told_say(inside->done, 1);
}

void lock_is_lost(const char* endpoint) {
  conclave_error error;
  conclave_client* client = client_of(endpoint);
  conclave_session* session = NULL;
  conclave_session_options options = CONCLAVE_SESSION_OPTIONS_INIT;
  told* state = told_new();
  options.on_state = say_state;
  options.user = state;
  OK(conclave_session_open(client, &options, &session, &error));
  conclave_lock* lock = NULL;
  struct freed_inside inside = {NULL, told_new()};
  OK(conclave_mutex_lock(session, CONCLAVE_STR("a"), LIMIT_MS, NULL, &lock, &error));
  OK(conclave_mutex_lock(session, CONCLAVE_STR("b"), LIMIT_MS, NULL, &inside.lock, &error));
  told* never = told_new();
  told* lost = told_new();
  conclave_lock_on_lost(lock, say_lost, never);
  conclave_lock_on_lost(lock, say_lost, lost); /* replaces the first */
  conclave_lock_on_lost(inside.lock, free_inside, &inside);

  /* Fenced: only while the lock is held. */
  conclave_txn* txn = conclave_txn_new();
  conclave_txn_put(txn, CONCLAVE_THEN, CONCLAVE_STR("state"), CONCLAVE_STR("done"), 0);
  conclave_txn_result* result = NULL;
  OK(conclave_lock_commit(lock, txn, -1, NULL, &result, &error));
  CHECK(conclave_txn_result_succeeded(result) && conclave_txn_result_size(result) == 1);
  conclave_txn_result_free(result);
  CHECK(told_times(lost) == 0);

  OK(conclave_session_close(session, -1, &error));
  told_wait(lost, 1);
  told_wait(inside.done, 1);
  told_wait(state, CONCLAVE_SESSION_LOST);
  CHECK(told_times(never) == 0 && told_times(lost) == 1);
  CHECK(!conclave_lock_held(lock) && !conclave_session_held(session));
  CHECK(conclave_lock_commit(lock, txn, -1, NULL, NULL, &error) == CONCLAVE_ABORTED);
  CHECK(error.outcome == CONCLAVE_NOTHING_HAPPENED);
  CHECK(conclave_lock_unlock(lock, -1, &error) == CONCLAVE_ABORTED);
  conclave_lock_on_lost(lock, say_lost, lost); /* at once: it is lost already */
  CHECK(told_times(lost) == 2);
  inside.lock = lock;
  conclave_lock_on_lost(lock, free_inside, &inside);
  CHECK(told_times(inside.done) == 2);
  conclave_txn_free(txn);
  conclave_session_free(session);
  conclave_client_free(client);
  told_free(never);
  told_free(lost);
  told_free(inside.done);
  told_free(state);
}

static int never_idle(void* user) {
  (void)user;
  return 0;
}
static int idle(void* user) {
  told_say(user, 1);
  return 1;
}

void register_and_discover(const char* endpoint) {
  conclave_error error;
  conclave_client* client = client_of(endpoint);
  conclave_discovery* orders = NULL;
  conclave_discovery_options where = CONCLAVE_DISCOVERY_OPTIONS_INIT;
  where.service = CONCLAVE_STR("orders");
  OK(conclave_discovery_open(client, &where, &orders, &error));
  OK(conclave_discovery_wait_ready(orders, LIMIT_MS, &error));
  conclave_pick_result* pick = NULL;
  CHECK(conclave_pick(orders, NULL, &pick, &error) == CONCLAVE_UNAVAILABLE && pick == NULL);
  conclave_discovery_free(orders);

  const conclave_pair metadata[] = {{CONCLAVE_STR("protocol"), CONCLAVE_STR("http")},
                                    {CONCLAVE_STR("build"), CONCLAVE_STR("7")}};
  conclave_registration* self = NULL;
  conclave_service_options what = CONCLAVE_SERVICE_OPTIONS_INIT;
  told* asked = told_new();
  what.service = CONCLAVE_STR("orders");
  what.id = CONCLAVE_STR("one");
  what.address = CONCLAVE_STR("fd00::7");
  what.port = 8080;
  what.zone = CONCLAVE_STR("eu-1a");
  what.metadata = metadata;
  what.metadata_count = 2;
  what.idle = idle;
  what.user = asked;
  OK(conclave_register(client, &what, &self, &error));
  CHECK(same(conclave_registration_id(self), "one"));
  OK(conclave_registration_wait_ready(self, LIMIT_MS, &error));
  CHECK(conclave_registration_state(self) == CONCLAVE_REGISTERED);

  OK(conclave_discovery_open(client, &where, &orders, &error));
  OK(conclave_discovery_wait_ready(orders, LIMIT_MS, &error));
  conclave_instances* list = conclave_discovery_snapshot(orders);
  CHECK(conclave_instances_size(list) == 1 && conclave_instances_at(list, 1) == NULL);
  CHECK(conclave_instances_source(list) == CONCLAVE_FROM_SERVER && conclave_instances_revision(list) > 0);
  CHECK(conclave_instances_unreadable(list) == 0);
  OK(conclave_pick(orders, NULL, &pick, &error));
  conclave_discovery_free(orders); /* list and pick keep what they need */

  const conclave_instance* seen[] = {conclave_instances_at(list, 0), conclave_pick_instance(pick)};
  for (int i = 0; i < 2; ++i) {
    CHECK(same(seen[i]->id, "one") && same(seen[i]->service, "orders") && same(seen[i]->address, "fd00::7"));
    CHECK(same(seen[i]->host_port, "[fd00::7]:8080") && seen[i]->port == 8080 && same(seen[i]->zone, "eu-1a"));
    CHECK(seen[i]->weight == 100 && seen[i]->health == CONCLAVE_HEALTH_PASSING && seen[i]->usable);
    CHECK(!seen[i]->draining && seen[i]->started_ms > 0 && seen[i]->reason.size == 0);
    CHECK(seen[i]->metadata_count == 2 && same(seen[i]->metadata[0].key, "build"));
    CHECK(same(seen[i]->metadata[1].value, "http"));
  }
  conclave_pick_failed(pick);
  conclave_pick_free(pick);
  conclave_instances_free(list);

  OK(conclave_registration_drain(self, LIMIT_MS, &error)); /* not that long: it is idle */
  CHECK(told_times(asked) >= 1 && conclave_registration_state(self) == CONCLAVE_GONE);
  conclave_registration_free(self);

  /* Nobody is idle, and the grace is over at some time. */
  what.idle = never_idle;
  OK(conclave_register(client, &what, &self, &error));
  OK(conclave_registration_wait_ready(self, LIMIT_MS, &error));
  OK(conclave_registration_drain(self, 60, &error));
  conclave_registration_free(self);
  conclave_client_free(client);
  told_free(asked);
}
