// Three ways into the parsers: bytes as they are, in pieces of any size; frames made of the input, which must come out
// as they went in; and the same with one byte changed, which must not come out as something else.
#include <algorithm>

#include "base/check.h"
#include "base/crc32c.h"
#include "peer/frame.h"
#include "peer/hello.h"

namespace {

using peer::FrameParser;
using peer::FrameType;

struct Collector final : FrameParser::Sink {
  std::vector<Bytes> seen;
  void on_data(Bytes frame) override { seen.push_back("d" + frame); }
  void on_ping(uint64_t token) override { seen.push_back("i" + std::to_string(token)); }
  void on_pong(uint64_t token) override { seen.push_back("o" + std::to_string(token)); }
};

constexpr auto kLane = Network::Lane::kAppend;
constexpr size_t kDataBytesMax = 4096;

// Whether all was well, and what came out before it was not.
bool parse(BytesView input, size_t piece, std::vector<Bytes>& seen) {
  Collector collector;
  FrameParser parser(kLane, kDataBytesMax);
  bool good = true;
  while (good && !input.empty()) {
    const size_t take = std::min(input.size(), piece);
    good = parser.feed(input.first(take), collector).has_value();
    input = input.subspan(take);
  }
  seen = std::move(collector.seen);
  return good;
}

void frames(BytesView input, size_t piece) {
  std::vector<Bytes> whole;
  std::vector<Bytes> pieces;
  CHECK(parse(input, input.size() + 1, whole) == parse(input, piece, pieces));
  CHECK(whole == pieces);
}

void round_trip(BytesView input, size_t piece, uint8_t change) {
  Bytes wire;
  std::vector<Bytes> sent;
  while (!input.empty()) {
    const size_t size = std::min<size_t>(static_cast<size_t>(input[0]) * 16, input.size() - 1);
    const BytesView body = input.subspan(1, size);
    input = input.subspan(1 + size);
    const bool ping = size == 8;
    peer::append_header(wire, ping ? FrameType::kPing : FrameType::kData, kLane, body);
    wire += as_text(body);
    sent.push_back(ping ? "i" + std::to_string(load_integer<uint64_t>(body)) : "d" + Bytes(as_text(body)));
  }
  std::vector<Bytes> seen;
  CHECK(parse(as_bytes(wire), piece, seen));
  CHECK(seen == sent);
  if (wire.empty() || change == 0) return;
  const size_t at = (static_cast<size_t>(change) * 131) % wire.size();
  wire[at] = static_cast<char>(wire[at] ^ change);
  parse(as_bytes(wire), piece, seen);
  CHECK(seen.size() < sent.size());
  CHECK(std::equal(seen.begin(), seen.end(), sent.begin()));
}

template <class Parse>
void words(Bytes bytes, peer::Side side, Parse parse) {
  const auto preamble_of = [](const Bytes& all) { return as_bytes(all).first(peer::kPreambleBytes); };
  const auto preamble = peer::parse_preamble(preamble_of(bytes), side);
  if (!preamble) return;
  bytes.resize(std::min(bytes.size(), peer::kPreambleBytes + preamble->body_bytes));
  const auto parsed = parse(preamble_of(bytes), as_bytes(bytes).subspan(peer::kPreambleBytes));
  if (!parsed) return;
  const Bytes again = encode(*parsed);
  const auto same = parse(preamble_of(again), as_bytes(again).subspan(peer::kPreambleBytes));
  CHECK(same.has_value());
  CHECK(*same == *parsed);
}

// The input as it is, and with what keeps chance out: the magic, the length and the checksum.
template <class Parse>
void words(BytesView input, const Bytes& good, peer::Side side, Parse parse) {
  if (input.size() < peer::kPreambleBytes) return;
  Bytes bytes(as_text(input));
  words(bytes, side, parse);
  bytes.replace(0, 4, good, 0, 4);
  const BytesView body = input.subspan(peer::kPreambleBytes);
  const auto length = static_cast<uint32_t>(body.size());
  std::memcpy(bytes.data() + 8, &length, sizeof(length));
  const uint32_t crc = crc32c(body, crc32c(as_bytes(bytes).first(12)));
  std::memcpy(bytes.data() + 12, &crc, sizeof(crc));
  words(bytes, side, parse);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t piece = size_t{1} + data[0];
  const BytesView input(reinterpret_cast<const std::byte*>(data + 2), size - 2);
  frames(input, piece);
  round_trip(input, piece, data[1]);
  words(input, encode(peer::Hello{}), peer::Side::kHello, peer::parse_hello);
  words(input, encode(peer::Answer{}), peer::Side::kAnswer, peer::parse_answer);
  return 0;
}
