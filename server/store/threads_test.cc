// Apply, readers and the checkpoint at once, on the machine's disk. Run under the thread sanitizer as well.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "store/test_support.h"

// SQLite orders its accesses to the shared memory by locks and barriers of our VFS, but is not instrumented, and its
// memcpy()s are seen without them.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): the sanitizer gives the name
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libsqlite3.so.0"; }

namespace store {
namespace {

constexpr int kReaders = 3;
constexpr int kCommits = 3000;
constexpr uint64_t kWalBytesMax = 4 << 20;

class ThreadsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "store_threads_test.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    reopen({});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void reopen(std::optional<Mark> mark) {
    store_.reset();
    auto opened = Store::open(
        real_disk(),
        {.directory = folder_, .cache_bytes = 1 << 20, .wal_bytes_max = kWalBytesMax, .readers_max = kReaders + 1},
        mark);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }

  // Rows of the newest commits are all there and right; the view does not move while it is read.
  void read_until_done() {
    SeededRandom random(static_cast<uint64_t>(reads_.fetch_add(1)));
    uint64_t last = 0;
    while (!done_) {
      auto txn = store_->read();
      ASSERT_TRUE(txn) << txn.error().message;
      const uint64_t applied = (*txn)->meta().applied_index;
      ASSERT_GE(applied, last);
      last = applied;
      ASSERT_EQ((*txn)->meta().content_hash, applied == 0 ? 0 : ~applied);
      const int at = static_cast<int>(applied);
      int rows = 0;
      const RowId first = test::row_id(test::deleted_up_to(at) + 1, 0);
      const auto scanned = (*txn)->scan(0, std::numeric_limits<RowId>::max(), false, [&](const RowView& row) {
        EXPECT_GE(row.id, first);
        EXPECT_EQ(row.value, test::value_of(row.id));
        ++rows;
        return true;
      });
      ASSERT_TRUE(scanned) << scanned.error().message;
      ASSERT_EQ(rows, (at - test::deleted_up_to(at)) * test::kRowsPerCommit);
      for (int i = 0; i < 8 && at > 0; ++i) {
        const RowId id = test::row_id(at - static_cast<int>(random.below(static_cast<uint64_t>(at))), 1);
        const auto row = (*txn)->row(id);
        ASSERT_TRUE(row) << row.error().message;
        ASSERT_EQ(row->has_value(), id >= first) << id;
        if (*row) {
          ASSERT_EQ((*row)->value, test::value_of(id));
        }
      }
      ASSERT_FALSE((*txn)->row(test::row_id(at + 1, 0))->has_value());
      reads_.fetch_add(1);
    }
  }

  std::string folder_;
  std::unique_ptr<Store> store_;
  std::atomic<bool> done_{false};
  std::atomic<int> reads_{0};
};

TEST_F(ThreadsTest, ReadersSeeWholeCommitsBesideCommitsAndCheckpoints) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kReaders; ++i) threads.emplace_back([this] { read_until_done(); });
  std::optional<Mark> mark;
  std::atomic<int> passes{0};
  Mutex mutex;  // stands for the pause of apply
  threads.emplace_back([&] {
    while (!done_) {
      const auto log = [&](const Mark& m) { mark = m; };
      if (store_->stats().wal_bytes < kWalBytesMax / 4) {
        std::this_thread::yield();
        continue;
      }
      const Status beside = test::checkpoint(*store_, log);
      ASSERT_TRUE(beside) << beside.error().message;
      MutexLock paused(mutex);
      const Status in_pause = test::checkpoint(*store_, log);
      ASSERT_TRUE(in_pause) << in_pause.error().message;
      ++passes;
    }
  });
  uint64_t longest = 0;
  for (int c = 1; c <= kCommits; ++c) {
    while (store_->pause_needed()) std::this_thread::yield();
    MutexLock lock(mutex);
    const Status committed = test::commit(*store_, c);
    ASSERT_TRUE(committed) << committed.error().message;
    if (c % 100 == 0) {
      ASSERT_TRUE(store_->vacuum(5));
    }
    longest = std::max(longest, store_->stats().wal_bytes);
  }
  done_ = true;
  for (auto& thread : threads) thread.join();
  EXPECT_GT(passes, 3);
  EXPECT_GT(reads_, 20);
  EXPECT_LT(longest, kWalBytesMax);
  const auto content = test::read_all(*store_);
  ASSERT_TRUE(content) << content.error().message;
  EXPECT_TRUE(*content == test::content_of(kCommits));
  reopen(mark);
  EXPECT_TRUE(*test::read_all(*store_) == test::content_of(kCommits));
}

}  // namespace
}  // namespace store
