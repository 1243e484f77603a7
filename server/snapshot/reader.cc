#include "snapshot/reader.h"

#include "base/crc32c.h"

namespace snapshot {

tl::unexpected<Error> Reader::damaged(const std::string& what) const {
  return fail(Code::kDataLoss, "snapshot " + path_ + ": " + what + ". It is of no use; another one has to be made");
}

Result<std::unique_ptr<Reader>> Reader::open(Disk& disk, const std::string& path) {
  TRY_ASSIGN(auto file, disk.open(path, OpenMode::kRead));
  std::unique_ptr<Reader> reader(new Reader(std::move(file), path));
  TRY(reader->read_ends());
  ChunkHeader header;
  TRY_ASSIGN(const BytesView payload, reader->load_chunk(&header));
  if (header.type != ChunkType::kManifest) return reader->damaged("it does not begin with its manifest");
  auto manifest = decode_manifest(payload, reader->header_.format > kFormat);
  if (!manifest) return reader->damaged(manifest.error().message);
  reader->manifest_ = std::move(*manifest);
  return reader;
}

Status Reader::load(uint64_t offset, size_t bytes, Bytes& into) {
  into.resize(bytes);
  TRY_ASSIGN(const size_t got, file_->read(offset, std::as_writable_bytes(std::span(into))));
  if (got != bytes) return damaged("it ends at offset " + std::to_string(offset + got));
  return {};
}

Status Reader::read_ends() {
  TRY_ASSIGN(const uint64_t size, file_->size());
  if (size < kHeaderBytes + kTrailerBytes) return damaged("it has " + std::to_string(size) + " bytes only");
  Bytes bytes;
  TRY(load(0, kHeaderBytes, bytes));
  auto header = decode_header(as_bytes(bytes));
  if (!header && header.error().code == Code::kDataLoss) return damaged(header.error().message);
  if (!header) return fail(header.error().code, "snapshot " + path_ + ": " + header.error().message);
  header_ = *header;
  crc_ = crc32c(as_bytes(bytes));
  offset_ = kHeaderBytes;
  TRY(load(size - kTrailerBytes, kTrailerBytes, bytes));
  auto trailer = decode_trailer(as_bytes(bytes));
  if (!trailer) return damaged(trailer.error().message);
  trailer_ = *trailer;
  if (trailer_.file_bytes != size) {
    return damaged("it has " + std::to_string(size) + " bytes where it had " + std::to_string(trailer_.file_bytes));
  }
  return {};
}

// The payload is a view of chunk_.
Result<BytesView> Reader::load_chunk(ChunkHeader* header) {
  const uint64_t end = trailer_.file_bytes - kTrailerBytes;
  const std::string at = "the chunk at offset " + std::to_string(offset_);
  if (end - offset_ < kChunkHeaderBytes) return damaged(at + " is not whole");
  TRY(load(offset_, kChunkHeaderBytes, chunk_));
  *header = decode_chunk_header(as_bytes(chunk_));
  if (header->bytes > kChunkBytesMax || header->bytes > end - offset_ - kChunkHeaderBytes) {
    return damaged(at + " has a wrong length");
  }
  TRY(load(offset_, kChunkHeaderBytes + header->bytes, chunk_));
  const BytesView bytes = as_bytes(chunk_);
  if (header->number != seen_.chunks || !chunk_matches(bytes)) return damaged(at + " does not match its checksum");
  crc_ = crc32c(bytes, crc_);
  offset_ += bytes.size();
  ++seen_.chunks;
  return bytes.subspan(kChunkHeaderBytes);
}

Result<bool> Reader::next(Chunk& chunk) {
  chunk.leases.clear();
  chunk.rows.clear();
  if (offset_ == trailer_.file_bytes - kTrailerBytes) {
    TRY(check_end());
    return false;
  }
  ChunkHeader header;
  TRY_ASSIGN(const BytesView payload, load_chunk(&header));
  Status decoded;
  switch (header.type) {
    case ChunkType::kLeases:
      decoded = decode_leases(payload, chunk.leases);
      break;
    case ChunkType::kRows:
      decoded = decode_rows(payload, chunk.rows);
      break;
    default:
      if (header_.format <= kFormat) return damaged("a chunk is of unknown type");
  }
  if (!decoded) return damaged(decoded.error().message);
  TRY(check_order(chunk));
  return true;
}

Status Reader::check_order(const Chunk& chunk) {
  for (const Lease& lease : chunk.leases) {
    if (lease.id <= last_lease_) return damaged("lease " + std::to_string(lease.id) + " is out of order");
    last_lease_ = lease.id;
  }
  for (const Row& row : chunk.rows) {
    if (row.id <= last_row_) return damaged("row " + std::to_string(row.id) + " is out of order");
    last_row_ = row.id;
  }
  seen_.leases += chunk.leases.size();
  seen_.rows += chunk.rows.size();
  return {};
}

Status Reader::check_end() {
  if (crc_ != trailer_.crc) return damaged("it does not match its checksum");
  if (!(seen_ == trailer_.counts)) return damaged("rows or leases are missing");
  return {};
}

}  // namespace snapshot
