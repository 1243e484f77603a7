#include "http/http2_headers.h"

#include "http/grpc_wire.h"

namespace http {

Trailers::Trailers(const Status& outcome)
    : status_(std::to_string(outcome ? 0 : static_cast<int>(outcome.error().code))),
      message_(outcome ? std::string() : grpc::encode_message(outcome.error().message)) {}

std::string unknown_method(const Router& router, std::string_view path) {
  const size_t slash = path.rfind('/');
  if (!path.starts_with('/') || slash == 0 || slash == std::string_view::npos) {
    return "malformed method name: \"" + std::string(path) + "\"";
  }
  const std::string service(path.substr(1, slash - 1));
  if (!router.has_service(service)) return "unknown service " + service;
  return "unknown method " + std::string(path.substr(slash + 1)) + " for service " + service;
}

}  // namespace http
