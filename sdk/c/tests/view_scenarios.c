#include "scenarios.h"

struct health {
  told* asked;  // 1: the check has run
  told* state;
};

static conclave_health check(char* reason, size_t reason_size, void* user) {
  struct health* health = user;
  told_say(health->asked, 1);
  snprintf(reason, reason_size, "database");
  return CONCLAVE_HEALTH_CRITICAL;
}

static void on_registration(conclave_registration_state_code state, conclave_str why, void* user) {
  struct health* health = user;
  (void)why;
  told_say(health->state, state);
}

static void on_instances(const conclave_instances* now, void* user) {
  const conclave_instance* first = conclave_instances_at(now, 0);
  told_say(user, first != NULL ? 10 + first->health : (long)conclave_instances_size(now));
}

void health_and_refusals(const char* endpoint) {
  conclave_error error;
  conclave_client* client = client_of(endpoint);
  told* changes = told_new();
  conclave_discovery* orders = NULL;
  conclave_discovery_options where = CONCLAVE_DISCOVERY_OPTIONS_INIT;
  where.service = CONCLAVE_STR("orders");
  where.balancer = CONCLAVE_LEAST_PENDING;
  where.on_change = on_instances;
  where.user = changes;
  OK(conclave_discovery_open(client, &where, &orders, &error));
  OK(conclave_discovery_wait_ready(orders, LIMIT_MS, &error));

  struct health health = {told_new(), told_new()};
  conclave_registration* self = NULL;
  conclave_service_options what = CONCLAVE_SERVICE_OPTIONS_INIT;
  what.service = CONCLAVE_STR("orders");
  what.address = CONCLAVE_STR("10.0.0.7");
  what.port = 8080;
  what.check = check;
  what.on_state = on_registration;
  what.user = &health;
  OK(conclave_register(client, &what, &self, &error));
  told_wait(health.asked, 1);
  told_wait(health.state, CONCLAVE_REGISTERED);
  told_wait(changes, 10 + CONCLAVE_HEALTH_CRITICAL);
  conclave_instances* list = conclave_discovery_snapshot(orders);
  const conclave_instance* instance = conclave_instances_at(list, 0);
  CHECK(same(instance->reason, "database") && !instance->usable);
  CHECK(instance->id.size > 0 && instance->id.size == conclave_registration_id(self).size);
  conclave_instances_free(list);
  conclave_pick_result* pick = NULL;
  CHECK(conclave_pick(orders, NULL, &pick, &error) == CONCLAVE_UNAVAILABLE); /* critical is never picked */
  conclave_registration_free(self);
  told_wait(changes, 0); /* removed, in the background */

  /* A healthy one, unless it is excluded. */
  what.check = NULL;
  what.on_state = NULL;
  what.id = CONCLAVE_STR("two");
  OK(conclave_register(client, &what, &self, &error));
  told_wait(changes, 10 + CONCLAVE_HEALTH_PASSING);
  OK(conclave_pick(orders, NULL, &pick, &error));
  conclave_pick_free(pick);
  conclave_pick_options not_two = CONCLAVE_PICK_OPTIONS_INIT;
  not_two.exclude = &what.id;
  not_two.exclude_count = 1;
  CHECK(conclave_pick(orders, &not_two, &pick, &error) == CONCLAVE_UNAVAILABLE);
  conclave_registration_free(self);

  what.port = 65536;
  CHECK(conclave_register(client, &what, &self, &error) == CONCLAVE_INVALID_ARGUMENT && self == NULL);
  what.port = 8080;
  what.service = CONCLAVE_STR("a/b");
  CHECK(conclave_register(client, &what, &self, &error) == CONCLAVE_INVALID_ARGUMENT && self == NULL);
  conclave_discovery* none = NULL;
  where.balancer = 7;
  CHECK(conclave_discovery_open(client, &where, &none, &error) == CONCLAVE_INVALID_ARGUMENT && none == NULL);
  CHECK(strstr(error.message, "balancer") != NULL);
  conclave_discovery_free(orders);
  conclave_client_free(client);
  told_free(changes);
  told_free(health.asked);
  told_free(health.state);
}

struct reload {
  told* workers;  /* of the newest set */
  told* rejected; /* the revision */
};

static long workers_of(const conclave_config_set* set) {
  conclave_str value;
  return conclave_config_set_find(set, CONCLAVE_STR("workers"), &value) ? value.data[0] - '0' : -1;
}

static int validate(const conclave_config_set* set, char* reason, size_t reason_size, void* user) {
  (void)user;
  if (workers_of(set) > 0) return 0;
  snprintf(reason, reason_size, "workers: at least 1");
  return 1;
}
static void on_config(const conclave_config_set* before, const conclave_config_set* now, void* user) {
  CHECK(conclave_config_set_revision(before) < conclave_config_set_revision(now));
  told_say(((struct reload*)user)->workers, workers_of(now));
}
static void on_rejected(int64_t revision, const conclave_error* why, void* user) {
  CHECK(why->code == CONCLAVE_INVALID_ARGUMENT && strstr(why->message, "workers: at least 1") != NULL);
  told_say(((struct reload*)user)->rejected, (long)revision);
}

void configuration(const char* endpoint) {
  conclave_error error;
  conclave_client* client = client_of(endpoint);
  struct reload reload = {told_new(), told_new()};
  conclave_config* config = NULL;
  conclave_config_options options = CONCLAVE_CONFIG_OPTIONS_INIT;
  options.prefix = CONCLAVE_STR("config/orders/");
  options.validate = validate;
  options.on_change = on_config;
  options.on_rejected = on_rejected;
  options.user = &reload;
  options.timeout_ms = 300;
  CHECK(conclave_config_open(client, &options, &config, &error) == CONCLAVE_INVALID_ARGUMENT && config == NULL);
  CHECK(strstr(error.message, "workers: at least 1") != NULL);

  OK(conclave_put(client, CONCLAVE_STR("config/orders/workers"), CONCLAVE_STR("4"), NULL, NULL, &error));
  OK(conclave_put(client, CONCLAVE_STR("config/orders/currency"), CONCLAVE_STR("EUR"), NULL, NULL, &error));
  options.timeout_ms = LIMIT_MS;
  OK(conclave_config_open(client, &options, &config, &error));
  conclave_config_set* set = conclave_config_snapshot(config);
  CHECK(conclave_config_set_size(set) == 2 && conclave_config_set_source(set) == CONCLAVE_FROM_SERVER);
  CHECK(same(conclave_config_set_at(set, 0)->key, "currency") && same(conclave_config_set_at(set, 0)->value, "EUR"));
  CHECK(same(conclave_config_set_at(set, 1)->key, "workers") && conclave_config_set_at(set, 2) == NULL);
  CHECK(workers_of(set) == 4);
  conclave_str value = CONCLAVE_STR("x");
  CHECK(!conclave_config_set_find(set, CONCLAVE_STR("banks"), &value) && value.size == 0);

  OK(conclave_put(client, CONCLAVE_STR("config/orders/workers"), CONCLAVE_STR("8"), NULL, NULL, &error));
  told_wait(reload.workers, 8);
  CHECK(workers_of(set) == 4); /* the old set stays as it was */
  conclave_kv_result* result = NULL;
  OK(conclave_put(client, CONCLAVE_STR("config/orders/workers"), CONCLAVE_STR("0"), NULL, &result, &error));
  told_wait(reload.rejected, (long)conclave_kv_result_revision(result));
  conclave_kv_result_free(result);
  conclave_config_set* newer = conclave_config_snapshot(config);
  CHECK(workers_of(newer) == 8 && conclave_config_set_revision(newer) > conclave_config_set_revision(set));
  conclave_config_free(config);
  CHECK(workers_of(newer) == 8); /* it keeps what it needs */
  conclave_config_set_free(newer);
  conclave_config_set_free(set);
  conclave_client_free(client);
  told_free(reload.workers);
  told_free(reload.rejected);
}
