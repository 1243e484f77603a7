#include "wal/checksum.h"

#include <algorithm>
#include <array>

namespace wal {

namespace {

constexpr uint32_t kReversedPolynomial = 0x82F63B78;  // Castagnoli's

uint64_t mix(uint64_t value) {
  value ^= value >> 32;
  value *= 0xD6E8FEB86659FD93;
  value ^= value >> 32;
  return value;
}

uint64_t load_padded(BytesView bytes, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, std::min<size_t>(8, bytes.size() - offset));
  return word;
}

}  // namespace

uint64_t hash64(BytesView bytes) {
  // Four lanes, so that the multiplications overlap.
  std::array<uint64_t, 4> lanes = {0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5};
  size_t offset = 0;
  for (; offset + 32 <= bytes.size(); offset += 32) {
    for (size_t lane = 0; lane < 4; ++lane) {
      lanes[lane] = (lanes[lane] ^ load_integer<uint64_t>(bytes, offset + 8 * lane)) * 0xD6E8FEB86659FD93;
      lanes[lane] ^= lanes[lane] >> 32;
    }
  }
  uint64_t hash = bytes.size();
  for (uint64_t lane : lanes) hash = mix(hash + lane);
  for (; offset < bytes.size(); offset += 8) hash = mix(hash + load_padded(bytes, offset)) + 0x9E3779B97F4A7C15;
  return mix(hash);
}

std::optional<BitPosition> find_flipped_bit(uint64_t size, uint32_t expected, uint32_t actual) {
  // A CRC is linear: the difference of two depends only on where the messages differ. A flip of the last bit that goes
  // through the register leaves the polynomial itself, each bit before it one step more.
  const uint32_t wanted = expected ^ actual;
  uint32_t difference = kReversedPolynomial;
  for (uint64_t bit = size * 8; bit-- > 0;) {
    if (difference == wanted) return BitPosition{bit / 8, static_cast<uint8_t>(bit % 8)};
    difference = (difference >> 1) ^ (kReversedPolynomial & (0 - (difference & 1)));
  }
  return std::nullopt;
}

}  // namespace wal
