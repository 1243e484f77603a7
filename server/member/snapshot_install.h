// Turns the file of a snapshot into a complete store: a new generation beside the one in force, which goes on
// meanwhile.
//
//   build    SnapshotInstall: the folder is made, rows, leases and meta written in bounded transactions with
//   checkpoints
//            between, the content's hash computed from the rows and compared, the database synced, its -wal cut
//   switch   put_in_force(): CURRENT names it. Nobody may append to the log from here on
//   log      open_data_folder(): the log hears of it, durably; then the old generation is removed
//
// A crash before the switch leaves the old state, after it the new one (docs/format-store.md).
#pragma once

#include <memory>
#include <string>

#include "base/disk.h"
#include "member/generation.h"
#include "snapshot/reader.h"
#include "store/store.h"

namespace member {

class SnapshotInstall {
 public:
  ~SnapshotInstall();
  // What an earlier attempt at the same snapshot left is removed first. kFailedPrecondition: of another cluster, or of
  // a newer format; kDataLoss: damaged.
  static Result<std::unique_ptr<SnapshotInstall>> begin(Disk& disk, const Options& options, const std::string& file,
                                                        uint64_t cluster_id);
  // A bounded piece of the work (some milliseconds, or one checkpoint of the new store). False: the generation is
  // complete and durable. Errors: kDataLoss (the file is damaged, or its rows are not what its manifest says),
  // kResourceExhausted (no space), the disk's. After one the object is of no use; remove_unfinished().
  Result<bool> step();

  const Generation& generation() const { return generation_; }
  const snapshot::Manifest& manifest() const { return reader_->manifest(); }

  // Of an attempt that failed: gives its space back. Best effort, the next start does it too.
  static void remove_unfinished(Disk& disk, const Options& options, const Generation& generation);

 private:
  class LiveHash;

  SnapshotInstall(Disk& disk, const Options& options);
  Status build_store();
  Status write_some();
  Status write(store::WriteTxn& txn);
  Result<bool> load_chunk();
  Status finish();
  Status checkpoint();
  uint64_t wal_bytes_max() const { return options_.store_wal_bytes_max; }

  Disk& disk_;
  const Options options_;
  std::string file_;
  Generation generation_;
  std::unique_ptr<snapshot::Reader> reader_;
  std::unique_ptr<store::Store> store_;
  snapshot::Reader::Chunk chunk_;
  size_t next_lease_ = 0;  // in chunk_
  size_t next_row_ = 0;    // in chunk_
  bool all_read_ = false;
  std::unique_ptr<LiveHash> hash_;
};

// Makes the generation, which is complete, the one in force. The caller has stopped the member, so that nothing is
// appended to its log or applied any more; `applied`: of its store. Then open_data_folder() goes on.
// kFailedPrecondition: what the store has is not older; nothing happened. kUnavailable: another server has taken the
// folder meanwhile.
Status put_in_force(Disk& disk, const Options& options, const Generation& generation, uint64_t applied);

// Build and switch in one go, for a member that is stopped.
Result<Generation> install_snapshot(Disk& disk, const Options& options, const std::string& file, uint64_t cluster_id,
                                    uint64_t applied);

}  // namespace member
