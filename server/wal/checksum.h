// Two independent checks over a batch's body: CRC-32C, whose remainder tells where a single flipped bit is, and a
// 64-bit hash that confirms the repair. With the CRC alone one in 2^32 / bits torn batches would look like a flip (1 in
// 25,000 for 20 kB); with both it is 1 in 10^14.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace wal {

// Specified in docs/format-wal.md.
uint64_t hash64(BytesView bytes);

struct BitPosition {
  uint64_t byte = 0;
  uint8_t bit = 0;
};

// The bit whose flip turns a message of `size` bytes with CRC-32C `expected` into one with `actual`, or nothing. Unique
// up to 2^28 bytes, since the polynomial's order is 2^31 - 1. Takes about a nanosecond a bit.
std::optional<BitPosition> find_flipped_bit(uint64_t size, uint32_t expected, uint32_t actual);

}  // namespace wal
