#include "snapshot/writer.h"

#include "base/check.h"
#include "base/crc32c.h"

namespace snapshot {

Writer::Writer(std::unique_ptr<File> file) : file_(std::move(file)), chunk_(kChunkHeaderBytes, '\0') {}

Result<std::unique_ptr<Writer>> Writer::create(Disk& disk, const std::string& path, const Manifest& manifest) {
  TRY_ASSIGN(auto file, disk.open(path, OpenMode::kCreate));
  TRY(file->truncate(0));
  std::unique_ptr<Writer> writer(new Writer(std::move(file)));
  Bytes header;
  encode(Header{}, header);
  TRY(writer->write(as_bytes(header)));
  encode(manifest, writer->chunk_);
  TRY(writer->flush());
  return writer;
}

void Writer::begin_entry(ChunkType type) {
  CHECK(!full(), chunk_.size());
  CHECK(type_ == type || chunk_.size() == kChunkHeaderBytes, chunk_.size());
  type_ = type;
}

void Writer::add(const Lease& lease) {
  begin_entry(ChunkType::kLeases);
  CHECK(lease.id > last_lease_, lease.id, last_lease_);
  CHECK(counts_.rows == 0, counts_.rows);
  last_lease_ = lease.id;
  ++counts_.leases;
  encode(lease, chunk_);
}

void Writer::add(const Row& row) {
  begin_entry(ChunkType::kRows);
  CHECK(row.id > last_row_, row.id, last_row_);
  last_row_ = row.id;
  ++counts_.rows;
  encode(row, chunk_);
}

Status Writer::flush() {
  if (chunk_.size() == kChunkHeaderBytes) return {};
  finish_chunk(type_, static_cast<uint32_t>(counts_.chunks++), chunk_);
  TRY(write(as_bytes(chunk_)));
  chunk_.resize(kChunkHeaderBytes);
  return {};
}

Status Writer::write_out() {
  TRY(file_->write_out(written_out_, offset_ - written_out_, true));
  written_out_ = offset_;
  return {};
}

Status Writer::finish() {
  TRY(flush());
  Bytes trailer;
  encode(Trailer{.file_bytes = offset_ + kTrailerBytes, .counts = counts_, .crc = crc_}, trailer);
  TRY(write(as_bytes(trailer)));
  return file_->sync();
}

Status Writer::write(BytesView bytes) {
  TRY(file_->write(offset_, bytes));
  crc_ = crc32c(bytes, crc_);
  offset_ += bytes.size();
  return {};
}

}  // namespace snapshot
