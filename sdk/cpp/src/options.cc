#include <cstdlib>
#include <string_view>
#include <utility>

#include "conclave/client.h"

namespace conclave {
inline namespace v1 {

namespace {

constexpr const char* kUsualEndpoint = "http://127.0.0.1:2379";
constexpr const char* kUnsupported[] = {"CONCLAVE_USER", "CONCLAVE_PASSWORD_FILE", "CONCLAVE_CA_FILE",
                                        "CONCLAVE_CERT_FILE", "CONCLAVE_KEY_FILE"};

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

Result<ClientOptions> ClientOptions::from_environment() {
  for (const char* name : kUnsupported) {
    if (!variable(name).empty())
      return fail(Code::kInvalidArgument, std::string(name) + ": not supported by this version");
  }
  ClientOptions options;
  std::string_view rest = variable("CONCLAVE_ENDPOINTS");
  if (rest.empty()) rest = kUsualEndpoint;
  while (true) {
    const std::size_t comma = rest.find(',');
    options.endpoints.emplace_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  options.key_prefix = variable("CONCLAVE_KEY_PREFIX");
  return options;
}

}  // namespace v1
}  // namespace conclave
