#include "http/grpc_wire.h"

#include <zlib.h>

#include <charconv>

#include "base/check.h"

namespace http::grpc {

Result<Prefix> read_prefix(std::string_view bytes) {
  const auto byte = [bytes](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])); };
  if (byte(0) > 1) {
    return fail(Code::kInternal, "grpc: received unexpected payload format " + std::to_string(byte(0)));
  }
  return Prefix{byte(0) == 1, byte(1) << 24 | byte(2) << 16 | byte(3) << 8 | byte(4)};
}

void write_prefix(char* to, size_t length) {
  to[0] = 0;
  for (int i = 1; i < 5; ++i) to[i] = static_cast<char>(length >> (32 - 8 * i) & 0xff);
}

void append(std::string& out, const google::protobuf::Message& message) {
  const size_t size = message.ByteSizeLong();
  const size_t at = out.size();
  out.resize(at + kPrefixBytes + size);
  write_prefix(out.data() + at, size);
  message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(out.data() + at + kPrefixBytes));
}

std::optional<std::chrono::nanoseconds> parse_timeout(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  int64_t amount = 0;
  const char* end = text.data() + text.size() - 1;
  if (const auto [stop, error] = std::from_chars(text.data(), end, amount); error != std::errc() || stop != end) {
    return std::nullopt;
  }
  int64_t unit = 0;
  switch (text.back()) {
    case 'H':
      unit = 3'600'000'000'000;
      break;
    case 'M':
      unit = 60'000'000'000;
      break;
    case 'S':
      unit = 1'000'000'000;
      break;
    case 'm':
      unit = 1'000'000;
      break;
    case 'u':
      unit = 1'000;
      break;
    case 'n':
      unit = 1;
      break;
    default:
      return std::nullopt;
  }
  constexpr int64_t kFar = int64_t{365} * 24 * 3'600'000'000'000;  // a year is as good as for ever
  return std::chrono::nanoseconds(amount > kFar / unit ? kFar : amount < -kFar / unit ? -kFar : amount * unit);
}

std::string encode_message(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && byte != '%') {
      out += c;
    } else {
      out.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return out;
}

Result<std::string> gunzip(std::string_view compressed, size_t limit) {
  constexpr int kGzipOnly = 16;
  z_stream stream{};
  if (inflateInit2(&stream, MAX_WBITS + kGzipOnly) != Z_OK) return fail(Code::kInternal, "grpc: out of memory");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string out;
  int done = Z_OK;
  while (done == Z_OK && out.size() <= limit) {
    char piece[16 * 1024];
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = sizeof piece;
    done = inflate(&stream, Z_NO_FLUSH);
    out.append(piece, sizeof piece - stream.avail_out);
  }
  inflateEnd(&stream);
  if (out.size() > limit) {
    return fail(Code::kResourceExhausted,
                "grpc: received message after decompression larger than max " + std::to_string(limit));
  }
  if (done != Z_STREAM_END) return fail(Code::kInternal, "grpc: failed to decompress the received message");
  return out;
}

}  // namespace http::grpc
