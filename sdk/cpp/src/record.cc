#include "record.h"

#include <algorithm>
#include <utility>

#include "json.h"

namespace conclave {
inline namespace v1 {

std::string Instance::host_port() const {
  const bool ipv6 = address.find(':') != std::string::npos;
  return (ipv6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

namespace internal {

namespace {

constexpr std::size_t kNameMax = 128;
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kPortMax = 65535;

bool alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

tl::unexpected<Error> bad(std::string why) { return fail(Code::kInvalidArgument, std::move(why)); }

Result<HealthLevel> level_of(std::string_view text) {
  for (const auto level : {HealthLevel::kPassing, HealthLevel::kWarning, HealthLevel::kCritical})
    if (text == to_string(level)) return level;
  return bad("health.level: '" + std::string(text) + "' is not passing, warning or critical");
}

// Absent is fine; present must be a string.
Status read_text(const Json& record, const char* name, std::string& into) {
  if (!record.has(name)) return {};
  if (!record[name].is_string()) return bad(std::string(name) + ": not a string");
  into = record[name].text();
  return {};
}

Status read_required(const Json& record, Instance& instance) {
  if (!record["v"].is_integer() || record["v"].integer() != kVersion) return bad("v: not 1");
  for (const auto& [name, into] : {std::pair{"id", &instance.id}, std::pair{"service", &instance.service},
                                   std::pair{"address", &instance.address}}) {
    if (auto read = read_text(record, name, *into); !read) return read;
    if (into->empty()) return bad(std::string(name) + ": missing");
  }
  const Json& port = record["port"];
  if (!port.is_integer() || port.integer() < 1 || port.integer() > kPortMax) return bad("port: not 1 to 65535");
  instance.port = static_cast<std::uint16_t>(port.integer());
  return {};
}

Status read_health(const Json& health, Health& into) {
  if (health.is_null()) return {};
  if (!health.is_object()) return bad("health: not an object");
  if (health.has("level")) {
    auto level = level_of(health["level"].text());
    if (!level) return fail(std::move(level.error()));
    into.level = *level;
  }
  return read_text(health, "reason", into.reason);
}

Status read_optional(const Json& record, Instance& instance) {
  for (const auto& [name, into] : {std::pair{"version", &instance.version}, std::pair{"zone", &instance.zone},
                                   std::pair{"start", &instance.start}})
    if (auto read = read_text(record, name, *into); !read) return read;
  if (record.has("weight")) {
    const Json& weight = record["weight"];
    if (!weight.is_integer() || weight.integer() < 0 || weight.integer() > kWeightMax)
      return bad("weight: not 0 to " + std::to_string(kWeightMax));
    instance.weight = static_cast<int>(weight.integer());
  }
  if (record.has("metadata") && !record["metadata"].is_object()) return bad("metadata: not an object");
  for (const auto& [name, value] : record["metadata"].members()) {
    if (!value.is_string()) return bad("metadata." + name + ": not a string");
    instance.metadata[name] = value.text();
  }
  if (record.has("draining") && !record["draining"].is_bool()) return bad("draining: not true or false");
  instance.draining = record["draining"].boolean();
  if (record.has("started_ms") && !record["started_ms"].is_integer()) return bad("started_ms: not an integer");
  instance.started_ms = record["started_ms"].integer();
  return read_health(record["health"], instance.health);
}

}  // namespace

bool valid_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameMax && alphanumeric(name.front()) &&
         std::ranges::all_of(name, [](char c) { return alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

// As Unicode defines it (table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.
bool valid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    std::size_t more = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (first < 0x80) {
      ++i;
      continue;
    }
    if (first >= 0xC2 && first <= 0xDF) {
      more = 1;
    } else if (first >= 0xE0 && first <= 0xEF) {
      more = 2;
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;
    } else if (first >= 0xF0 && first <= 0xF4) {
      more = 3;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;
    } else {
      return false;
    }
    if (i + more >= text.size()) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if (next < low || next > high) return false;
      low = 0x80;
      high = 0xBF;
    }
    i += more + 1;
  }
  return true;
}

std::string_view to_string(HealthLevel level) {
  switch (level) {
    case HealthLevel::kPassing:
      return "passing";
    case HealthLevel::kWarning:
      return "warning";
    case HealthLevel::kCritical:
      break;
  }
  return "critical";
}

std::string service_prefix(std::string_view service) { return "/services/" + std::string(service) + "/"; }

std::string record_key(const Instance& instance) { return service_prefix(instance.service) + instance.id; }

std::string encode_record(const Instance& instance) {
  Json metadata = Json::object();
  for (const auto& [name, value] : instance.metadata) metadata.set(name, value);
  return Json::object()
      .set("v", kVersion)
      .set("id", instance.id)
      .set("service", instance.service)
      .set("address", instance.address)
      .set("port", std::int64_t{instance.port})
      .set("version", instance.version)
      .set("zone", instance.zone)
      .set("weight", std::int64_t{instance.weight})
      .set("metadata", std::move(metadata))
      .set("health",
           Json::object().set("level", to_string(instance.health.level)).set("reason", instance.health.reason))
      .set("draining", instance.draining)
      .set("start", instance.start)
      .set("started_ms", instance.started_ms)
      .dump();
}

Result<Instance> decode_record(std::string_view text) {
  auto record = Json::parse(text);
  if (!record) return fail(std::move(record.error()));
  if (!record->is_object()) return bad("not a JSON object");
  Instance instance;
  if (auto read = read_required(*record, instance); !read) return fail(std::move(read.error()));
  if (auto read = read_optional(*record, instance); !read) return fail(std::move(read.error()));
  return instance;
}

Result<Instance> decode_record(std::string_view key, std::string_view text) {
  auto instance = decode_record(text);
  if (instance && record_key(*instance) != key)
    return bad("the record is of " + record_key(*instance) + ", not of its key");
  return instance;
}

}  // namespace internal
}  // namespace v1
}  // namespace conclave
