#include "watch/range_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace watch {
namespace {

KeyRange key(const Bytes& k) { return {KeyRange::Kind::kKey, k, ""}; }
KeyRange range(const Bytes& k, const Bytes& end) { return {KeyRange::Kind::kRange, k, end}; }
KeyRange from(const Bytes& k) { return {KeyRange::Kind::kFromKey, k, ""}; }

std::vector<Group*> hits(const RangeIndex& index, std::string_view k) {
  std::vector<Group*> found;
  index.match(k, [&](Group& group) {
    found.push_back(&group);
    return true;
  });
  std::sort(found.begin(), found.end());
  return found;
}

TEST(RangeIndex, SameRangeIsOneGroup) {
  RangeIndex index;
  Group* a = index.enter(range("a", "c"));
  EXPECT_EQ(index.enter(range("a", "c")), a);
  EXPECT_NE(index.enter(range("a", "d")), a);
  EXPECT_NE(index.enter(key("a")), a);
  EXPECT_EQ(index.groups(), 3U);
  index.leave(a);
  EXPECT_EQ(index.groups(), 3U);
  index.leave(a);
  EXPECT_EQ(index.groups(), 2U);
}

TEST(RangeIndex, EndIsExcludedStartIsIncluded) {
  RangeIndex index;
  Group* a = index.enter(range("b", "d"));
  Group* open = index.enter(from("c"));
  EXPECT_TRUE(hits(index, "a").empty());
  EXPECT_EQ(hits(index, "b"), std::vector{a});
  EXPECT_EQ(hits(index, std::string_view("cz")).size(), 2U);
  EXPECT_EQ(hits(index, "d"), std::vector{open});
  EXPECT_EQ(hits(index, "\xff\xff"), std::vector{open});
}

TEST(RangeIndex, StopsWhenTheVisitorSaysSo) {
  RangeIndex index;
  for (const char* end : {"b", "c", "d"}) index.enter(range("a", end));
  index.enter(key("a"));
  int seen = 0;
  index.match("a", [&](Group&) { return ++seen < 2; });
  EXPECT_EQ(seen, 2);
}

// Against the obvious implementation, with every kind of nesting, and removals.
TEST(RangeIndex, FindsWhatALinearScanFinds) {
  for (uint32_t seed = 1; seed <= 20; seed++) {
    std::mt19937 random(seed);
    RangeIndex index;
    std::vector<Group*> entered;
    auto word = [&] {
      Bytes text;
      for (uint32_t length = 1 + random() % 4; text.size() < length;) text += static_cast<char>('a' + random() % 3);
      return text;
    };
    for (int i = 0; i < 600; i++) {
      if (!entered.empty() && random() % 3 == 0) {
        size_t gone = random() % entered.size();
        index.leave(entered[gone]);
        entered.erase(entered.begin() + static_cast<ptrdiff_t>(gone));
      } else {
        Bytes a = word();
        Bytes b = word();
        uint32_t kind = random() % 8;
        if (kind == 0) entered.push_back(index.enter(from(a)));
        if (kind == 1) entered.push_back(index.enter(key(a)));
        if (kind > 1 && a != b) entered.push_back(index.enter(range(std::min(a, b), std::max(a, b))));
      }
      Bytes probe = word();
      std::vector<Group*> expected;
      for (Group* group : entered) {
        const KeyRange& r = group->range;
        bool hit = r.kind == KeyRange::Kind::kKey
                       ? probe == r.key
                       : probe >= r.key && (r.kind == KeyRange::Kind::kFromKey || probe < r.end);
        if (hit && std::find(expected.begin(), expected.end(), group) == expected.end()) expected.push_back(group);
      }
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(hits(index, probe), expected) << "seed " << seed << " step " << i << " key " << probe;
    }
    size_t left = 0;
    index.each([&](Group& group) { left += group.watchers; });
    EXPECT_EQ(left, entered.size());
  }
}

}  // namespace
}  // namespace watch
