// A segment file's name and header, and the frame around each batch in it. Bytes only; the files are wal.cc's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "wal/wal.h"

namespace wal {

constexpr uint32_t kFormat = 1;        // what this version writes
constexpr uint32_t kOldestReader = 1;  // the oldest format number whose readers can cope with that
constexpr uint64_t kSegmentHeaderBytes = 128;
constexpr uint64_t kFrameHeaderBytes = 40;
constexpr uint64_t kFrameAlignment = 8;
constexpr uint64_t kSegmentBytesMax = 1 << 30;

// `<16 hex digits sequence>-<16 hex digits first index>.wal`
struct SegmentName {
  uint64_t sequence = 0;
  uint64_t first_index = 0;
};
std::string file_name(const SegmentName& name);
std::optional<SegmentName> parse_file_name(std::string_view text);
bool is_segment_file(std::string_view name);  // ends like one, whether or not the rest can be read

struct SegmentHeader {
  uint32_t format = kFormat;
  uint32_t oldest_reader = kOldestReader;
  Identity identity;
  uint64_t salt = 0;         // of the whole log; batches are recognised by it
  uint64_t sequence = 0;     // of this segment
  uint64_t first_batch = 0;  // sequence number of its first batch: all smaller ones are durable in earlier segments
  uint64_t first_index = 0;  // that an appended entry would have had when the segment was begun
  uint64_t bytes = 0;        // size of the file
};
void encode(const SegmentHeader& header, Bytes& out);

// What was found in the first bytes of a file. All formats keep the magic, the two format numbers and the CRC where
// they are.
struct HeaderFound {
  SegmentHeader header;
  std::optional<uint64_t> repaired_byte = std::nullopt;  // one flipped bit was put right, in the caller's bytes too
};
std::optional<HeaderFound> read_segment_header(std::span<std::byte> bytes);

struct FrameHeader {
  uint64_t sequence = 0;
  uint32_t length = 0;  // of the body without padding
  uint32_t body_crc = 0;
  uint64_t body_hash = 0;
};
uint64_t frame_bytes(uint64_t body_length);  // header, body and padding
// `out` holds at `start` room for the header, then the body. Pads and fills in the header.
void finish_frame(uint64_t salt, uint64_t sequence, size_t start, Bytes& out);

struct FrameFound {
  FrameHeader header;
  uint64_t end = 0;  // offset of the next frame
  std::optional<uint64_t> repaired_byte = std::nullopt;
};
// The batch `sequence` at `offset`, if it is there and whole, or can be made whole by turning one bit (which is then
// done in `segment`).
std::optional<FrameFound> read_frame(std::span<std::byte> segment, uint64_t offset, uint64_t salt, uint64_t sequence);
inline BytesView body_of(std::span<const std::byte> segment, uint64_t offset, const FrameHeader& header) {
  return segment.subspan(offset + kFrameHeaderBytes, header.length);
}

// The first offset at or after `offset` where the header of a batch of this log with a number of at least `sequence` is
// whole. Its existence proves that all batches before it were synced.
std::optional<uint64_t> find_frame_header(BytesView segment, uint64_t offset, uint64_t salt, uint64_t sequence);

}  // namespace wal
