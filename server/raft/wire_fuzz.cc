// Whatever the bytes: decode() neither crashes nor takes more memory than they justify, and what it takes encodes to
// the same bytes again.
#include "base/check.h"
#include "raft/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const BytesView input(reinterpret_cast<const std::byte*>(data), size);
  const auto message = raft::decode(input);
  if (!message) return 0;
  Bytes again;
  raft::encode(*message, again);
  CHECK(again == as_text(input));
  CHECK(again.size() == raft::encoded_bytes(*message));
  return 0;
}
