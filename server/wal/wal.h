// The Raft log on disk: segment files that are only ever appended to. Format: docs/format-wal.md.
//
// The unit is the batch. Batch n+1 is written only after the sync of batch n returned, so at most one batch (the last)
// can be torn by a power cut; anything else that does not match its checksums is damage, and damage is either repaired
// (one flipped bit in a batch or header) or refused with file, offset and advice. It is never skipped.
//
// Thread: one Wal belongs to one thread (the `wal` stage). It knows nothing of Raft's rules beyond: an entry at index i
// supersedes all entries at or above i that were written before it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/entry.h"
#include "base/result.h"
#include "base/world.h"

namespace wal {

constexpr uint64_t kSegmentBytesDefault = 16 << 20;
constexpr uint64_t kSegmentBytesMin = 4096;
constexpr uint64_t kEntryBytesMax = 16 << 20;  // of one entry's data
constexpr uint64_t kBatchBytesMax = 32 << 20;  // of all that one append writes
constexpr uint64_t kNoteBytesMax = 1 << 20;    // of a snapshot record's data

// Whose log this is. Stored in every segment; the caller of `open` compares it with what it expects.
struct Identity {
  uint64_t cluster_id = 0;
  uint64_t member_id = 0;
  friend bool operator==(const Identity&, const Identity&) = default;
};

// "The store's file holds everything up to `applied`", and how far SQLite's -wal reached then. Not interpreted here;
// the last one written is given back by `open`.
struct StoreMark {
  uint64_t applied = 0;
  uint32_t salt1 = 0;
  uint32_t salt2 = 0;
  uint32_t frames = 0;
  bool done = false;
  friend bool operator==(const StoreMark&, const StoreMark&) = default;
};

// A snapshot was installed: the log is empty and goes on at index + 1. `data` is the caller's (the membership at
// `index`).
struct SnapshotRecord {
  uint64_t index = 0;
  uint64_t term = 0;
  Bytes data;
  friend bool operator==(const SnapshotRecord&, const SnapshotRecord&) = default;
};

// What one append makes durable as a whole or not at all. Takes effect in this order: snapshot, entries, hard state,
// mark. Several hand-overs may be put into one batch by keeping the last of each optional and joining the entries in
// order: an entry whose index is not above the one before it supersedes, as at replay.
struct WalBatch {
  std::optional<HardState> hard_state = std::nullopt;
  std::optional<SnapshotRecord> snapshot = std::nullopt;
  std::vector<LogEntry> entries = {};
  std::optional<StoreMark> mark = std::nullopt;
};

struct WalContents {
  Identity identity;
  HardState hard_state;
  std::optional<SnapshotRecord> snapshot;  // the last one, also when entries follow it
  std::optional<StoreMark> mark;           // the last one
  // The entry before the first one that is still here ({0, 0} in a log that begins at 1): Raft compares with it. A
  // store whose applied index is below `base_index` cannot be caught up from this log; the caller refuses it, as it
  // refuses one above last_index().
  uint64_t base_index = 0;
  uint64_t base_term = 0;
  std::vector<LogEntry> entries;  // without gaps from first_index() on
  uint64_t first_index() const { return base_index + 1; }
  uint64_t last_index() const { return base_index + entries.size(); }

  std::vector<std::string> notes;  // what open repaired or cut, for the operator's log
  uint64_t flips_repaired = 0;
  uint64_t torn_bytes_cut = 0;
};

struct Options {
  std::string folder;
  uint64_t segment_bytes = kSegmentBytesDefault;  // of a new segment; one batch that is larger gets a larger segment
};

class Wal {
 public:
  // Whether `folder` holds a log. A crash inside `create` leaves none, and `create` may be called again. The caller
  // knows whether there ought to be one (a store with an applied index but no log is refused by it).
  static Result<bool> exists(Disk& disk, const std::string& folder);

  // A new log: kAlreadyExists if there is one. `random` gives the log the number by which its batches are recognised.
  static Result<std::unique_ptr<Wal>> create(Disk& disk, Options options, Identity identity, Random& random);

  struct Opened;
  // Reads everything, cuts a torn last batch, repairs single flipped bits, and makes sure that what it returns is
  // durable. kNotFound: no log. kDataLoss: damage; nothing was changed. kFailedPrecondition: a newer format; nothing
  // was changed.
  static Result<Opened> open(Disk& disk, Options options);

  ~Wal();
  Wal(const Wal&) = delete;
  Wal& operator=(const Wal&) = delete;

  // Writes the batch and syncs it; when this returns without an error everything in it is durable. CHECKs that entries
  // follow what is there (no gap, nothing at or below the base) and that commit does not go past the last entry.
  //
  // kInvalidArgument: a limit above is exceeded; nothing happened.
  // kResourceExhausted: there is no room for the next segment (or no descriptor for its file), or (where space is not
  // given before it is written to) for the batch; nothing happened, the same batch may be appended again. Any other
  // error is final: whether the batch is on disk is unknown, and every later call returns the same error.
  Status append(const WalBatch& batch);

  // Prepares the next segment when the current one is half full, a bounded step a call; true when there is more to do.
  // For the idle moments of the stage: without it, append does the same steps, one a batch. Errors as `append`.
  Result<bool> prepare();

  // An empty batch. Called at a clean stop: damage to the last batch that holds something can then no longer be
  // mistaken for a torn write.
  Status seal();

  // Removes the oldest segments while all their entries are below `index`, at the least keeping the newest. What must
  // be remembered from them (hard state, mark, snapshot record, base) is restated at the start of each segment. The
  // caller promises: `index` is not above the commit index, nor above the applied index that the last StoreMark made
  // durable. kResourceExhausted: no free descriptor; it may be called again. Any other error is final.
  Status drop_before(uint64_t index);

  Identity identity() const;
  uint64_t base_index() const;  // of the oldest segment that is left
  uint64_t last_index() const;
  HardState hard_state() const;  // the last one written
  uint64_t segment_count() const;
  uint64_t bytes_on_disk() const;

 private:
  struct State;
  explicit Wal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct Wal::Opened {
  std::unique_ptr<Wal> wal;
  WalContents contents;
};

}  // namespace wal
