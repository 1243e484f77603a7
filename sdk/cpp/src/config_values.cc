#include "config_values.h"

#include <utility>

#include "cache_file.h"

namespace conclave::inline v1::internal {
namespace {

constexpr const char* kKind = "conclave-configuration";

}  // namespace

ConfigValues ConfigValues::of(const std::string& prefix, const RangeResult& list) {
  ConfigValues config{.values = {}, .revision = list.revision};
  for (const KeyValue& kv : list.kvs) config.values.emplace(kv.key.substr(prefix.size()), kv.value);
  return config;
}

void ConfigValues::apply(const std::string& prefix, const WatchBatch& batch) {
  for (const Event& event : batch.events) {
    std::string name = event.kv.key.substr(prefix.size());
    if (event.type == EventType::kDelete) {
      values.erase(name);
    } else {
      values.insert_or_assign(std::move(name), event.kv.value);
    }
  }
  revision = batch.revision;
}

Status write_config(const std::string& path, const std::string& prefix, const ConfigValues& config) {
  Json values = Json::object();
  for (const auto& [name, value] : config.values) values.set(base64_encode(name), base64_encode(value));
  return write_cache_file(path, kKind,
                          Json::object()
                              .set("prefix", base64_encode(prefix))
                              .set("revision", number(config.revision))
                              .set("values", std::move(values)));
}

Result<ConfigValues> read_config(const std::string& path, const std::string& prefix) {
  const auto content = read_cache_file(path, kKind);
  if (!content) return fail(content.error());
  if ((*content)["prefix"].text() != base64_encode(prefix)) {
    return fail(Code::kInvalidArgument, path + ": holds the configuration of another prefix");
  }
  ConfigValues config{.values = {}, .revision = Revision{(*content)["revision"].integer()}};
  for (const auto& [name, value] : (*content)["values"].members()) {
    auto plain_name = base64_decode(name);
    auto plain_value = base64_decode(value.text());
    if (!plain_name || !plain_value) return fail(Code::kDataLoss, path + ": a value is not base64");
    config.values.emplace(std::move(*plain_name), std::move(*plain_value));
  }
  return config;
}

}  // namespace conclave::inline v1::internal
