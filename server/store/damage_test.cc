// Single flipped bits and lost ends in the database and in the -wal, while the store is closed and while it is open:
// what is read afterwards is refused, or exactly the content of a commit that is not older than the last mark. Never
// wrong rows.
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

constexpr int kFlips = 1000;

struct Outcomes {
  int refused_at_open = 0;
  int refused_at_read = 0;
  int exact = 0;
};

class DamageTest : public testing::Test {
 protected:
  void SetUp() override {
    test::make_folder(disk_);
    store_ = std::move(*open_store(disk_));
  }
  void commit_to(int last) {
    while (at_ < last) ASSERT_TRUE(commit(*store_, ++at_));
  }
  void checkpoint() {
    ASSERT_TRUE(test::checkpoint(*store_, [this](const Mark& mark) { mark_ = mark; }));
    ASSERT_TRUE(mark_->done);
  }
  // Copies what there is, with `more` commits between the pin and the copy.
  void checkpoint_beside(int more) {
    mark_ = *store_->begin_checkpoint();
    ASSERT_TRUE(mark_);
    commit_to(at_ + more);
    mark_ = *store_->run_checkpoint();
    store_->end_checkpoint();
    ASSERT_FALSE(mark_->done);
  }
  void check(MemoryDisk& disk, Outcomes& outcomes, const std::string& what) {
    const auto opened = open_store(disk, mark_);
    if (!opened) {
      ASSERT_EQ(opened.error().code, Code::kDataLoss) << what << opened.error().message;
      ++outcomes.refused_at_open;
      return;
    }
    check_content(**opened, outcomes, what);
  }
  void check_content(Store& store, Outcomes& outcomes, const std::string& what) {
    const auto content = read_all(store);
    if (!content) {
      ASSERT_EQ(content.error().code, Code::kDataLoss) << what << content.error().message;
      ++outcomes.refused_at_read;
      return;
    }
    const auto applied = static_cast<int>(content->meta.applied_index);
    ASSERT_GE(applied, static_cast<int>(mark_->applied)) << what;
    ASSERT_LE(applied, at_) << what;
    ASSERT_TRUE(*content == content_of(applied)) << what << ": wrong rows at commit " << applied;
    ++outcomes.exact;
  }
  Outcomes flip_closed(const std::string& file, uint64_t from = 0) {
    store_.reset();
    Outcomes outcomes;
    const uint64_t bits = 8 * (disk_.content(file)->size() - from);
    for (int i = 0; i < kFlips && !HasFatalFailure(); ++i) {
      const uint64_t bit = 8 * from + random_.below(bits);
      const auto disk = disk_.clone();
      disk->flip_bit(file, bit);
      check(*disk, outcomes, "bit " + std::to_string(bit));
    }
    RecordProperty("exact", outcomes.exact);
    return outcomes;
  }

  MemoryDisk disk_;
  SeededRandom random_{11};
  std::unique_ptr<Store> store_;
  int at_ = 0;
  std::optional<Mark> mark_;
};

TEST_F(DamageTest, FlipsInTheDatabase) {
  commit_to(40);
  checkpoint();
  commit_to(42);
  const Outcomes outcomes = flip_closed(kDatabase);
  EXPECT_GT(outcomes.refused_at_read + outcomes.refused_at_open, kFlips / 4) << "many pages are read from the -wal";
}

TEST_F(DamageTest, FlipsInTheDatabaseWithoutItsWal) {
  commit_to(40);
  checkpoint();
  store_.reset();
  disk_.put(kWal, {});
  const Outcomes outcomes = flip_closed(kDatabase);
  EXPECT_EQ(outcomes.exact, 0) << "every page is in use or free, and the check of the whole reads both";
}

TEST_F(DamageTest, FlipsInAPartlyCopiedWal) {
  commit_to(20);
  ASSERT_TRUE(store_->vacuum(5));  // a commit that applies nothing: only the frame tells of it
  checkpoint_beside(5);
  commit_to(40);
  const Outcomes outcomes = flip_closed(kWal);
  EXPECT_GT(outcomes.refused_at_open, kFlips / 4) << "in front of the mark";
  EXPECT_GT(outcomes.exact, kFlips / 4) << "behind it";
}

TEST_F(DamageTest, FlipsInAFullyCopiedWal) {
  commit_to(40);
  checkpoint();
  const Outcomes outcomes = flip_closed(kWal);
  EXPECT_GT(outcomes.refused_at_open, kFlips * 9 / 10);
  EXPECT_GT(flip_closed(kWal, disk_.content(kWal)->size() - kFrameBytes).refused_at_open, 0);
}

TEST_F(DamageTest, FlipsInTheHeaderOfTheWal) {
  commit_to(20);
  checkpoint_beside(5);
  store_.reset();
  disk_.put(kWal, as_bytes(disk_.content(kWal)->substr(0, wal_bytes_of(mark_->frames))));
  for (uint64_t bit = 0; bit < 8 * kWalHeaderBytes; ++bit) {
    const auto disk = disk_.clone();
    disk->flip_bit(kWal, bit);
    ASSERT_FALSE(open_store(*disk, mark_)) << bit;
  }
}

TEST_F(DamageTest, FlipsInAWalThatWasStartedAnew) {
  commit_to(30);
  checkpoint();
  commit_to(36);
  const Outcomes outcomes = flip_closed(kWal);
  EXPECT_EQ(outcomes.exact, kFlips) << "all of the new log may be lost: it is above the mark";
}

TEST_F(DamageTest, LostEnds) {
  commit_to(20);
  checkpoint_beside(5);
  commit_to(40);
  store_.reset();
  Outcomes outcomes;
  for (const std::string& file : {kWal, kDatabase}) {
    const Bytes whole = *disk_.content(file);
    for (int i = 0; i < 200; ++i) {
      const auto disk = disk_.clone();
      const size_t bytes = random_.below(whole.size());
      disk->put(file, as_bytes(whole.substr(0, bytes)));
      check(*disk, outcomes, file + " cut to " + std::to_string(bytes));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(outcomes.refused_at_open, 50);
  EXPECT_GT(outcomes.exact, 50);
}

// The -wal has all pages, but an empty database would be a new one to SQLite.
TEST_F(DamageTest, AnEmptyDatabaseIsRefusedAndNothingIsChanged) {
  commit_to(5);
  store_.reset();
  disk_.put(kDatabase, {});
  const Bytes wal = *disk_.content(kWal);
  ASSERT_FALSE(wal.empty());
  const auto opened = open_store(disk_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kDataLoss);
  ASSERT_TRUE(disk_.content(kWal)) << "is gone";
  EXPECT_EQ(*disk_.content(kWal), wal);
}

// The medium changes under a store that is open. What SQLite has in its cache is still good.
TEST_F(DamageTest, FlipsUnderAnOpenStore) {
  commit_to(20);
  checkpoint();
  commit_to(22);
  store_.reset();
  Outcomes outcomes;
  for (const std::string& file : {kWal, kDatabase}) {
    for (int i = 0; i < 300; ++i) {
      const auto disk = disk_.clone();
      auto opened = open_store(*disk, mark_, {.cache_bytes = 64 * 1024});
      ASSERT_TRUE(opened);
      const uint64_t bit = random_.below(8 * disk->content(file)->size());
      disk->flip_bit(file, bit);
      check_content(**opened, outcomes, file + " bit " + std::to_string(bit));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(outcomes.refused_at_read, 100);
}

}  // namespace
}  // namespace store
