#include "snapshot/format.h"

#include <optional>

#include "base/check.h"
#include "base/crc32c.h"

namespace snapshot {
namespace {

constexpr std::string_view kMagic = "CNCLSNAP";
constexpr std::string_view kTrailerMagic = "CNCLSEND";
static_assert(kMagic.size() == 8 && kTrailerMagic.size() == 8);
constexpr size_t kManifestBytes = 7 * 8 + 2 * 4;  // without the two blobs

void finish_with_crc(size_t begin, size_t bytes, Bytes& out) {
  CHECK(out.size() - begin <= bytes - 4, out.size(), begin);
  out.resize(begin + bytes - 4, '\0');
  append_integer(out, crc32c(as_bytes(std::string_view(out).substr(begin))));
}

bool crc_at_end_matches(BytesView bytes) {
  const size_t covered = bytes.size() - 4;
  return crc32c(bytes.first(covered)) == load_integer<uint32_t>(bytes, covered);
}

// Takes fields off the front of a payload.
class Cursor {
 public:
  explicit Cursor(BytesView bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  bool has(size_t bytes) const { return rest_.size() >= bytes; }
  // The caller has asked has().
  template <class Integer>
  Integer integer() {
    const auto value = load_integer<Integer>(rest_);
    rest_ = rest_.subspan(sizeof(Integer));
    return value;
  }
  std::optional<std::string_view> bytes(size_t count) {
    if (!has(count)) return std::nullopt;
    const std::string_view taken = as_text(rest_.first(count));
    rest_ = rest_.subspan(count);
    return taken;
  }

 private:
  BytesView rest_;
};

}  // namespace

void encode(const Header& header, Bytes& out) {
  const size_t begin = out.size();
  out += kMagic;
  append_integer(out, header.format);
  append_integer(out, header.oldest_reader);
  finish_with_crc(begin, kHeaderBytes, out);
}

void encode(const Trailer& trailer, Bytes& out) {
  const size_t begin = out.size();
  out += kTrailerMagic;
  append_integer(out, trailer.file_bytes);
  append_integer(out, trailer.counts.rows);
  append_integer(out, trailer.counts.leases);
  append_integer(out, trailer.counts.chunks);
  append_integer(out, trailer.crc);
  finish_with_crc(begin, kTrailerBytes, out);
}

void encode(const Manifest& manifest, Bytes& out) {
  CHECK(manifest.membership.size() <= kBlobBytesMax, manifest.membership.size());
  CHECK(manifest.alarms.size() <= kBlobBytesMax, manifest.alarms.size());
  append_integer(out, manifest.cluster_id);
  append_integer(out, manifest.index);
  append_integer(out, manifest.term);
  append_integer(out, manifest.revision);
  append_integer(out, manifest.compacted);
  append_integer(out, manifest.compaction_finished);
  append_integer(out, manifest.content_hash);
  append_integer(out, static_cast<uint32_t>(manifest.membership.size()));
  append_integer(out, static_cast<uint32_t>(manifest.alarms.size()));
  out += manifest.membership;
  out += manifest.alarms;
}

void encode(const Row& row, Bytes& out) {
  append_integer(out, row.id);
  append_integer(out, row.create_revision);
  append_integer(out, row.version);
  append_integer(out, row.lease);
  append_integer(out, static_cast<uint32_t>(row.key.size()));
  append_integer(out, static_cast<uint32_t>(row.value.size()));
  out += row.key;
  out += row.value;
}

void encode(const Lease& lease, Bytes& out) {
  append_integer(out, lease.id);
  append_integer(out, lease.ttl);
  append_integer(out, lease.remaining);
}

void finish_chunk(ChunkType type, uint32_t number, Bytes& chunk) {
  CHECK(chunk.size() >= kChunkHeaderBytes, chunk.size());
  const size_t payload = chunk.size() - kChunkHeaderBytes;
  CHECK(payload <= kChunkBytesMax, payload);
  Bytes header;
  append_integer(header, static_cast<uint32_t>(type));
  append_integer(header, number);
  append_integer(header, static_cast<uint32_t>(payload));
  const uint32_t crc = crc32c(as_bytes(chunk).subspan(kChunkHeaderBytes), crc32c(as_bytes(header)));
  append_integer(header, crc);
  chunk.replace(0, kChunkHeaderBytes, header);
}

Result<Header> decode_header(BytesView bytes) {
  if (bytes.size() < kHeaderBytes) return fail(Code::kDataLoss, "it is shorter than its header");
  bytes = bytes.first(kHeaderBytes);
  if (as_text(bytes.first(kMagic.size())) != kMagic || !crc_at_end_matches(bytes)) {
    return fail(Code::kDataLoss, "its header is damaged, or it is no snapshot");
  }
  const Header header{.format = load_integer<uint32_t>(bytes, 8), .oldest_reader = load_integer<uint32_t>(bytes, 12)};
  if (header.oldest_reader > kFormat) {
    return fail(Code::kFailedPrecondition,
                "it has format " + std::to_string(header.format) + ", which needs a Conclave that reads format " +
                    std::to_string(header.oldest_reader) + " (this one reads " + std::to_string(kFormat) + ")");
  }
  return header;
}

Result<Trailer> decode_trailer(BytesView bytes) {
  CHECK(bytes.size() == kTrailerBytes, bytes.size());
  if (as_text(bytes.first(kTrailerMagic.size())) != kTrailerMagic || !crc_at_end_matches(bytes)) {
    return fail(Code::kDataLoss, "its end is missing or damaged");
  }
  return Trailer{.file_bytes = load_integer<uint64_t>(bytes, 8),
                 .counts = {.rows = load_integer<uint64_t>(bytes, 16),
                            .leases = load_integer<uint64_t>(bytes, 24),
                            .chunks = load_integer<uint64_t>(bytes, 32)},
                 .crc = load_integer<uint32_t>(bytes, 40)};
}

ChunkHeader decode_chunk_header(BytesView bytes) {
  return {.type = static_cast<ChunkType>(load_integer<uint32_t>(bytes, 0)),
          .number = load_integer<uint32_t>(bytes, 4),
          .bytes = load_integer<uint32_t>(bytes, 8),
          .crc = load_integer<uint32_t>(bytes, 12)};
}

bool chunk_matches(BytesView header_and_payload) {
  const uint32_t crc = crc32c(header_and_payload.first(12));
  return crc32c(header_and_payload.subspan(kChunkHeaderBytes), crc) == load_integer<uint32_t>(header_and_payload, 12);
}

Result<Manifest> decode_manifest(BytesView payload, bool newer) {
  Cursor cursor(payload);
  if (!cursor.has(kManifestBytes)) return fail(Code::kDataLoss, "its manifest is too short");
  Manifest manifest;
  manifest.cluster_id = cursor.integer<uint64_t>();
  manifest.index = cursor.integer<uint64_t>();
  manifest.term = cursor.integer<uint64_t>();
  manifest.revision = cursor.integer<int64_t>();
  manifest.compacted = cursor.integer<int64_t>();
  manifest.compaction_finished = cursor.integer<int64_t>();
  manifest.content_hash = cursor.integer<uint64_t>();
  const auto membership_bytes = cursor.integer<uint32_t>();
  const auto alarms_bytes = cursor.integer<uint32_t>();
  const auto membership = cursor.bytes(membership_bytes);
  const auto alarms = membership ? cursor.bytes(alarms_bytes) : std::nullopt;
  const bool fits = membership && alarms && membership_bytes <= kBlobBytesMax && alarms_bytes <= kBlobBytesMax;
  if (!fits || (!newer && !cursor.empty())) return fail(Code::kDataLoss, "its manifest has a wrong length");
  manifest.membership = *membership;
  manifest.alarms = *alarms;
  return manifest;
}

Status decode_leases(BytesView payload, std::vector<Lease>& out) {
  if (payload.size() % kLeaseBytes != 0) return fail(Code::kDataLoss, "a chunk of leases has a wrong length");
  for (Cursor cursor(payload); !cursor.empty();) {
    Lease lease;
    lease.id = cursor.integer<int64_t>();
    lease.ttl = cursor.integer<int64_t>();
    lease.remaining = cursor.integer<int64_t>();
    out.push_back(lease);
  }
  return {};
}

Status decode_rows(BytesView payload, std::vector<Row>& out) {
  for (Cursor cursor(payload); !cursor.empty();) {
    if (!cursor.has(kRowHeaderBytes)) return fail(Code::kDataLoss, "a chunk of rows ends inside a row");
    Row row;
    row.id = cursor.integer<int64_t>();
    row.create_revision = cursor.integer<int64_t>();
    row.version = cursor.integer<int64_t>();
    row.lease = cursor.integer<int64_t>();
    const auto key_bytes = cursor.integer<uint32_t>();
    const auto value_bytes = cursor.integer<uint32_t>();
    const auto key = cursor.bytes(key_bytes);
    const auto value = key ? cursor.bytes(value_bytes) : std::nullopt;
    if (!value) return fail(Code::kDataLoss, "a chunk of rows ends inside a row");
    row.key = *key;
    row.value = *value;
    out.push_back(row);
  }
  return {};
}

}  // namespace snapshot
