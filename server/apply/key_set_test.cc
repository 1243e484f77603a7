#include "apply/key_set.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace apply {
namespace {

const std::string kOpenEnd(1, '\0');

TEST(KeyRanges, PointsRangesAndOpenEnds) {
  KeyRanges ranges;
  EXPECT_FALSE(ranges.contains("a"));
  ranges.add("b", "");
  EXPECT_TRUE(ranges.contains("b"));
  EXPECT_FALSE(ranges.contains("ba"));
  ranges.add("d", "f");
  EXPECT_FALSE(ranges.contains("c"));
  EXPECT_TRUE(ranges.contains("d"));
  EXPECT_TRUE(ranges.contains("ezzz"));
  EXPECT_FALSE(ranges.contains("f"));
  ranges.add("x", kOpenEnd);
  EXPECT_TRUE(ranges.contains("\xff\xff"));
  EXPECT_FALSE(ranges.contains("w"));
  ranges.add("h", "g");
  EXPECT_FALSE(ranges.contains("h")) << "an end before the begin covers nothing";
  ranges.add(kOpenEnd, kOpenEnd);
  EXPECT_TRUE(ranges.contains("h")) << "all keys";
}

TEST(KeyRanges, AgreesWithAModel) {
  std::mt19937 random(7);
  auto text = [&random] {
    std::string key;
    for (auto length = 1 + random() % 3; length > 0; --length) key += static_cast<char>('a' + random() % 3);
    return key;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::pair<std::string, std::string>> added(1 + random() % 8);
    KeyRanges whole;
    KeyRanges halves[2];
    for (size_t i = 0; i < added.size(); ++i) {
      auto& [key, end] = added[i];
      key = text();
      end = random() % 4 == 0 ? "" : random() % 8 == 0 ? kOpenEnd : text();
      whole.add(key, end);
    }
    for (size_t i = 0; i < added.size(); ++i) halves[i % 2].add(added[i].first, added[i].second);
    halves[0].add(halves[1]);
    for (int probe = 0; probe < 40; ++probe) {
      const std::string key = text();
      bool expected = false;
      for (const auto& [from, end] : added) {
        expected |= end.empty() ? key == from : key >= from && (end == kOpenEnd || key < end);
      }
      ASSERT_EQ(whole.contains(key), expected) << key;
      ASSERT_EQ(halves[0].contains(key), expected) << key;
    }
  }
}

}  // namespace
}  // namespace apply
