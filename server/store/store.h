// The replicated state on disk: one SQLite database a store generation, opened through our own VFS (page checksums,
// sticky failure, the simulator's disk underneath). Typed tables; one WriteTxn for the apply thread, any number of
// ReadTxns.
//
// Durability: journal mode WAL, synchronous NORMAL: a commit is not synced by itself. What is lost at a power cut is
// applied again from the Raft log, of which nothing is dropped that is not below the last StoreMark
// (docs/format-store.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/disk.h"
#include "base/result.h"

namespace store {

// A row of the key-value history: one key at one revision. Rows are ordered by `id`, which orders by (main, sub).
using RowId = int64_t;

struct Row {
  RowId id = 0;
  Bytes key;
  int64_t create_revision = 0;  // 0 in a tombstone
  int64_t version = 0;          // 0 in a tombstone
  int64_t lease = 0;
  Bytes value;
};
// The same without a copy; valid until the visitor returns.
struct RowView {
  RowId id = 0;
  std::string_view key;
  int64_t create_revision = 0;
  int64_t version = 0;
  int64_t lease = 0;
  std::string_view value;  // empty where a scan was asked for heads only
};

struct LeaseRow {
  int64_t id = 0;
  int64_t ttl = 0;        // granted, seconds
  int64_t remaining = 0;  // as of the last checkpoint; 0: the whole ttl
  friend bool operator==(const LeaseRow&, const LeaseRow&) = default;
};

// Everything that is one value for the whole store, saved in the same transaction as the rows it speaks of.
struct Meta {
  uint64_t applied_index = 0;
  uint64_t applied_term = 0;
  int64_t revision = 1;              // of the last applied write; an empty store is at 1, as etcd's
  int64_t compacted = -1;            // the revision that was compacted last; -1: never
  int64_t compaction_finished = -1;  // whose rows are all gone
  uint64_t content_hash = 0;         // incremental hash of the logical content
  Bytes membership;                  // serialized by `apply`
  Bytes alarms;                      // serialized by `apply`
  friend bool operator==(const Meta&, const Meta&) = default;
};

struct Options {
  std::string directory = {};            // of this generation; must exist
  uint64_t cache_bytes = 24ULL << 20;    // page caches of all connections together
  uint64_t wal_bytes_max = 64ULL << 20;  // hard limit of SQLite's -wal
  int readers_max = 8;                   // connections kept for ReadTxns; more wait
};

// Where a checkpoint stands, for the Raft log: frames up to `frames` of the -wal that carries these salts make up the
// store's applied index `applied` and may be in the database file. `done`: the database file is that state, all by
// itself and synced. Opening with a mark that the files contradict is refused (kDataLoss).
struct Mark {
  uint64_t applied = 0;
  uint32_t salt1 = 0;
  uint32_t salt2 = 0;
  uint32_t frames = 0;
  bool done = false;
  friend bool operator==(const Mark&, const Mark&) = default;
};

struct Stats {
  int64_t size_bytes = 0;         // of the database as a client sees it (dbSize): pages in use and free
  int64_t size_in_use_bytes = 0;  // without free pages
  uint64_t wal_bytes = 0;         // in use in SQLite's -wal; 0 when all is copied and the next commit starts it anew
  uint64_t syncs = 0;
  uint64_t bytes_written = 0;
};

// A stable view of one commit. Not to outlive one io step: while it lives a checkpoint cannot finish. Any thread, one
// at a time. Statements are prepared once a connection.
class ReadTxn {
 public:
  virtual ~ReadTxn() = default;          // gives its connection back
  virtual const Meta& meta() const = 0;  // of this view (without membership and alarms: those are empty here)
  // nullopt: no such row. kDataLoss: a page does not match its checksum.
  virtual Result<std::optional<Row>> row(RowId id) = 0;
  // Rows with from <= id < to in order, until the visitor returns false. `heads_only` leaves the values out.
  virtual Status scan(RowId from, RowId to, bool heads_only, const std::function<bool(const RowView&)>& visit) = 0;
  // What else makes up the state of this commit, for snapshots: meta with membership and alarms, and the lease table.
  virtual Result<Meta> whole_meta() = 0;
  virtual Result<std::vector<LeaseRow>> leases() = 0;
};

// All calls from the apply thread. Errors: kResourceExhausted (no space: rolled back, may be tried again later),
// kDataLoss (I/O error, checksum; sticky: every later call fails the same way).
class WriteTxn {
 public:
  virtual ~WriteTxn() = default;  // rolls back unless committed
  virtual Status put_row(const RowView& row) = 0;
  virtual Status delete_row(RowId id) = 0;
  // Sees this transaction's own writes.
  virtual Result<std::optional<Row>> row(RowId id) = 0;
  virtual Status put_lease(const LeaseRow& lease) = 0;
  virtual Status delete_lease(int64_t id) = 0;
  virtual Status set_meta(const Meta& meta) = 0;
  virtual Status commit() = 0;
};

class Store {
 public:
  // Opens or creates `directory`/store.db. `mark`: the last one of the Raft log, to hold the files against.
  static Result<std::unique_ptr<Store>> open(Disk& disk, const Options& options, const std::optional<Mark>& mark);
  virtual ~Store() = default;

  // Apply thread. At most one WriteTxn alive. kResourceExhausted when the -wal is at its hard limit, which happens only
  // to who does not heed pause_needed().
  virtual Result<std::unique_ptr<WriteTxn>> begin() = 0;
  virtual const Meta& meta() const = 0;  // of the last commit; apply thread
  virtual Result<std::vector<LeaseRow>> load_leases() = 0;

  virtual Result<std::unique_ptr<ReadTxn>> read() = 0;  // any thread

  // A checkpoint in three steps, so that no step waits for the Raft log. Background thread, or the apply thread between
  // two batches (then with no commit until the end, which lets the -wal start anew: `pause_needed`).
  //   1. begin_checkpoint(): pins the last commit, syncs the -wal; the answer is to be logged durably with done = false
  //   2. run_checkpoint(): copies what is pinned into the database file; to be logged again. `done` if nothing was
  //      committed since step 1 (else, or when an older ReadTxn stood in the way for too long, the next checkpoint goes
  //      on)
  //   3. end_checkpoint(): lets go of the pin, so that the next commit may start the -wal anew
  // nullopt from step 1: nothing to do.
  virtual Result<std::optional<Mark>> begin_checkpoint() = 0;
  virtual Result<Mark> run_checkpoint() = 0;
  virtual void end_checkpoint() = 0;
  // The -wal is so long that apply must stop for a checkpoint before its next commit.
  virtual bool pause_needed() const = 0;

  // Gives up to `pages` free pages back to the file system (auto_vacuum INCREMENTAL). Apply thread, between batches.
  virtual Status vacuum(int pages) = 0;

  virtual Stats stats() const = 0;  // any thread
  // The failure that ended this store, if one did: every other call answers with it. Any thread.
  virtual Status sound() const { return {}; }
};

}  // namespace store
