#include "mvcc/key_index.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

#include "mvcc/key_table.h"

namespace mvcc {
namespace {

struct Named {
  std::string name;
  std::string_view key() const { return name; }
};

// Hashes that collide: all in one part, few tags, so that runs are long, wrap around and are closed up again.
TEST(KeyTable, FindsWhatIsThereUnderCollisions) {
  std::mt19937_64 random(1);
  std::deque<Named> names;
  for (int i = 0; i < 300; ++i) names.push_back({"name" + std::to_string(i)});
  const auto hash_of = [&](size_t i) { return uint64_t{7} << 52 | ((i * 37) % 23 + (i % 2 == 0 ? 0xfff0 : 0)) << 36; };
  KeyTable<Named> table;
  std::map<size_t, bool> there;
  for (int step = 0; step < 20'000; ++step) {
    const size_t i = random() % names.size();
    // Grows, shrinks, grows.
    const bool insert = (step / 3000) % 2 == 0 ? random() % 4 != 0 : random() % 4 == 0;
    if (insert && !there[i]) {
      table.insert(&names[i], hash_of(i));
      there[i] = true;
    } else if (!insert && there[i]) {
      table.erase(&names[i], hash_of(i));
      there[i] = false;
    }
    if (step % 50 != 0) continue;
    for (size_t n = 0; n < names.size(); ++n) {
      ASSERT_EQ(table.find(names[n].name, hash_of(n)), there[n] ? &names[n] : nullptr) << step;
    }
  }
}

TEST(KeyTable, GrowsAPartToManySlots) {
  std::deque<Named> names;
  KeyTable<Named> table;
  for (size_t i = 0; i < 20'000; ++i) {
    names.push_back({std::to_string(i)});
    table.insert(&names.back(), KeyTable<Named>::hash(names.back().name) >> 12);  // the first part only
  }
  for (const Named& name : names) {
    ASSERT_EQ(table.find(name.name, KeyTable<Named>::hash(name.name) >> 12), &name);
  }
  EXPECT_EQ(table.find("absent", KeyTable<Named>::hash("absent") >> 12), nullptr);
}

TEST(Interval, ReadsTheFormsOfRangeEnd) {
  EXPECT_TRUE(Interval::of("a", "").single);
  EXPECT_TRUE(Interval::of("a", std::string_view("\0", 1)).unbounded);
  EXPECT_TRUE(Interval::of("a", "c").reaches("b"));
  EXPECT_FALSE(Interval::of("a", "c").reaches("c"));
  EXPECT_FALSE(Interval::of("a", std::string_view("\0\0", 2)).unbounded);
  EXPECT_FALSE(Interval::of("a", std::string_view("\0\0", 2)).reaches("a"));
}

TEST(Stamp, OrdersAsRowIdsAndKeepsTheMark) {
  const Stamp last(row_id({kMainMax, kSubMax}), true);
  EXPECT_EQ(last.id(), row_id({kMainMax, kSubMax}));
  EXPECT_EQ(last.revision(), kMainMax);
  EXPECT_TRUE(last.tombstone());
  EXPECT_FALSE(Stamp(row_id({2, 1}), false).tombstone());
}

// A million keys would take the lock a million times if a staged batch were undone key by key; slices bound both.
TEST(KeyIndex, UndoesALargeBatchAndIsEmptyAfter) {
  KeyIndex index;
  constexpr int kKeys = 5 * kSliceKeysMax + 3;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = std::to_string(i);
    index.stage_put(key, index.find(key), row_id({2, i}), {.create_revision = 2, .version = 1, .lease = 0, .hash = 1});
  }
  int told = 0;
  index.undo([&](store::RowId) { ++told; });
  EXPECT_EQ(told, kKeys);
  EXPECT_EQ(index.find("7"), nullptr);
  int left = 0;
  index.each(Interval::of("", std::string_view("\0", 1)), [&](KeyIndex::Entry&) { return ++left > 0; });
  EXPECT_EQ(left, 0);
}

}  // namespace
}  // namespace mvcc
