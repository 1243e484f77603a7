#include "json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace conclave::inline v1::internal {
namespace {

TEST(Json, ComesBackAsItWasWritten) {
  Json json;
  json.set("text", "a\"\\\n\x01\xc3\xa4").set("n", std::int64_t{-7}).set("half", 0.5).set("yes", true);
  json.set("list", Json::array().push("x").push(Json()).push(Json::object()));
  const auto read = Json::parse(json.dump());
  ASSERT_TRUE(read);
  EXPECT_EQ(Json::parse(read->dump())->dump(), read->dump());
  EXPECT_EQ(read->dump().size(), json.dump().size());
  EXPECT_EQ((*read)["text"].text(), "a\"\\\n\x01\xc3\xa4");
  EXPECT_EQ((*read)["list"].items().size(), 3u);
  EXPECT_EQ((*read)["half"].floating(), 0.5);
}

TEST(Json, ReadsNumbersAlsoFromText) {
  const auto json = Json::parse(R"({"a":"9223372036854775807","b":5,"c":"18446744073709551615","d":"x"})");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["a"].integer(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ((*json)["b"].integer(), 5);
  EXPECT_EQ((*json)["c"].unsigned_integer(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ((*json)["d"].integer(), 0);
  EXPECT_EQ((*json)["none"]["deeper"].integer(), 0);
}

TEST(Json, RefusesWhatIsNoJson) {
  EXPECT_FALSE(Json::parse("{\"a\":"));
  EXPECT_FALSE(Json::parse("nonsense"));
  EXPECT_FALSE(Json::parse(std::string(100000, '[')));
}

TEST(Base64, KeepsAllBytes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(*base64_decode(base64_encode(bytes)), bytes);
  EXPECT_EQ(base64_encode(""), "");
  EXPECT_EQ(*base64_decode(""), "");
  EXPECT_FALSE(base64_decode("=!"));
}

}  // namespace
}  // namespace conclave::inline v1::internal
