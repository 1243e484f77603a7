// A hash table of entries that know their key, for look-ups of single keys: one or two cache misses where the tree has
// some ten. About 11 bytes an entry. It grows in 4096 parts, each on its own, so that no insertion stalls for a rehash
// of all. Not synchronised: belongs to KeyIndex and its lock. The order of the table decides nothing anywhere.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "mvcc/content_hash.h"

namespace mvcc {

// Entry has: std::string_view key() const.
template <class Entry>
class KeyTable {
 public:
  static uint64_t hash(std::string_view key) { return hash_bytes(key, 0); }

  Entry* find(std::string_view key, uint64_t hash) const {
    const Part& part = parts_[hash >> kPartShift];
    if (part.slots == nullptr) return nullptr;
    const uint64_t tag = tag_of(hash);
    for (uint64_t at = tag & part.mask; part.slots[at] != 0; at = (at + 1) & part.mask) {
      if (part.slots[at] >> kTagShift != tag) continue;
      if (Entry* entry = entry_of(part.slots[at]); entry->key() == key) return entry;
    }
    return nullptr;
  }

  // The key must not be there yet.
  void insert(Entry* entry, uint64_t hash) {
    Part& part = parts_[hash >> kPartShift];
    if (part.slots == nullptr || part.size >= (part.mask + 1) / 8 * 7) grow(&part);
    const auto pointer = reinterpret_cast<uint64_t>(entry);
    CHECK(pointer >> kTagShift == 0, pointer);  // user space of x86-64 and arm64 has 48 bits
    place(part, tag_of(hash) << kTagShift | pointer);
    ++part.size;
  }

  void erase(const Entry* entry, uint64_t hash) {
    Part& part = parts_[hash >> kPartShift];
    CHECK(part.slots != nullptr);
    const uint64_t slot = tag_of(hash) << kTagShift | reinterpret_cast<uint64_t>(entry);
    uint64_t at = tag_of(hash) & part.mask;
    for (; part.slots[at] != slot; at = (at + 1) & part.mask) CHECK(part.slots[at] != 0, entry->key());
    // Those that were pushed past this place move up, so that a probe still ends at the first free slot.
    for (uint64_t next = (at + 1) & part.mask; part.slots[next] != 0; next = (next + 1) & part.mask) {
      const uint64_t home = (part.slots[next] >> kTagShift) & part.mask;
      if (((next - home) & part.mask) < ((next - at) & part.mask)) continue;
      part.slots[at] = part.slots[next];
      at = next;
    }
    part.slots[at] = 0;
    --part.size;
  }

 private:
  static constexpr int kPartShift = 52;           // the top 12 bits choose the part
  static constexpr int kTagShift = 48;            // of a slot: 16 bits of the hash above the pointer
  static constexpr uint64_t kSlotsMax = 1 << 16;  // of a part: what the tag can address; 200 million keys in all

  struct Part {
    std::unique_ptr<uint64_t[]> slots;  // 0: free
    uint32_t mask = 0;
    uint32_t size = 0;
  };

  static uint64_t tag_of(uint64_t hash) { return (hash >> 36) & 0xffff; }
  static Entry* entry_of(uint64_t slot) {
    return reinterpret_cast<Entry*>(slot & ((uint64_t{1} << kTagShift) - 1));  // NOLINT: what insert() packed
  }
  static void place(Part& part, uint64_t slot) {
    uint64_t at = (slot >> kTagShift) & part.mask;
    while (part.slots[at] != 0) at = (at + 1) & part.mask;
    part.slots[at] = slot;
  }
  static void grow(Part* part) {
    const uint64_t slots = part->slots == nullptr ? 8 : (part->mask + uint64_t{1}) * 2;
    CHECK(slots <= kSlotsMax, part->size);
    Part larger{std::make_unique<uint64_t[]>(slots), static_cast<uint32_t>(slots - 1), part->size};
    if (part->slots != nullptr) {
      for (uint64_t at = 0; at <= part->mask; ++at) {
        if (part->slots[at] != 0) place(larger, part->slots[at]);
      }
    }
    *part = std::move(larger);
  }

  std::array<Part, size_t{1} << (64 - kPartShift)> parts_;
};

}  // namespace mvcc
