#include "http/base64.h"

#include <gtest/gtest.h>

namespace http {
namespace {

std::string encoded(std::string_view bytes) {
  std::string out;
  append_base64(out, bytes);
  return out;
}

std::string decoded(std::string_view text) {
  std::string out;
  return decode_base64(text, out) ? out : "<refused>";
}

TEST(Base64, EncodesStandardPadded) {
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foob"), "Zm9vYg==");
  EXPECT_EQ(encoded(">>>???~~~"), "Pj4+Pz8/fn5+");
  EXPECT_EQ(encoded(std::string_view("\0\xff\x10", 3)), "AP8Q");
}

TEST(Base64, EveryLengthAndByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 600; ++i) {
    std::string text;
    append_base64(text, bytes);
    EXPECT_EQ(text.size(), base64_size(bytes.size()));
    EXPECT_EQ(decoded(text), bytes);
    while (!text.empty() && text.back() == '=') text.pop_back();
    EXPECT_EQ(decoded(text), bytes) << "unpadded";
    bytes += static_cast<char>(i * 7);
  }
}

TEST(Base64, DecodesEitherAlphabetButNotBoth) {
  EXPECT_EQ(decoded("Pj4+Pz8/fn5+"), ">>>???~~~");
  EXPECT_EQ(decoded("Pj4-Pz8_fn5-"), ">>>???~~~");
  EXPECT_EQ(decoded("Pj4-Pz8/fn5-"), "<refused>");
  EXPECT_EQ(decoded("Pj4+Pz8_"), "<refused>");
}

TEST(Base64, PaddingIsNeededExactlyWhenTheLengthIsAMultipleOfFour) {
  EXPECT_EQ(decoded("Zm9"), "fo");  // spare bits are ignored
  EXPECT_EQ(decoded("Zm8"), "fo");
  EXPECT_EQ(decoded("YQ"), "a");
  EXPECT_EQ(decoded("YQ=="), "a");
  for (const char* text :
       {"YQ=", "a", "=", "==", "====", "Y===", "YQ==YQ==", "YQ==Y", "@@@", "YW Jj", "YQ===", "YWJj=", "A===AAAA"}) {
    EXPECT_EQ(decoded(text), "<refused>") << text;
  }
}

TEST(Base64, LineBreaksAreSkipped) {
  EXPECT_EQ(decoded("YWJj\r\nYWJj\r\n"), "abcabc");
  EXPECT_EQ(decoded("YW\r\nJj"), "abc");      // six characters: unpadded
  EXPECT_EQ(decoded("YQ\n=="), "<refused>");  // five characters: no padding is expected, and here is some
}

}  // namespace
}  // namespace http
