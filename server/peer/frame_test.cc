#include "peer/frame.h"

#include <gtest/gtest.h>

namespace peer {
namespace {

constexpr auto kLane = Network::Lane::kForward;

struct Seen final : FrameParser::Sink {
  std::vector<Bytes> data;
  std::vector<uint64_t> pings;
  std::vector<uint64_t> pongs;
  void on_data(Bytes frame) override { data.push_back(std::move(frame)); }
  void on_ping(uint64_t token) override { pings.push_back(token); }
  void on_pong(uint64_t token) override { pongs.push_back(token); }
};

Bytes frame(std::string_view body, FrameType type = FrameType::kData, Network::Lane lane = kLane) {
  Bytes out;
  append_header(out, type, lane, as_bytes(body));
  return out.append(body);
}

TEST(FrameParser, PutsFramesTogetherFromAnyPieces) {
  const Bytes large(100'000, 'x');
  const Bytes wire = frame("") + frame("a") + frame(large) + frame("12345678", FrameType::kPing) +
                     frame("12345678", FrameType::kPong) + frame("z");
  for (const size_t piece : {size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{4096}, wire.size()}) {
    FrameParser parser(kLane, large.size());
    Seen seen;
    for (size_t at = 0; at < wire.size(); at += piece) {
      ASSERT_TRUE(parser.feed(as_bytes(std::string_view(wire).substr(at, piece)), seen));
      EXPECT_TRUE(piece > 1 || at != 16 || parser.inside());
    }
    EXPECT_EQ(seen.data, (std::vector<Bytes>{"", "a", large, "z"})) << piece;
    EXPECT_EQ(seen.pings, std::vector<uint64_t>{load_integer<uint64_t>(as_bytes("12345678"))});
    EXPECT_EQ(seen.pings, seen.pongs);
    EXPECT_FALSE(parser.inside());
  }
}

TEST(FrameParser, RefusesEveryChangedByte) {
  const Bytes wire = frame("some body");
  for (size_t at = 0; at < wire.size(); ++at) {
    Bytes changed = wire;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    FrameParser parser(kLane, 100);
    Seen seen;
    EXPECT_FALSE(parser.feed(as_bytes(changed), seen)) << at;
    EXPECT_TRUE(seen.data.empty()) << at;
  }
}

TEST(FrameParser, RefusesWhatDoesNotBelongHere) {
  Seen seen;
  EXPECT_TRUE(FrameParser(kLane, 4).feed(as_bytes(frame("1234")), seen));
  EXPECT_FALSE(FrameParser(kLane, 4).feed(as_bytes(frame("12345")), seen));
  EXPECT_FALSE(FrameParser(kLane, 0).feed(as_bytes(frame("")), seen)) << "no data at all";
  EXPECT_FALSE(FrameParser(kLane, 4).feed(as_bytes(frame("123", FrameType::kPing)), seen));
  EXPECT_FALSE(FrameParser(kLane, 4).feed(as_bytes(frame("a", FrameType::kData, Network::Lane::kAppend)), seen));
  EXPECT_FALSE(FrameParser(kLane, 4).feed(as_bytes(frame("a", static_cast<FrameType>(3))), seen));
  EXPECT_EQ(seen.data, std::vector<Bytes>{"1234"});
}

}  // namespace
}  // namespace peer
