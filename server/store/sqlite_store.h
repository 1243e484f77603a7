// The Store of store.h. Which thread uses what: the apply thread the writer connection, background (or apply, between
// two batches) the two connections of the checkpoint, any thread a reader from the pool.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/thread.h"
#include "store/connection.h"
#include "store/store.h"
#include "store/vfs.h"

namespace store {

// The writer's statements.
struct WriterStatements {
  static Result<WriterStatements> prepare(Connection& connection);
  Statement begin;
  Statement commit;
  Statement rollback;
  Statement put_row;
  Statement delete_row;
  Statement put_lease;
  Statement delete_lease;
  Statement set_meta;  // without the two blobs, which seldom change
  Statement set_meta_blobs;
  Statement free_pages;
};

class SqliteStore final : public Store {
 public:
  // `vfs` has been prepared by Store::open: files there and looked at.
  static Result<std::unique_ptr<SqliteStore>> make(std::unique_ptr<Vfs> vfs, const Options& options);
  ~SqliteStore() override;

  Result<std::unique_ptr<WriteTxn>> begin() override;
  const Meta& meta() const override { return meta_; }
  Result<std::vector<LeaseRow>> load_leases() override;
  Result<std::unique_ptr<ReadTxn>> read() override EXCLUDES(pool_mutex_);
  Result<std::optional<Mark>> begin_checkpoint() override;
  Result<Mark> run_checkpoint() override;
  void end_checkpoint() override;
  bool pause_needed() const override;
  Status vacuum(int pages) override;
  Stats stats() const override;
  Status sound() const override { return vfs_->failure().check(); }

  // Reads every page and holds tables and free list against each other. Slow; apply thread.
  Status check_integrity();
  // What SQLite found in the -wal; before the first commit.
  uint32_t frames() const { return frames_.load(); }
  // The first bytes of the -wal are from an earlier process: not durable for sure, whatever is synced from now on.
  // Before the first checkpoint.
  void distrust_wal(uint64_t bytes) { distrusted_wal_bytes_ = bytes; }

 private:
  class SqliteReadTxn;
  class SqliteWriteTxn;
  SqliteStore(std::unique_ptr<Vfs> vfs, const Options& options) : vfs_(std::move(vfs)), options_(options) {}
  Status connect();
  Status load_meta();
  void give_back(std::unique_ptr<Connection> connection) EXCLUDES(pool_mutex_);
  // Runs a statement that commits, with the pin kept away from the moment in between; then notes what became of it.
  Status commit_by(Statement& statement) EXCLUDES(commit_mutex_);
  void note_index() REQUIRES(commit_mutex_);
  Result<bool> pin() EXCLUDES(commit_mutex_);
  Status make_wal_durable();
  bool copied_up_to_the_pin(int frames_copied);

  const std::unique_ptr<Vfs> vfs_;
  const Options options_;
  std::unique_ptr<Connection> writer_;
  WriterStatements statements_;
  Meta meta_;
  bool write_txn_alive_ = false;

  Mutex pool_mutex_;
  Condition reader_back_;
  std::vector<std::unique_ptr<Connection>> readers_ GUARDED_BY(pool_mutex_);  // idle ones; the last one used at the end

  // Held by a commit, and by the pin while it takes its view and learns of which frame that is.
  Mutex commit_mutex_;
  std::unique_ptr<Connection> pin_;
  std::unique_ptr<Connection> copier_;
  std::optional<Mark> mark_;  // of the checkpoint that is under way
  int pinned_read_mark_ = 0;
  uint64_t distrusted_wal_bytes_ = 0;

  std::atomic<uint32_t> frames_{0};
  std::atomic<uint32_t> copied_{0};
  std::atomic<uint32_t> pages_{0};
  std::atomic<uint32_t> free_pages_{0};
};

}  // namespace store
