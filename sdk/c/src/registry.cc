#include "conclave_c/registry.h"

#include "binding.h"
#include "conclave/registry.h"
#include "handles.h"

using namespace conclave::c;
using conclave::fail;
using conclave::Status;

struct conclave_registration {
  conclave::Registry registry;
  std::function<bool()> idle;
  conclave::Registration registration;  // goes before its registry
};

namespace {

static_assert(static_cast<int>(conclave::HealthLevel::kCritical) == CONCLAVE_HEALTH_CRITICAL);
static_assert(static_cast<int>(conclave::RegistrationState::kGone) == CONCLAVE_GONE);

constexpr std::int64_t kPortMax = 65535;
constexpr std::int64_t kWeightMax = 65535;

// A level that is none counts as critical, as an exception does.
std::function<conclave::Health()> check_of(const conclave_service_options& options) {
  if (options.check == nullptr) return nullptr;
  return [check = options.check, user = options.user] {
    char reason[kReasonSize] = {};
    const conclave_health level = check(reason, sizeof reason, user);
    auto known = enum_of(level, conclave::HealthLevel::kCritical, "health");
    if (!known) return conclave::Health::critical(known.error().message);
    return conclave::Health{*known, reason_of(reason)};
  };
}

conclave::Result<conclave::ServiceOptions> service_from(const conclave_service_options& given) {
  if (given.port < 0 || given.port > kPortMax)
    return fail(conclave::Code::kInvalidArgument, "port: " + std::to_string(given.port));
  if (given.weight < 0 || given.weight > kWeightMax)
    return fail(conclave::Code::kInvalidArgument, "weight: 0 to 65535");
  if (given.metadata_count != 0 && given.metadata == nullptr)
    return fail(conclave::Code::kInvalidArgument, "metadata: must not be NULL when metadata_count is not 0");
  conclave::ServiceOptions service{.service = text(given.service),
                                   .id = text(given.id),
                                   .address = text(given.address),
                                   .port = static_cast<std::uint16_t>(given.port),
                                   .version = text(given.version),
                                   .zone = text(given.zone),
                                   .weight = static_cast<int>(given.weight),
                                   .health = {.check = check_of(given),
                                              .every = std::chrono::milliseconds(given.check_every_ms),
                                              .fall = given.fall,
                                              .rise = given.rise}};
  for (std::size_t i = 0; i < given.metadata_count; ++i)
    service.metadata.insert_or_assign(text(given.metadata[i].key), text(given.metadata[i].value));
  if (given.on_state != nullptr) {
    service.on_state = [call = given.on_state, user = given.user](conclave::RegistrationState state,
                                                                  const std::string& why) {
      call(static_cast<conclave_registration_state_code>(state), borrow(std::string_view(why)), user);
    };
  }
  return service;
}

}  // namespace

conclave_code conclave_register(conclave_client* client, const conclave_service_options* options,
                                conclave_registration** registration, conclave_error* error) {
  if (registration != nullptr) *registration = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"client", client}, {"options", options}, {"registration", registration}}); !given)
      return given;
    auto read =
        options_of<conclave_service_options>(options, CONCLAVE_SERVICE_OPTIONS_INIT, "conclave_service_options");
    if (!read) return fail(std::move(read.error()));
    auto service = service_from(*read);
    if (!service) return fail(std::move(service.error()));
    conclave::Registry registry(client->client, {.ttl = std::chrono::seconds(read->ttl_s)});
    auto added = registry.add(std::move(*service));
    if (!added) return fail(std::move(added.error()));
    std::function<bool()> idle;
    if (read->idle != nullptr) idle = [ask = read->idle, user = read->user] { return ask(user) != 0; };
    *registration = new conclave_registration{std::move(registry), std::move(idle), std::move(*added)};
    return {};
  });
}

conclave_str conclave_registration_id(const conclave_registration* registration) {
  return registration != nullptr ? borrow(std::string_view(registration->registration.id())) : conclave_str{};
}
conclave_registration_state_code conclave_registration_state(const conclave_registration* registration) {
  return registration != nullptr ? static_cast<conclave_registration_state_code>(registration->registration.state())
                                 : CONCLAVE_GONE;
}

conclave_code conclave_registration_wait_ready(conclave_registration* registration, int64_t timeout_ms,
                                               conclave_error* error) {
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"registration", registration}}); !given) return given;
    return registration->registration.wait_ready(call_of(timeout_ms));
  });
}

conclave_code conclave_registration_drain(conclave_registration* registration, int64_t grace_ms,
                                          conclave_error* error) {
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"registration", registration}}); !given) return given;
    conclave::DrainOptions drain;
    if (grace_ms != -1) drain.grace = std::chrono::milliseconds(grace_ms);
    drain.idle = registration->idle;
    return registration->registration.drain(std::move(drain));
  });
}

void conclave_registration_free(conclave_registration* registration) { delete registration; }
