#include "mvcc/value_cache.h"

#include <gtest/gtest.h>

#include "mvcc/revision.h"

namespace mvcc {
namespace {

KeyValuePtr make(const std::string& key, size_t value_bytes) {
  auto kv = std::make_shared<KeyValue>();
  kv->key = key;
  kv->value = Bytes(value_bytes, 'v');
  return kv;
}
store::RowId id_of(int64_t revision) { return row_id({revision, 0}); }

TEST(ValueCache, GivesBackTheVeryObject) {
  ValueCache cache(1 << 20);
  const KeyValuePtr kv = make("k", 10);
  cache.put(id_of(7), kv, false);
  EXPECT_EQ(cache.get(id_of(7)), kv);
  EXPECT_EQ(cache.get(id_of(8)), nullptr);
  cache.erase(id_of(7));
  cache.erase(id_of(7));
  EXPECT_EQ(cache.get(id_of(7)), nullptr);
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(kv.use_count(), 1);
}

TEST(ValueCache, StaysWithinItsBytes) {
  constexpr uint64_t kBytes = 1 << 20;
  ValueCache cache(kBytes);
  for (int64_t i = 1; i <= 20'000; ++i) {
    cache.put(id_of(i), make("key" + std::to_string(i), static_cast<size_t>(i % 700)), i % 3 == 0);
    ASSERT_LE(cache.bytes(), kBytes);
  }
  EXPECT_GT(cache.bytes(), kBytes * 9 / 10);
  EXPECT_GT(cache.size(), 1000u);
  // What is accounted is what the entries say, or the bound would drift.
  uint64_t sum = 0;
  for (int64_t i = 1; i <= 20'000; ++i) {
    if (const KeyValuePtr kv = cache.get(id_of(i))) sum += ValueCache::bytes_of(*kv);
  }
  EXPECT_EQ(sum, cache.bytes());
}

TEST(ValueCache, KeepsWhatIsAskedForThroughALongScan) {
  ValueCache cache(1 << 20);
  constexpr int64_t kHot = 500;
  for (int64_t i = 1; i <= kHot; ++i) cache.put(id_of(i), make("hot", 100), true);
  for (int64_t i = 0; i < 100'000; ++i) {
    cache.put(id_of(1'000'000 + i), make("scan", 100), false);
    cache.get(id_of(1 + i % kHot));
  }
  int64_t left = 0;
  for (int64_t i = 1; i <= kHot; ++i) left += cache.get(id_of(i)) != nullptr;
  EXPECT_GT(left, kHot * 95 / 100);
}

TEST(ValueCache, LeavesOutWhatWouldFillAShard) {
  ValueCache cache(1 << 20);
  cache.put(id_of(1), make("small", 10), false);
  cache.put(id_of(2), make("large", 1 << 15), false);
  EXPECT_NE(cache.get(id_of(1)), nullptr);
  EXPECT_EQ(cache.get(id_of(2)), nullptr);
  ValueCache none(0);
  none.put(id_of(1), make("small", 10), true);
  EXPECT_EQ(none.get(id_of(1)), nullptr);
}

}  // namespace
}  // namespace mvcc
