#include "wal/segment.h"

#include <bit>
#include <charconv>

#include "base/check.h"
#include "base/crc32c.h"
#include "wal/checksum.h"

namespace wal {

namespace {

constexpr uint64_t kSegmentMagic = 0x314C41574C434E43;  // "CNCLWAL1" as bytes
constexpr uint64_t kFrameMagic = 0x8F1BD3C5A6E2497D;    // combined with the log's salt
constexpr std::string_view kSuffix = ".wal";
constexpr size_t kHexDigits = 16;
constexpr size_t kSegmentCrcAt = kSegmentHeaderBytes - 4;
constexpr size_t kFrameCrcAt = kFrameHeaderBytes - 4;

std::string hex(uint64_t value) {
  std::string digits(kHexDigits, '0');
  for (size_t i = kHexDigits; value != 0; value >>= 4) digits[--i] = "0123456789abcdef"[value & 15];
  return digits;
}

std::optional<uint64_t> parse_hex(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

uint64_t padded(uint64_t length) { return (length + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment; }

void flip(std::span<std::byte> bytes, const BitPosition& at) { bytes[at.byte] ^= std::byte(1u << at.bit); }

// Whether the CRC in the last four bytes of `block` is that of what comes before it, at most one bit having been turned
// back. A block holds its own CRC, so a flip may be in either part.
struct BlockCheck {
  bool good = false;
  std::optional<BitPosition> flipped = std::nullopt;
};
BlockCheck check_block(std::span<std::byte> block) {
  const size_t covered = block.size() - 4;
  const uint32_t stored = load_integer<uint32_t>(block, covered);
  const uint32_t actual = crc32c(block.first(covered));
  if (stored == actual) return {.good = true};
  if (const uint32_t difference = stored ^ actual; std::has_single_bit(difference)) {
    const int bit = std::countr_zero(difference);
    return {.good = true, .flipped = BitPosition{covered + bit / 8, static_cast<uint8_t>(bit % 8)}};
  }
  const auto flipped = find_flipped_bit(covered, stored, actual);
  return {.good = flipped.has_value(), .flipped = flipped};
}

FrameHeader load_frame_header(BytesView bytes) {
  return {.sequence = load_integer<uint64_t>(bytes, 8),
          .length = load_integer<uint32_t>(bytes, 16),
          .body_crc = load_integer<uint32_t>(bytes, 20),
          .body_hash = load_integer<uint64_t>(bytes, 24)};
}

bool fits(const FrameHeader& header, uint64_t offset, uint64_t segment_bytes) {
  return header.length <= kBatchBytesMax && frame_bytes(header.length) <= segment_bytes - offset;
}

}  // namespace

std::string file_name(const SegmentName& name) {
  return hex(name.sequence) + "-" + hex(name.first_index) + std::string(kSuffix);
}

bool is_segment_file(std::string_view name) { return name.ends_with(kSuffix); }

std::optional<SegmentName> parse_file_name(std::string_view text) {
  if (text.size() != 2 * kHexDigits + 1 + kSuffix.size() || !is_segment_file(text) || text[kHexDigits] != '-') {
    return std::nullopt;
  }
  const auto sequence = parse_hex(text.substr(0, kHexDigits));
  const auto first_index = parse_hex(text.substr(kHexDigits + 1, kHexDigits));
  if (!sequence || !first_index) return std::nullopt;
  const SegmentName name{.sequence = *sequence, .first_index = *first_index};
  if (file_name(name) != text) return std::nullopt;  // capital letters: not ours
  return name;
}

void encode(const SegmentHeader& header, Bytes& out) {
  const size_t start = out.size();
  append_integer(out, kSegmentMagic);
  append_integer(out, header.format);
  append_integer(out, header.oldest_reader);
  append_integer(out, header.identity.cluster_id);
  append_integer(out, header.identity.member_id);
  append_integer(out, header.salt);
  append_integer(out, header.sequence);
  append_integer(out, header.first_batch);
  append_integer(out, header.first_index);
  append_integer(out, header.bytes);
  out.resize(start + kSegmentCrcAt, '\0');
  append_integer(out, crc32c(as_bytes(std::string_view(out).substr(start))));
}

std::optional<HeaderFound> read_segment_header(std::span<std::byte> bytes) {
  if (bytes.size() < kSegmentHeaderBytes) return std::nullopt;
  const auto block = bytes.first(kSegmentHeaderBytes);
  const BlockCheck check = check_block(block);
  if (!check.good) return std::nullopt;
  HeaderFound found;
  if (check.flipped) {
    flip(block, *check.flipped);
    found.repaired_byte = check.flipped->byte;
  }
  if (load_integer<uint64_t>(block, 0) != kSegmentMagic) {
    if (check.flipped) flip(block, *check.flipped);
    return std::nullopt;
  }
  found.header = {
      .format = load_integer<uint32_t>(block, 8),
      .oldest_reader = load_integer<uint32_t>(block, 12),
      .identity = {.cluster_id = load_integer<uint64_t>(block, 16), .member_id = load_integer<uint64_t>(block, 24)},
      .salt = load_integer<uint64_t>(block, 32),
      .sequence = load_integer<uint64_t>(block, 40),
      .first_batch = load_integer<uint64_t>(block, 48),
      .first_index = load_integer<uint64_t>(block, 56),
      .bytes = load_integer<uint64_t>(block, 64)};
  return found;
}

uint64_t frame_bytes(uint64_t body_length) { return kFrameHeaderBytes + padded(body_length); }

void finish_frame(uint64_t salt, uint64_t sequence, size_t start, Bytes& out) {
  CHECK(out.size() >= start + kFrameHeaderBytes);
  const uint64_t length = out.size() - start - kFrameHeaderBytes;
  CHECK(length <= kBatchBytesMax, length);
  out.resize(start + frame_bytes(length), '\0');
  const BytesView body = as_bytes(std::string_view(out).substr(start + kFrameHeaderBytes));

  Bytes header;
  append_integer(header, kFrameMagic ^ salt);
  append_integer(header, sequence);
  append_integer(header, static_cast<uint32_t>(length));
  append_integer(header, crc32c(body));
  append_integer(header, hash64(body));
  append_integer(header, uint32_t{0});
  append_integer(header, crc32c(as_bytes(header)));
  CHECK(header.size() == kFrameHeaderBytes);
  out.replace(start, kFrameHeaderBytes, header);
}

std::optional<FrameFound> read_frame(std::span<std::byte> segment, uint64_t offset, uint64_t salt, uint64_t sequence) {
  CHECK(offset % kFrameAlignment == 0, offset);
  if (offset > segment.size() || segment.size() - offset < kFrameHeaderBytes) return std::nullopt;
  const auto block = segment.subspan(offset, kFrameHeaderBytes);
  const BlockCheck check = check_block(block);
  if (!check.good) return std::nullopt;
  FrameFound found;
  if (check.flipped) {
    flip(block, *check.flipped);
    found.repaired_byte = offset + check.flipped->byte;
  }
  const auto give_up = [&]() -> std::optional<FrameFound> {
    if (check.flipped) flip(block, *check.flipped);
    return std::nullopt;
  };
  found.header = load_frame_header(block);
  // 128 known bits: a torn header that happens to be one bit from a right CRC does not get past this.
  if (load_integer<uint64_t>(block, 0) != (kFrameMagic ^ salt) || found.header.sequence != sequence) return give_up();
  if (!fits(found.header, offset, segment.size())) return give_up();
  found.end = offset + frame_bytes(found.header.length);

  const auto body = segment.subspan(offset + kFrameHeaderBytes, padded(found.header.length));
  const uint32_t crc = crc32c(body);
  if (crc == found.header.body_crc && hash64(body) == found.header.body_hash) return found;
  if (crc == found.header.body_crc || check.flipped) return give_up();  // more than one bit is wrong
  const auto flipped = find_flipped_bit(body.size(), found.header.body_crc, crc);
  if (!flipped) return give_up();
  flip(body, *flipped);
  if (hash64(body) != found.header.body_hash) {
    flip(body, *flipped);
    return give_up();
  }
  found.repaired_byte = offset + kFrameHeaderBytes + flipped->byte;
  return found;
}

std::optional<uint64_t> find_frame_header(BytesView segment, uint64_t offset, uint64_t salt, uint64_t sequence) {
  CHECK(offset % kFrameAlignment == 0, offset);
  for (; offset + kFrameHeaderBytes <= segment.size(); offset += kFrameAlignment) {
    if (load_integer<uint64_t>(segment, offset) != (kFrameMagic ^ salt)) continue;
    const BytesView block = segment.subspan(offset, kFrameHeaderBytes);
    if (load_integer<uint32_t>(block, kFrameCrcAt) != crc32c(block.first(kFrameCrcAt))) continue;
    if (load_frame_header(block).sequence >= sequence) return offset;
  }
  return std::nullopt;
}

}  // namespace wal
