// Reads a snapshot's file from its beginning to its end and believes nothing that its checksums do not confirm. Memory:
// one chunk. Only when next() has answered false is the file known to be whole.
//
// Errors: kDataLoss (cut off or damaged), kFailedPrecondition (a newer format); both name the file. kNotFound. One
// thread.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/disk.h"
#include "snapshot/format.h"

namespace snapshot {

class Reader {
 public:
  // Reads header, manifest and trailer, so that a file that was cut off is refused at once.
  static Result<std::unique_ptr<Reader>> open(Disk& disk, const std::string& path);

  const Manifest& manifest() const { return manifest_; }
  const Counts& counts() const { return trailer_.counts; }
  uint64_t bytes() const { return trailer_.file_bytes; }

  struct Chunk {
    std::vector<Lease> leases;
    std::vector<Row> rows;  // views, valid until the next call
  };
  // The next chunk; false: that was all, and lengths, counts and checksums are right.
  Result<bool> next(Chunk& chunk);

 private:
  Reader(std::unique_ptr<File> file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Status read_ends();
  Status load(uint64_t offset, size_t bytes, Bytes& into);
  Result<BytesView> load_chunk(ChunkHeader* header);
  Status check_order(const Chunk& chunk);
  Status check_end();
  tl::unexpected<Error> damaged(const std::string& what) const;

  const std::unique_ptr<File> file_;
  const std::string path_;
  Header header_;
  Trailer trailer_;
  Manifest manifest_;
  Bytes chunk_;
  uint64_t offset_ = 0;
  uint32_t crc_ = 0;
  Counts seen_;
  int64_t last_lease_ = std::numeric_limits<int64_t>::min();
  int64_t last_row_ = std::numeric_limits<int64_t>::min();
};

}  // namespace snapshot
