// Reads a -wal before SQLite does, by the same rules (https://sqlite.org/fileformat2.html, 4): which frames are valid,
// and up to which commit. SQLite takes the valid beginning of a damaged log in silence; whether that beginning is long
// enough is decided here, against the last mark of the Raft log.
#pragma once

#include <optional>
#include <string>

#include "base/disk.h"
#include "store/frame_table.h"
#include "store/store.h"

namespace store {

struct WalScan {
  uint64_t file_bytes = 0;
  bool header_valid = false;
  uint32_t salt1 = 0;
  uint32_t salt2 = 0;
  uint32_t frames = 0;              // valid ones from the beginning
  uint32_t committed = 0;           // the last of them that ends a commit
  std::optional<Bytes> first_page;  // newest committed image of page 1
};

// `table` learns the checksums of the valid frames.
Result<WalScan> scan_wal(File& file, FrameTable& table);

// Whether what the -wal holds is at least what the database file may already have been given: see docs/format-store.md.
// `path` is for the message.
Status check_mark(const WalScan& scan, const std::optional<Mark>& mark, const std::string& path);

}  // namespace store
