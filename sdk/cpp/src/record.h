// A service's record in the cluster: key `/services/<service>/<id>`, value a JSON object. Other programs and languages
// read and write the same records.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "conclave/discovery.h"
#include "conclave/result.h"

namespace conclave::inline v1::internal {

constexpr std::size_t kRecordBytesMax = 64 << 10;
constexpr std::size_t kReasonBytesMax = 512;
constexpr int kWeightMax = 65535;

bool valid_name(std::string_view name);  // of a service or an instance: [A-Za-z0-9][A-Za-z0-9._-]{0,127}
bool valid_utf8(std::string_view text);

std::string service_prefix(std::string_view service);  // with the slash: `pay` never sees `pay-eu`
std::string record_key(const Instance& instance);

std::string encode_record(const Instance& instance);
// Unknown members are ignored. kInvalidArgument: required ones are missing, or a value is of the wrong kind or range.
Result<Instance> decode_record(std::string_view text);
// The same, and service and id must be those of the key.
Result<Instance> decode_record(std::string_view key, std::string_view text);

std::string_view to_string(HealthLevel level);

}  // namespace conclave::inline v1::internal
