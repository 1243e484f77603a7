// Any bytes as a request body: the parser must neither crash nor hang, what it accepts must survive a round trip, and
// the scanner must agree with it on where the first object ends.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/rpc.pb.h"
#include "http/json_parse.h"
#include "http/json_write.h"

namespace {

template <class Message>
void round_trip(std::string_view text) {
  Message first;
  if (!http::json::parse(text, first)) return;
  std::string once;
  http::json::append(once, first);
  Message second;
  if (!http::json::parse(once, second)) std::abort();
  std::string twice;
  http::json::append(twice, second);
  if (once != twice) std::abort();

  http::json::Scanner scanner;
  if (scanner.scan(text) != http::json::Scanner::Found::kObject) return;
  Message third;
  if (!http::json::parse(text.substr(scanner.begin(), scanner.size()), third)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  round_trip<etcdserverpb::TxnRequest>(text);
  round_trip<etcdserverpb::WatchRequest>(text);
  round_trip<etcdserverpb::RangeRequest>(text);
  round_trip<etcdserverpb::MemberListResponse>(text);
  return 0;
}
