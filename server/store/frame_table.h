// CRC32C of the page in each frame of the -wal, by frame number. SQLite checks the frames' own checksums only when it
// recovers a log; every later read of a frame is held against this table.
//
// One thread writes at a time (the apply thread; open() before). Readers look up only frames that a commit made visible
// to them, and that went through a lock of the shared memory, so that relaxed loads suffice.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "base/check.h"

namespace store {

class FrameTable {
 public:
  ~FrameTable() {
    for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
  }

  void set(uint64_t frame, uint32_t crc) {
    CHECK(frame >= 1 && frame / kChunkFrames < kChunksMax, frame);
    auto& chunk = chunks_[frame / kChunkFrames];
    Entry* entries = chunk.load(std::memory_order_relaxed);
    if (entries == nullptr) {
      entries = new Entry[kChunkFrames]();
      chunk.store(entries, std::memory_order_release);
    }
    entries[frame % kChunkFrames].store(kKnown | crc, std::memory_order_relaxed);
  }
  // nullopt: nothing valid was ever in this frame.
  std::optional<uint32_t> get(uint64_t frame) const {
    if (frame / kChunkFrames >= kChunksMax) return std::nullopt;
    const Entry* entries = chunks_[frame / kChunkFrames].load(std::memory_order_acquire);
    if (entries == nullptr) return std::nullopt;
    const uint64_t entry = entries[frame % kChunkFrames].load(std::memory_order_relaxed);
    if ((entry & kKnown) == 0) return std::nullopt;
    return static_cast<uint32_t>(entry);
  }

 private:
  using Entry = std::atomic<uint64_t>;
  static constexpr uint64_t kKnown = 1ULL << 32;
  static constexpr uint64_t kChunkFrames = 16384;
  static constexpr uint64_t kChunksMax = 1024;  // 64 GiB of -wal, a thousand times its hard limit
  std::array<std::atomic<Entry*>, kChunksMax> chunks_ = {};
};

}  // namespace store
