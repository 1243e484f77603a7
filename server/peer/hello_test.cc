#include "peer/hello.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "peer/address.h"
#include "peer/limits.h"

namespace peer {
namespace {

BytesView preamble(const Bytes& bytes) { return as_bytes(bytes).first(kPreambleBytes); }
BytesView body(const Bytes& bytes) { return as_bytes(bytes).subspan(kPreambleBytes); }

// The checksum made to fit what was changed.
Bytes sealed(Bytes bytes) {
  const uint32_t crc = crc32c(body(bytes), crc32c(preamble(bytes).first(12)));
  std::memcpy(bytes.data() + 12, &crc, sizeof(crc));
  return bytes;
}

const Hello kHello{.lane = Network::Lane::kSnapshot, .cluster = 1, .sender = 2, .addressee = 3};

TEST(Hello, ComesBackAsItWas) {
  const Bytes bytes = encode(kHello);
  const auto head = parse_preamble(preamble(bytes), Side::kHello);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->format, kFormat);
  EXPECT_EQ(head->body_bytes, body(bytes).size());
  EXPECT_EQ(parse_hello(preamble(bytes), body(bytes)), kHello);
  EXPECT_EQ(static_cast<uint8_t>(bytes[0]), kMagicFirst);
}

TEST(Hello, SaysWhereTheSenderIs) {
  Hello hello = kHello;
  hello.urls = {"http://a:2380", "http://b:2380"};
  hello.folder_id = 0x1234567890;
  const Bytes bytes = encode(hello);
  EXPECT_EQ(parse_hello(preamble(bytes), body(bytes)), hello);
  hello.urls.emplace_back(kHelloBodyBytesMax, 'x');
  EXPECT_EQ(encode(hello), bytes) << "what does not fit is left out";
  Bytes cut = sealed(bytes.substr(0, bytes.size() - 9));
  EXPECT_EQ(parse_hello(preamble(cut), body(cut)).error().code, Code::kDataLoss);
  Bytes first_builds = sealed(bytes.substr(0, kPreambleBytes + 32));
  EXPECT_EQ(parse_hello(preamble(first_builds), body(first_builds)), kHello);
}

TEST(Hello, AnswerComesBackAsItWas) {
  const Answer answer{.verdict = Verdict::kRemoved, .cluster = 5, .member = 6, .text = "why"};
  const Bytes bytes = encode(answer);
  EXPECT_TRUE(parse_preamble(preamble(bytes), Side::kAnswer));
  EXPECT_FALSE(parse_preamble(preamble(bytes), Side::kHello));
  EXPECT_EQ(parse_answer(preamble(bytes), body(bytes)), answer);
}

TEST(Hello, RefusesEveryChangedByte) {
  const Bytes good = encode(kHello);
  for (size_t at = 0; at < good.size(); ++at) {
    Bytes bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    const auto head = parse_preamble(preamble(bytes), Side::kHello);
    EXPECT_TRUE(!head || !parse_hello(preamble(bytes), body(bytes))) << at;
  }
}

TEST(Hello, LaterVersionIsReadWhenItSaysThatWeCan) {
  Bytes bytes = encode(kHello) + "what later versions add";
  bytes[4] = 9;  // format
  const auto length = static_cast<uint32_t>(body(bytes).size());
  std::memcpy(bytes.data() + 8, &length, sizeof(length));
  bytes = sealed(bytes);
  EXPECT_EQ(parse_hello(preamble(bytes), body(bytes)), kHello);
  bytes[6] = static_cast<char>(kFormat + 1);  // oldest reader
  bytes = sealed(bytes);
  const auto refused = parse_hello(preamble(bytes), body(bytes));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnimplemented);
}

TEST(Hello, KindAndLaneOfALaterVersionAreToldApartFromDamage) {
  for (const size_t at : {kPreambleBytes, kPreambleBytes + 1}) {
    Bytes bytes = encode(kHello);
    bytes[at] = 100;
    bytes = sealed(bytes);
    const auto refused = parse_hello(preamble(bytes), body(bytes));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kUnknown);
  }
}

TEST(Hello, LengthIsLimitedBeforeAnythingIsRead) {
  Bytes bytes = encode(kHello);
  const uint32_t length = kHelloBodyBytesMax + 1;
  std::memcpy(bytes.data() + 8, &length, sizeof(length));
  EXPECT_FALSE(parse_preamble(preamble(bytes), Side::kHello));
}

TEST(PeerUrl, NamesHostAndPort) {
  EXPECT_EQ(parse_url("http://a.example:2380"), (Address{"a.example", "2380"}));
  EXPECT_EQ(parse_url("http://[::1]:1/"), (Address{"::1", "1"}));
  for (const char* bad : {"", "http://", "http://a", "http://a:", "http://a:65536", "http://a:1/x", "http://::1:2",
                          "http://a b:1", "ftp://a:1", "a:1", "http://a:-1"}) {
    const auto refused = parse_url(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument) << bad;
  }
  EXPECT_EQ(parse_url("https://a:1").error().code, Code::kUnimplemented);
  EXPECT_EQ(parse_url("unix:///a").error().code, Code::kUnimplemented);
}

}  // namespace
}  // namespace peer
