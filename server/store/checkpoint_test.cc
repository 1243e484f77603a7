#include <gtest/gtest.h>

#include "store/format.h"
#include "store/test_support.h"
#include "store/wal_scan.h"

namespace store {
namespace {

using test::commit;
using test::content_of;
using test::kDatabase;
using test::kWal;
using test::open_store;
using test::read_all;

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    test::make_folder(disk_);
    reopen({});
  }
  void reopen(std::optional<Mark> mark, Options options = {}) {
    store_.reset();
    auto opened = open_store(disk_, mark, options);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }
  void commit_to(int last) {
    while (at_ < last) ASSERT_TRUE(commit(*store_, ++at_));
  }
  WalScan scan() {
    FrameTable table;
    return *scan_wal(**disk_.open(kWal, OpenMode::kRead), table);
  }
  Status run() {
    return test::checkpoint(*store_, [this](const Mark& mark) { mark_ = mark; });
  }

  MemoryDisk disk_;
  SeededRandom random_{3};
  std::unique_ptr<Store> store_;
  int at_ = 0;
  std::optional<Mark> mark_;
};

TEST_F(CheckpointTest, NothingIsToBeDoneOnANewStoreAndAfterACheckpoint) {
  EXPECT_EQ(*store_->begin_checkpoint(), std::nullopt);
  store_->end_checkpoint();
  commit_to(3);
  ASSERT_TRUE(run());
  EXPECT_EQ(*store_->begin_checkpoint(), std::nullopt);
  store_->end_checkpoint();
}

TEST_F(CheckpointTest, TheMarkNamesTheLastCommitAndItsFrame) {
  commit_to(5);
  const auto begun = *store_->begin_checkpoint();
  ASSERT_TRUE(begun);
  const WalScan found = scan();
  EXPECT_EQ(*begun, (Mark{.applied = 5, .salt1 = found.salt1, .salt2 = found.salt2, .frames = found.committed}));
  const Bytes before = *disk_.content(kDatabase);
  EXPECT_EQ(before.size() / kPageBytes, 5u) << "nothing is copied before the mark is logged";
  const auto done = *store_->run_checkpoint();
  EXPECT_TRUE(done.done);
  EXPECT_EQ(done.frames, begun->frames);
  EXPECT_GT(disk_.content(kDatabase)->size(), before.size());
  store_->end_checkpoint();
}

TEST_F(CheckpointTest, TheWalIsOnTheMediumBeforeTheMarkIsHandedOut) {
  commit_to(5);
  ASSERT_TRUE(*store_->begin_checkpoint());
  const auto crashed = disk_.clone();
  crashed->crash(random_, MemoryDisk::Loss::kEverything);
  const auto opened = open_store(*crashed);
  ASSERT_TRUE(opened);
  EXPECT_EQ(*read_all(**opened), content_of(5));
}

TEST_F(CheckpointTest, TheDatabaseIsOnTheMediumBeforeItIsCalledDone) {
  commit_to(5);
  ASSERT_TRUE(*store_->begin_checkpoint());
  EXPECT_TRUE(store_->run_checkpoint()->done);
  const auto crashed = disk_.clone();
  crashed->crash(random_, MemoryDisk::Loss::kEverything);
  crashed->put(kWal, {});
  const auto opened = open_store(*crashed);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(*read_all(**opened), content_of(5)) << "without the -wal";
}

TEST_F(CheckpointTest, APassBesideTrafficCopiesButIsNotDone) {
  commit_to(5);
  const auto begun = *store_->begin_checkpoint();
  commit_to(9);
  EXPECT_EQ(*store_->run_checkpoint(), *begun) << "the database needs the -wal, whose pages are newer";
  store_->end_checkpoint();
  const uint32_t frames = scan().committed;
  EXPECT_GT(frames, begun->frames);
  commit_to(10);
  EXPECT_GT(scan().committed, frames) << "the same log";
  EXPECT_EQ(*read_all(*store_), content_of(10));
  ASSERT_TRUE(run());
  EXPECT_TRUE(mark_->done);
  EXPECT_EQ(*read_all(*store_), content_of(10));
}

TEST_F(CheckpointTest, ThePinKeepsTheLogFromStartingAnewUntilTheEnd) {
  commit_to(5);
  ASSERT_TRUE(*store_->begin_checkpoint());
  ASSERT_TRUE(store_->run_checkpoint()->done);
  const WalScan before = scan();
  commit_to(6);  // everything is copied, but the mark is not logged as done yet
  EXPECT_EQ(scan().salt1, before.salt1);
  EXPECT_GT(scan().committed, before.committed);
  store_->end_checkpoint();
}

TEST_F(CheckpointTest, TheNextCommitStartsTheLogAnew) {
  commit_to(20);
  const WalScan before = scan();
  EXPECT_EQ(store_->stats().wal_bytes, wal_bytes_of(before.committed));
  ASSERT_TRUE(run());
  EXPECT_EQ(store_->stats().wal_bytes, 0u);
  commit_to(21);
  const WalScan after = scan();
  EXPECT_NE(after.salt1, before.salt1);
  EXPECT_LT(after.committed, before.committed);
  EXPECT_EQ(store_->stats().wal_bytes, wal_bytes_of(after.committed));
  EXPECT_EQ(after.file_bytes, before.file_bytes) << "and never shrinks";
  EXPECT_EQ(*read_all(*store_), content_of(21));
  reopen(mark_);
  EXPECT_EQ(*read_all(*store_), content_of(21));
}

TEST_F(CheckpointTest, AnOldReaderKeepsItsViewAndDelaysTheCopy) {
  commit_to(5);
  auto old = *store_->read();
  commit_to(9);
  ASSERT_TRUE(*store_->begin_checkpoint());
  EXPECT_FALSE(store_->run_checkpoint()->done) << "the old view stands in the way";
  store_->end_checkpoint();
  EXPECT_EQ(old->meta().applied_index, 5u);
  old.reset();
  ASSERT_TRUE(run());
  EXPECT_TRUE(mark_->done);
  EXPECT_EQ(mark_->applied, 9u);
  EXPECT_EQ(*read_all(*store_), content_of(9));
}

TEST_F(CheckpointTest, ReadersOnAllReadMarksDoNotConfuseThePin) {
  reopen({}, {.readers_max = 2});
  commit_to(3);
  auto one = *store_->read();
  commit_to(4);
  auto two = *store_->read();
  commit_to(5);
  const auto begun = *store_->begin_checkpoint();
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->applied, 5u);
  EXPECT_EQ(begun->frames, scan().committed);
  store_->end_checkpoint();
}

TEST_F(CheckpointTest, APauseIsAskedForBeforeTheHardLimitAndEndsWithTheCheckpoint) {
  constexpr uint64_t kMax = 1 << 20;
  reopen({}, {.wal_bytes_max = kMax});
  while (!store_->pause_needed()) {
    commit_to(at_ + 1);
    ASSERT_LT(store_->stats().wal_bytes, kMax);
  }
  EXPECT_GT(store_->stats().wal_bytes, kMax / 4 * 3);
  ASSERT_TRUE(run());
  EXPECT_FALSE(store_->pause_needed());
  commit_to(at_ + 1);
  EXPECT_FALSE(store_->pause_needed());
  EXPECT_LT(disk_.content(kWal)->size(), kMax);
}

TEST_F(CheckpointTest, WhoDoesNotHeedThePauseIsRefusedAtTheLimit) {
  reopen({}, {.wal_bytes_max = 1 << 18});
  Status last;
  int commits = 0;
  while (last && commits < 1000) last = commit(*store_, ++commits);
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, Code::kResourceExhausted);
  EXPECT_NE(last.error().message.find("checkpoint"), std::string::npos);
  ASSERT_TRUE(run());
  EXPECT_TRUE(commit(*store_, commits));
}

TEST_F(CheckpointTest, AFullDiskDuringTheCopyIsTriedAgainLater) {
  commit_to(15);
  disk_.set_capacity(disk_.content(kDatabase)->size() + disk_.content(kWal)->size() + 10'000);
  const Status full = run();
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::kResourceExhausted);
  ASSERT_TRUE(mark_);
  EXPECT_FALSE(mark_->done);
  disk_.set_capacity(1 << 30);
  EXPECT_EQ(*read_all(*store_), content_of(15));
  ASSERT_TRUE(run());
  EXPECT_TRUE(mark_->done);
  EXPECT_EQ(*read_all(*store_), content_of(15));
}

TEST_F(CheckpointTest, AFailedSyncIsFinal) {
  commit_to(5);
  disk_.inject({.operation = MemoryDisk::Operation::kSync});
  const Status failed = run();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(), (Error{Code::kDataLoss, kWal + ": sync: Input/output error"}));
  EXPECT_EQ(commit(*store_, 6).error(), failed.error());
}

// The rules of docs/format-store.md, one by one.
class MarkRules : public CheckpointTest {
 protected:
  // A store at commit 9, all in one log, whose first 5 are copied.
  void prepare() {
    commit_to(5);
    auto reader = *store_->read();  // keeps the log from starting anew
    ASSERT_TRUE(run());
    ASSERT_TRUE(mark_->done);
    commit_to(9);
    reader.reset();
    store_.reset();
  }
  Code open_code() {
    const auto opened = open_store(disk_, mark_);
    if (!opened) {
      EXPECT_NE(opened.error().message.find("store.db"), std::string::npos) << opened.error().message;
    }
    return opened ? Code::kOk : opened.error().code;
  }
  void cut_wal_to(uint64_t frames, uint64_t bytes = 0) {
    disk_.put(kWal, as_bytes(disk_.content(kWal)->substr(0, wal_bytes_of(frames) + bytes)));
  }
};

TEST_F(MarkRules, TheSameLogMustReachTheMarkedFrame) {
  prepare();
  const Bytes whole = *disk_.content(kWal);
  for (const bool done : {false, true}) {
    mark_->done = done;
    EXPECT_EQ(open_code(), Code::kOk);
    cut_wal_to(mark_->frames);
    EXPECT_EQ(open_code(), Code::kOk);
    cut_wal_to(mark_->frames - 1, 500);
    EXPECT_EQ(open_code(), Code::kDataLoss);
    disk_.put(kWal, as_bytes(whole));
  }
}

// A vacuum applies no entry, so that the applied index alone would not tell that its frames are missing.
TEST_F(MarkRules, AVacuumThatWasCopiedMustBeInTheLog) {
  commit_to(1);
  auto txn = *store_->begin();
  for (RowId id = 1000; id < 1020; ++id) ASSERT_TRUE(txn->put_row({.id = id, .key = "k", .value = Bytes(9000, 'v')}));
  ASSERT_TRUE(txn->commit());
  txn = *store_->begin();
  for (RowId id = 1000; id < 1020; ++id) ASSERT_TRUE(txn->delete_row(id));
  ASSERT_TRUE(txn->commit());
  const uint32_t frames = scan().committed;
  ASSERT_TRUE(store_->vacuum(100));
  ASSERT_GT(scan().committed, frames);
  ASSERT_TRUE(run());
  store_.reset();
  EXPECT_EQ(open_code(), Code::kOk);
  cut_wal_to(frames);
  EXPECT_EQ(open_code(), Code::kDataLoss);
}

TEST_F(MarkRules, NoLogIsFineOnlyWhenEverythingWasCopied) {
  prepare();
  disk_.put(kWal, {});
  EXPECT_EQ(open_code(), Code::kOk);
  ASSERT_TRUE(disk_.remove(kWal));
  EXPECT_EQ(open_code(), Code::kOk);
  mark_->done = false;
  ASSERT_TRUE(disk_.remove(kWal));
  EXPECT_EQ(open_code(), Code::kDataLoss);
}

TEST_F(MarkRules, ADamagedHeaderIsFineOnlyWhenEverythingWasCopied) {
  prepare();
  disk_.flip_bit(kWal, 8 * 17);
  EXPECT_EQ(open_code(), Code::kOk);
  EXPECT_EQ(disk_.content(kWal)->size(), 0u) << "SQLite finds what the check found: nothing";
  const auto opened = open_store(disk_, mark_);
  EXPECT_EQ(*read_all(**opened), content_of(5));
  mark_->done = false;
  EXPECT_EQ(open_code(), Code::kDataLoss);
}

TEST_F(MarkRules, AnotherLogIsFineOnlyWhenEverythingWasCopied) {
  prepare();
  ++mark_->salt2;
  EXPECT_EQ(open_code(), Code::kOk);
  mark_->done = false;
  EXPECT_EQ(open_code(), Code::kDataLoss);
}

TEST_F(MarkRules, TheStoreMustHaveAppliedWhatTheMarkSays) {
  prepare();
  mark_->applied = 9;
  EXPECT_EQ(open_code(), Code::kOk);
  mark_->applied = 10;
  EXPECT_EQ(open_code(), Code::kDataLoss);
}

}  // namespace
}  // namespace store
