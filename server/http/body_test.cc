#include "http/body.h"

#include <gtest/gtest.h>

#include "http/limits.h"

namespace http {
namespace {

struct Outcome {
  BodyReader::Result result;
  std::string body;
  std::string rest;
};

Outcome read(BodyReader reader, std::string_view input, size_t piece, size_t limit = 1'000'000) {
  Outcome outcome{BodyReader::Result::kMore, {}, {}};
  while (!input.empty() && outcome.result == BodyReader::Result::kMore) {
    std::string_view now = input.substr(0, piece);
    const size_t before = now.size();
    outcome.result = reader.read(now, &outcome.body, limit);
    input.remove_prefix(before - now.size());
    if (before == now.size()) break;
  }
  outcome.rest = std::string(input);
  return outcome;
}

TEST(BodyReader, ByLength) {
  for (size_t piece = 1; piece < 12; ++piece) {
    const Outcome outcome = read(BodyReader::of_length(5), "helloGET /", piece);
    EXPECT_EQ(outcome.result, BodyReader::Result::kDone);
    EXPECT_EQ(outcome.body, "hello");
    EXPECT_EQ(outcome.rest, "GET /");
  }
  EXPECT_TRUE(BodyReader::of_length(0).done());
  EXPECT_TRUE(BodyReader().done());
}

TEST(BodyReader, ChunksInPiecesOfAnySize) {
  constexpr std::string_view kInput = "3\r\nabc\r\n00A;x=\"y\" \r\n0123456789\r\n0 ;z\r\nA: b\r\nC: d\r\n\r\nGET /";
  for (size_t piece = 1; piece <= kInput.size(); ++piece) {
    const Outcome outcome = read(BodyReader::of_chunks(), kInput, piece);
    EXPECT_EQ(outcome.result, BodyReader::Result::kDone) << piece;
    EXPECT_EQ(outcome.body, "abc0123456789");
    EXPECT_EQ(outcome.rest, "GET /");
  }
}

TEST(BodyReader, BadChunks) {
  for (const char* input :
       {"\r\n", "z\r\n", "-1\r\n", " 1\r\na\r\n", "1\na\r\n", "1\r\nab\r\n", "1\r\na\n0\r\n\r\n", "1x\r\n", "0\r\n\n",
        "0\r\nA: b\n\r\n", "11111111111111111\r\n", "00000000000000001\r\na\r\n", "0x1\r\n", "1;\n"}) {
    EXPECT_EQ(read(BodyReader::of_chunks(), input, 100).result, BodyReader::Result::kBad) << input;
  }
  EXPECT_EQ(read(BodyReader::of_chunks(), "1;" + std::string(kHeadBytesMax + 1, 'x'), 1000).result,
            BodyReader::Result::kBad);
  EXPECT_EQ(read(BodyReader::of_chunks(), "0\r\n" + std::string(kHeadBytesMax + 1, 'x'), 1000).result,
            BodyReader::Result::kBad);
}

TEST(BodyReader, AChunkSizeHasUpToSixteenDigits) {
  const Outcome outcome = read(BodyReader::of_chunks(), "0000000000000001;x\r\na\r\n0000000000000000\r\n\r\n", 100);
  EXPECT_EQ(outcome.result, BodyReader::Result::kDone);
  EXPECT_EQ(outcome.body, "a");
}

TEST(BodyReader, StopsAtTheLimit) {
  Outcome outcome = read(BodyReader::of_length(10), "0123456789", 4, 6);
  EXPECT_EQ(outcome.result, BodyReader::Result::kMore);
  EXPECT_EQ(outcome.body, "012345");
  EXPECT_EQ(outcome.rest, "6789");
}

}  // namespace
}  // namespace http
