// Header fields as nghttp2 takes them, and what gRPC says in them.
#pragma once

#include <nghttp2/nghttp2.h>

#include <string>
#include <string_view>

#include "base/result.h"
#include "http/handler.h"

namespace http {

// Copied by nghttp2 when it is submitted.
inline nghttp2_nv header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) { return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data())); };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

// grpc-status and, unless it is empty, grpc-message.
class Trailers {
 public:
  explicit Trailers(const Status& outcome);
  nghttp2_nv status() const { return header("grpc-status", status_); }
  nghttp2_nv message() const { return header("grpc-message", message_); }
  bool has_message() const { return !message_.empty(); }

 private:
  std::string status_;
  std::string message_;
};

// What grpc-go says of a path that names no method.
std::string unknown_method(const Router& router, std::string_view path);

}  // namespace http
