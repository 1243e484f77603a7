// Reading a log back: which files there are, what they hold, and what has to be written to make it durable again.
// Changes nothing itself, so a refusal leaves the files as they were.
#pragma once

#include <string>
#include <vector>

#include "base/disk.h"
#include "wal/record.h"
#include "wal/segment.h"
#include "wal/wal.h"

namespace wal {

struct Segment {
  std::string name;
  SegmentHeader header;
  Base base;  // where the log would begin if this were the oldest segment
};

// An entry after `previous` superseded what there was.
inline void lower_base(Base& base, const Base& previous) {
  if (base.index > previous.index) base = previous;
}

struct Fix {
  std::string file;  // name in the folder
  uint64_t offset = 0;
  Bytes bytes;
};

struct Replayed {
  WalContents contents;
  std::vector<Segment> segments;  // by sequence, at least one
  uint64_t next_batch = 0;
  uint64_t tail = 0;  // where the next batch goes in the newest segment
  Base last;
  std::vector<Fix> fixes;              // repairs; and the last batch once more, with zeros over what follows it
  std::vector<std::string> left_over;  // names of unfinished files, to be removed
};

Result<Replayed> replay(Disk& disk, const std::string& folder);

}  // namespace wal
