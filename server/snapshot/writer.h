// Writes a snapshot's file from its beginning to its end: the manifest, all leases, all rows. Memory: one chunk and a
// row. Whoever uses it gives the file a temporary name and renames it when finish() has returned.
//
// Errors are the disk's; after one the writer is of no use any more (the file is to be removed). One thread.
#pragma once

#include <limits>
#include <memory>
#include <string>

#include "base/disk.h"
#include "snapshot/format.h"

namespace snapshot {

class Writer {
 public:
  // Replaces what is at `path`.
  static Result<std::unique_ptr<Writer>> create(Disk& disk, const std::string& path, const Manifest& manifest);

  // Into memory only. Ids ascend; all leases come before the rows, with a flush() between. When full(), the next call
  // is flush().
  void add(const Lease& lease);
  void add(const Row& row);
  bool full() const { return chunk_.size() >= kChunkBytes; }

  Status flush();  // writes what was added as one chunk
  // Has the system write out what it was given so far, and waits: the last sync finds little left, and nobody else's
  // sync queues behind a gigabyte. Promises nothing about a crash.
  Status write_out();
  // The rest, the trailer, and a sync: the content is durable, the name not yet.
  Status finish();

  uint64_t bytes() const { return offset_; }  // written so far
  const Counts& counts() const { return counts_; }

 private:
  explicit Writer(std::unique_ptr<File> file);
  void begin_entry(ChunkType type);
  Status write(BytesView bytes);

  std::unique_ptr<File> file_;
  uint64_t offset_ = 0;
  uint64_t written_out_ = 0;
  uint32_t crc_ = 0;  // of everything written
  Counts counts_;
  ChunkType type_ = ChunkType::kManifest;
  Bytes chunk_;  // with room for its header
  int64_t last_lease_ = std::numeric_limits<int64_t>::min();
  int64_t last_row_ = std::numeric_limits<int64_t>::min();
};

}  // namespace snapshot
