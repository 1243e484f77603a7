#include "conclave_c/config.h"

#include "binding.h"
#include "conclave/config.h"
#include "handles.h"

using namespace conclave::c;
using conclave::fail;
using conclave::Status;

namespace {

// What the reloader binds to: the values themselves, and what points into them. It does not move.
struct Values {
  explicit Values(const conclave::ConfigSet& of) : set(of) {
    pairs.reserve(set.values().size());
    for (const auto& [name, value] : set.values())
      pairs.push_back({borrow(std::string_view(name)), borrow(std::string_view(value))});
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  const conclave::ConfigSet set;
  std::vector<conclave_pair> pairs;
};
using Bound = std::shared_ptr<const Values>;
using Reloader = conclave::ConfigReloader<Bound>;

}  // namespace

struct conclave_config_set {
  explicit conclave_config_set(Bound of, conclave::ViewSource from) : values(std::move(of)), source(from) {}
  explicit conclave_config_set(const Reloader::Snapshot& of) : conclave_config_set(of.value, of.source) {}
  const Bound values;
  const conclave::ViewSource source;
};

struct conclave_config {
  Reloader reloader;
};

namespace {

conclave::ConfigOptions<Bound> options_from(const conclave_config_options& given) {
  conclave::ConfigOptions<Bound> options;
  options.prefix = text(given.prefix);
  options.cache_file = text(given.cache_file);
  options.call = call_of(given.timeout_ms, given.stop);
  options.bind = [](const conclave::ConfigSet& set) -> conclave::Result<Bound> {
    return std::make_shared<const Values>(set);
  };
  if (given.validate != nullptr) {
    options.validate = [call = given.validate, user = given.user](const Bound& values) -> Status {
      const conclave_config_set set(values, conclave::ViewSource::kNone);
      char reason[kReasonSize] = {};
      if (call(&set, reason, sizeof reason, user) == 0) return {};
      return fail(conclave::Code::kInvalidArgument, reason_of(reason));
    };
  }
  if (given.on_change != nullptr) {
    options.on_change = [call = given.on_change, user = given.user](const auto& before, const auto& now) {
      const conclave_config_set old_set(*before);
      const conclave_config_set new_set(*now);
      call(&old_set, &new_set, user);
    };
  }
  if (given.on_rejected != nullptr) {
    options.on_rejected = [call = given.on_rejected, user = given.user](conclave::Revision revision,
                                                                        const conclave::Error& why) {
      conclave_error error;
      fill(why, error);
      call(number(revision), &error, user);
    };
  }
  return options;
}

}  // namespace

conclave_code conclave_config_open(conclave_client* client, const conclave_config_options* options,
                                   conclave_config** config, conclave_error* error) {
  if (config != nullptr) *config = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"client", client}, {"options", options}, {"config", config}}); !given) return given;
    auto read = options_of<conclave_config_options>(options, CONCLAVE_CONFIG_OPTIONS_INIT, "conclave_config_options");
    if (!read) return fail(std::move(read.error()));
    auto opened = Reloader::open(client->client, options_from(*read));
    if (!opened) return fail(std::move(opened.error()));
    *config = new conclave_config{std::move(*opened)};
    return {};
  });
}

conclave_config_set* conclave_config_snapshot(const conclave_config* config) {
  return config != nullptr ? new conclave_config_set(*config->reloader.snapshot()) : nullptr;
}
void conclave_config_free(conclave_config* config) { delete config; }

size_t conclave_config_set_size(const conclave_config_set* set) {
  return set != nullptr ? set->values->pairs.size() : 0;
}
const conclave_pair* conclave_config_set_at(const conclave_config_set* set, size_t index) {
  return set != nullptr && index < set->values->pairs.size() ? &set->values->pairs[index] : nullptr;
}
int conclave_config_set_find(const conclave_config_set* set, conclave_str name, conclave_str* value) {
  const std::string* found = set != nullptr ? set->values->set.find(view(name)) : nullptr;
  if (value != nullptr) *value = found != nullptr ? borrow(std::string_view(*found)) : conclave_str{};
  return found != nullptr;
}
int64_t conclave_config_set_revision(const conclave_config_set* set) {
  return set != nullptr ? number(set->values->set.revision()) : 0;
}
conclave_view_source conclave_config_set_source(const conclave_config_set* set) {
  return set != nullptr ? static_cast<conclave_view_source>(set->source) : CONCLAVE_FROM_NOWHERE;
}
void conclave_config_set_free(conclave_config_set* set) { delete set; }
