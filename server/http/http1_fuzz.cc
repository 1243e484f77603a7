// Any bytes on a connection, in pieces cut by the first byte: it must come to an end once the client has closed its
// sending side, and everything it sent must begin as HTTP.
#include <cstdint>

#include "http/test_fuzz_server.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static http::test::FuzzServer& server = *new http::test::FuzzServer;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string output = server.run(input, data[0] == 0 ? input.size() + 1 : data[0]);
  if (!output.empty()) CHECK(output.starts_with("HTTP/1."), output.substr(0, 100));
  return 0;
}
