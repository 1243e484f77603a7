// Any frames on an HTTP/2 connection, in pieces cut by the first byte: it must come to an end once the client has
// closed its sending side, and what it sent must be frames. A byte that stands for a whole head of a gRPC call, or its
// message, lets the fuzzer get far.
#include <nghttp2/nghttp2.h>

#include <cstdint>

#include "http/test_fuzz_server.h"
#include "http/test_grpc_client.h"

namespace {

std::string head_of(std::string_view path) {
  std::string out;
  const auto field = [&out](std::string_view name, std::string_view value) {
    out += '\0';
    out += static_cast<char>(name.size());
    out += name;
    out += static_cast<char>(value.size());
    out += value;
  };
  field(":method", "POST");
  field(":scheme", "http");
  field(":path", path);
  field("content-type", "application/grpc");
  return out;
}

// Pairs of bytes: what, and on which stream or how much.
std::string expand(std::string_view script) {
  using http::test::frame;
  std::string out;
  while (script.size() >= 2) {
    const auto what = static_cast<unsigned char>(script[0]);
    const auto more = static_cast<unsigned char>(script[1]);
    script.remove_prefix(2);
    const int32_t stream = 2 * (more % 8) + 1;
    const uint8_t flags = NGHTTP2_FLAG_END_HEADERS | (more >> 7);
    switch (what % 8) {
      case 0:
        out += frame(NGHTTP2_HEADERS, flags, stream, head_of("/etcdserverpb.KV/Put"));
        break;
      case 1:
        out += frame(NGHTTP2_HEADERS, flags, stream, head_of("/etcdserverpb.Lease/LeaseKeepAlive"));
        break;
      case 2:
        out += frame(NGHTTP2_DATA, more >> 7, stream, http::test::framed("\x08\x01"));
        break;
      case 3:
        out += frame(NGHTTP2_RST_STREAM, 0, stream, std::string("\0\0\0\x08", 4));
        break;
      case 4:
        out += frame(NGHTTP2_WINDOW_UPDATE, 0, more >> 7 ? 0 : stream, std::string("\0\1\0\0", 4));
        break;
      default: {  // as they are: of a frame, or of a message
        const size_t size = std::min<size_t>(more, script.size());
        const std::string_view bytes = script.substr(0, size);
        out += what % 2 == 0 ? frame(NGHTTP2_DATA, 0, 1, bytes) : std::string(bytes);
        script.remove_prefix(size);
      }
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static http::test::FuzzServer& server = *new http::test::FuzzServer;
  if (size == 0) return 0;
  const std::string input = std::string(http::test::kPreface) + http::test::frame(NGHTTP2_SETTINGS, 0, 0, "") +
                            expand({reinterpret_cast<const char*>(data) + 1, size - 1});
  const std::string output = server.run(input, data[0] == 0 ? input.size() + 1 : data[0]);
  if (!output.empty()) CHECK(output.size() >= 9 && output[3] == NGHTTP2_SETTINGS, output.substr(0, 100));
  return 0;
}
