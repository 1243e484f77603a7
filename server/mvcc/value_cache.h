// Key-values by row id, bounded in bytes. A row never changes, so an entry is right or absent, whatever revision a
// reader is at; what the cache must be told is only when a row loses its use (replaced) or its meaning (rolled back).
//
// Threads: any. Sharded by a hash of the id; a shard's mutex is held for one look-up or one eviction walk.
// Eviction: CLOCK. A reader's fill begins cold, so a long range does not push out what is asked for again and again.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/thread.h"
#include "mvcc/event.h"
#include "store/store.h"

namespace mvcc {

class ValueCache {
 public:
  explicit ValueCache(uint64_t bytes_max);

  KeyValuePtr get(store::RowId id);  // null: not here
  void put(store::RowId id, KeyValuePtr kv, bool hot);
  void erase(store::RowId id);

  uint64_t bytes() const;  // as accounted: blocks of the heap, table and all
  size_t size() const;
  static uint64_t bytes_of(const KeyValue& kv);  // of one entry

 private:
  static constexpr size_t kShards = 16;
  static constexpr uint32_t kNone = UINT32_MAX;
  // One entry may take this part of its shard; larger values are read from the store each time.
  static constexpr uint64_t kEntryShare = 4;

  struct Slot {
    store::RowId id = 0;  // 0: free
    KeyValuePtr kv;
    uint32_t bytes = 0;
    uint32_t next = kNone;  // in its bucket, or in the free list
    bool asked = false;     // since the hand passed
  };
  struct alignas(64) Shard {
    mutable Mutex mutex;
    std::vector<Slot> slots GUARDED_BY(mutex);
    std::vector<uint32_t> buckets GUARDED_BY(mutex);  // a power of two; first slot of each
    uint32_t free GUARDED_BY(mutex) = kNone;
    uint32_t hand GUARDED_BY(mutex) = 0;
    size_t used GUARDED_BY(mutex) = 0;
    uint64_t bytes GUARDED_BY(mutex) = 0;

    uint32_t find(store::RowId id) const REQUIRES(mutex);
    KeyValuePtr remove(uint32_t slot) REQUIRES(mutex);  // returned, so that it is freed without the lock
    void grow() REQUIRES(mutex);
  };

  static uint64_t spread(store::RowId id);
  Shard& shard_of(store::RowId id) { return shards_[spread(id) >> 60]; }

  const uint64_t shard_bytes_max_;
  std::array<Shard, kShards> shards_;
};

}  // namespace mvcc
