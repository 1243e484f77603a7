#include "mvcc/value_cache.h"

#include <utility>

namespace mvcc {
namespace {

// What malloc takes for a block of this size: 8 bytes of its own, in steps of 16, at least 32.
uint64_t heap_bytes(uint64_t size) { return std::max<uint64_t>(32, (size + 8 + 15) / 16 * 16); }
uint64_t heap_bytes(const Bytes& bytes) {
  return bytes.capacity() < sizeof(Bytes) / 2 ? 0 : heap_bytes(bytes.capacity() + 1);
}

}  // namespace

uint64_t ValueCache::bytes_of(const KeyValue& kv) {
  constexpr uint64_t kControlBlock = 16;  // of make_shared
  return sizeof(Slot) + sizeof(uint32_t) + heap_bytes(sizeof(KeyValue) + kControlBlock) + heap_bytes(kv.key) +
         heap_bytes(kv.value);
}

ValueCache::ValueCache(uint64_t bytes_max) : shard_bytes_max_(bytes_max / kShards) {
  static_assert(kShards == 16, "shard_of takes the top 4 bits");
}

// Row ids differ in their middle bits (sub is mostly 0): a multiplication brings them to the top.
uint64_t ValueCache::spread(store::RowId id) { return static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15; }

uint32_t ValueCache::Shard::find(store::RowId id) const {
  if (buckets.empty()) return kNone;
  uint32_t slot = buckets[(spread(id) >> 28) & (buckets.size() - 1)];
  while (slot != kNone && slots[slot].id != id) slot = slots[slot].next;
  return slot;
}

KeyValuePtr ValueCache::Shard::remove(uint32_t slot) {
  uint32_t* link = &buckets[(spread(slots[slot].id) >> 28) & (buckets.size() - 1)];
  while (*link != slot) link = &slots[*link].next;
  *link = slots[slot].next;
  KeyValuePtr kv = std::move(slots[slot].kv);
  bytes -= slots[slot].bytes;
  --used;
  slots[slot] = Slot{};
  slots[slot].next = std::exchange(free, slot);
  return kv;
}

void ValueCache::Shard::grow() {
  buckets.assign(buckets.empty() ? 64 : buckets.size() * 2, kNone);
  for (uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot].id == 0) continue;
    slots[slot].next = std::exchange(buckets[(spread(slots[slot].id) >> 28) & (buckets.size() - 1)], slot);
  }
}

KeyValuePtr ValueCache::get(store::RowId id) {
  Shard& shard = shard_of(id);
  MutexLock lock(shard.mutex);
  const uint32_t slot = shard.find(id);
  if (slot == kNone) return nullptr;
  shard.slots[slot].asked = true;
  return shard.slots[slot].kv;
}

void ValueCache::put(store::RowId id, KeyValuePtr kv, bool hot) {
  const uint64_t bytes = bytes_of(*kv);
  if (bytes > shard_bytes_max_ / kEntryShare) return;
  std::vector<KeyValuePtr> evicted;  // freed after the lock is gone
  Shard& shard = shard_of(id);
  MutexLock lock(shard.mutex);
  if (shard.find(id) != kNone) return;
  while (shard.bytes + bytes > shard_bytes_max_) {
    const uint32_t at = shard.hand++ % static_cast<uint32_t>(shard.slots.size());
    Slot& slot = shard.slots[at];
    if (slot.id != 0 && !std::exchange(slot.asked, false)) evicted.push_back(shard.remove(at));
  }
  if (shard.used >= shard.buckets.size()) shard.grow();
  uint32_t at = shard.free;
  if (at != kNone) {
    shard.free = shard.slots[at].next;
  } else {
    at = static_cast<uint32_t>(shard.slots.size());
    shard.slots.emplace_back();
  }
  uint32_t& bucket = shard.buckets[(spread(id) >> 28) & (shard.buckets.size() - 1)];
  shard.slots[at] = {id, std::move(kv), static_cast<uint32_t>(bytes), std::exchange(bucket, at), hot};
  shard.bytes += bytes;
  ++shard.used;
}

void ValueCache::erase(store::RowId id) {
  KeyValuePtr removed;
  Shard& shard = shard_of(id);
  MutexLock lock(shard.mutex);
  if (const uint32_t slot = shard.find(id); slot != kNone) removed = shard.remove(slot);
}

uint64_t ValueCache::bytes() const {
  uint64_t sum = 0;
  for (const Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    sum += shard.bytes;
  }
  return sum;
}

size_t ValueCache::size() const {
  size_t sum = 0;
  for (const Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    sum += shard.used;
  }
  return sum;
}

}  // namespace mvcc
