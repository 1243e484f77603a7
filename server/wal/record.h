// The bytes inside a batch: a row of records, each {type u32, length u32, payload}. Encoding on the way in; on the way
// out a parser that believes nothing, although the batch's checksums were right.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/entry.h"
#include "base/result.h"
#include "wal/terms.h"
#include "wal/wal.h"

namespace wal {

enum class RecordType : uint32_t {
  kHardState = 1,
  kMark = 2,
  kSnapshot = 3,      // was installed here: empties the log
  kSnapshotNote = 4,  // the last installed one, restated at the start of a segment
  kBase = 5,          // index and term of the last entry before this segment
  kEntry = 6,
};

struct Base {
  uint64_t index = 0;
  uint64_t term = 0;
  friend bool operator==(const Base&, const Base&) = default;
};

// What the first batch of a segment restates of all segments before it, so that they can be removed.
struct Checkpoint {
  Base base;
  HardState hard_state;
  std::optional<SnapshotRecord> snapshot;
  std::optional<StoreMark> mark;
};

// The term before it goes with each entry: when an entry supersedes some that were in segments that are gone by now,
// that is the only place from which the log's base is known.
struct EntryRecord {
  LogEntry entry;
  uint64_t previous_term = 0;
};

// A decoded batch. `base` is there exactly in a checkpoint.
struct Records {
  std::optional<Base> base;
  std::optional<HardState> hard_state;
  std::optional<SnapshotRecord> snapshot;
  std::optional<SnapshotRecord> snapshot_note;
  std::optional<StoreMark> mark;
  std::vector<EntryRecord> entries;
};

uint64_t encoded_bytes(const WalBatch& batch);
// Appended to `out`. `terms` is the log's before the batch and afterwards with it.
void encode(const WalBatch& batch, Terms& terms, Bytes& out);
void encode(const Checkpoint& checkpoint, Bytes& out);

// kDataLoss: says what is wrong and where in the body. `skip_unknown`: the segment was written by a newer version that
// says this one can cope.
Result<Records> decode(BytesView body, bool skip_unknown);

}  // namespace wal
