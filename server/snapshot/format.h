// What is in the file of a snapshot: docs/format-snapshot.md in code. A header, a row of chunks (manifest, leases,
// rows) with a CRC32C each, and a trailer with the length and the CRC32C of all of it. Encoding on the way in; on the
// way out parsers that believe nothing, although the checksums were right.
//
// The rows are those of the key-value history and of the lease table, as the store keeps them; this folder does not see
// the store and has types of its own.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace snapshot {

inline constexpr uint32_t kFormat = 1;
inline constexpr uint32_t kOldestReader = 1;

inline constexpr size_t kHeaderBytes = 32;
inline constexpr size_t kChunkHeaderBytes = 16;
inline constexpr size_t kTrailerBytes = 64;
inline constexpr size_t kRowHeaderBytes = 40;
inline constexpr size_t kLeaseBytes = 24;

inline constexpr size_t kChunkBytes = 256 << 10;    // a chunk is written when it holds so much
inline constexpr size_t kChunkBytesMax = 64 << 20;  // one more row than that; an entry of the log has 16 MiB at most
inline constexpr size_t kBlobBytesMax = 1 << 20;    // of membership and alarms, each

// Everything that is one value for the whole state. The state is the one after entry `index` of term `term`.
struct Manifest {
  uint64_t cluster_id = 0;
  uint64_t index = 0;
  uint64_t term = 0;
  int64_t revision = 1;
  int64_t compacted = -1;
  int64_t compaction_finished = -1;
  uint64_t content_hash = 0;
  Bytes membership = {};  // serialized by `apply`
  Bytes alarms = {};      // serialized by `apply`
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// A row of the key-value history; the views are somebody else's.
struct Row {
  int64_t id = 0;  // ascending in the file
  int64_t create_revision = 0;
  int64_t version = 0;
  int64_t lease = 0;
  std::string_view key = {};
  std::string_view value = {};
  friend bool operator==(const Row&, const Row&) = default;
};

struct Lease {
  int64_t id = 0;  // ascending in the file
  int64_t ttl = 0;
  int64_t remaining = 0;
  friend bool operator==(const Lease&, const Lease&) = default;
};

struct Counts {
  uint64_t rows = 0;
  uint64_t leases = 0;
  uint64_t chunks = 0;  // the manifest's included
  friend bool operator==(const Counts&, const Counts&) = default;
};

enum class ChunkType : uint32_t { kManifest = 1, kLeases = 2, kRows = 3 };

struct Header {
  uint32_t format = kFormat;
  uint32_t oldest_reader = kOldestReader;
};
struct ChunkHeader {
  ChunkType type = ChunkType::kManifest;
  uint32_t number = 0;  // from 0
  uint32_t bytes = 0;   // of the payload
  uint32_t crc = 0;     // of the three fields before and the payload
};
struct Trailer {
  uint64_t file_bytes = 0;
  Counts counts = {};
  uint32_t crc = 0;  // of all bytes before the trailer
};

void encode(const Header& header, Bytes& out);
void encode(const Trailer& trailer, Bytes& out);
void encode(const Manifest& manifest, Bytes& out);
void encode(const Row& row, Bytes& out);
void encode(const Lease& lease, Bytes& out);
// Fills the header in front of the payload: `chunk` has kChunkHeaderBytes of anything and then the payload.
void finish_chunk(ChunkType type, uint32_t number, Bytes& chunk);

// kDataLoss with what is wrong (no file name: the caller knows it). The parsers of payloads append views into
// `payload`.
Result<Header> decode_header(BytesView bytes);    // kFailedPrecondition: asks for a newer reader
Result<Trailer> decode_trailer(BytesView bytes);  // exactly kTrailerBytes
ChunkHeader decode_chunk_header(BytesView bytes);
bool chunk_matches(BytesView header_and_payload);
// `newer`: the file's format is newer than this reader; what follows the fields that are known is skipped.
Result<Manifest> decode_manifest(BytesView payload, bool newer);
Status decode_leases(BytesView payload, std::vector<Lease>& out);
Status decode_rows(BytesView payload, std::vector<Row>& out);

}  // namespace snapshot
