// gRPC's own layer between HTTP/2 and messages: five bytes before each message, timeouts and texts in headers
// (PROTOCOL-HTTP2.md of gRPC).
#pragma once

#include <google/protobuf/message.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace http::grpc {

inline constexpr size_t kPrefixBytes = 5;  // whether it is compressed, and its length, big-endian

struct Prefix {
  bool compressed = false;
  uint32_t length = 0;
};
// Of `bytes`, at least kPrefixBytes. An error: flags that gRPC does not have.
Result<Prefix> read_prefix(std::string_view bytes);
// Writes the prefix of an uncompressed message of `length` over the kPrefixBytes at `to`.
void write_prefix(char* to, size_t length);

// Appends the message with its prefix.
void append(std::string& out, const google::protobuf::Message& message);

// "10S", "1H", "5m" (minutes are M, milliseconds m). Nullopt: it is none.
std::optional<std::chrono::nanoseconds> parse_timeout(std::string_view text);

// What grpc-message may carry of a text: other bytes percent-encoded.
std::string encode_message(std::string_view text);

// A gzip member's content, at most `limit` bytes.
Result<std::string> gunzip(std::string_view compressed, size_t limit);

}  // namespace http::grpc
