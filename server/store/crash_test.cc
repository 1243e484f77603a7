// A power cut, a failing call and a full disk at every single disk call of a history of commits and checkpoints.
#include <gtest/gtest.h>

#include "store/test_support.h"

namespace store {
namespace {

using test::commit;
using test::content_of;
using test::open_store;
using test::read_all;
using Operation = MemoryDisk::Operation;

constexpr int kCommits = 42;

// What the Raft log would hold: the last mark, durable when it is handed over.
struct History {
  std::optional<Mark> mark;
  int committed = 0;  // the last commit that was answered
};

// Commits up to kCommits with checkpoints between: in a pause, beside traffic, and with a vacuum. Goes on from where
// the store is; ends with the first error.
Status run(MemoryDisk& disk, History& history) {
  TRY_ASSIGN(const auto store, open_store(disk, history.mark));
  const auto log = [&](const Mark& mark) { history.mark = mark; };
  int c = static_cast<int>(store->meta().applied_index);
  const auto next = [&]() -> Status {
    TRY(commit(*store, ++c));
    history.committed = c;
    return {};
  };
  while (c < kCommits) {
    TRY(next());
    if (c % 5 == 0) TRY(store->vacuum(3));
    if (c % 4 == 0) TRY(test::checkpoint(*store, log));
    if (c % 6 == 3) {
      TRY_ASSIGN(const auto begun, store->begin_checkpoint());
      TRY(next());
      if (begun) {
        log(*begun);
        TRY_ASSIGN(const Mark copied, store->run_checkpoint());
        log(copied);
      }
      TRY(next());
      store->end_checkpoint();
    }
  }
  return {};
}

// The store after a crash: some commit that was begun, not older than the mark.
void expect_good(MemoryDisk& disk, const History& history, const std::string& where) {
  const auto store = open_store(disk, history.mark);
  ASSERT_TRUE(store) << where << ": " << store.error().message;
  const auto content = read_all(**store);
  ASSERT_TRUE(content) << where << ": " << content.error().message;
  const auto applied = static_cast<int>(content->meta.applied_index);
  EXPECT_GE(applied, history.mark ? static_cast<int>(history.mark->applied) : 0) << where;
  EXPECT_LE(applied, history.committed + 1) << where;
  EXPECT_TRUE(*content == content_of(applied)) << where << ": at commit " << applied;
}

class CrashTest : public testing::TestWithParam<int> {};

TEST(StoreHistory, RunsWithoutFaults) {
  MemoryDisk disk;
  test::make_folder(disk);
  History history;
  ASSERT_TRUE(run(disk, history));
  EXPECT_EQ(history.committed, kCommits);
  EXPECT_GT(history.mark->applied, 20u);
  expect_good(disk, history, "");
}

// Random losses (each with its own seed), and the two ends: everything unsynced is gone, or all is there.
TEST_P(CrashTest, APowerCutAtEveryChangeLosesNothingThatWasMarked) {
  MemoryDisk whole;
  test::make_folder(whole);
  const uint64_t first = whole.changes();
  History all;
  ASSERT_TRUE(run(whole, all));
  const uint64_t changes = whole.changes();
  ASSERT_GT(changes, 700u);
  for (uint64_t cut = first; cut < changes; ++cut) {
    const std::string where = "cut at change " + std::to_string(cut) + " of run " + std::to_string(GetParam());
    SeededRandom random(cut * 1000 + static_cast<uint64_t>(GetParam()));
    MemoryDisk disk;
    test::make_folder(disk);
    disk.cut_power_at(cut);
    History history;
    ASSERT_FALSE(run(disk, history)) << where;
    const auto loss = GetParam() == 0   ? MemoryDisk::Loss::kEverything
                      : GetParam() == 1 ? MemoryDisk::Loss::kNothing
                                        : MemoryDisk::Loss::kRandom;
    disk.crash(random, loss);
    expect_good(disk, history, where);
    // It goes on, and a second cut at the end finds everything well.
    history.committed = 0;
    const Status resumed = run(disk, history);
    ASSERT_TRUE(resumed) << where << ": " << resumed.error().message;
    history.committed = kCommits;
    disk.crash(random);
    expect_good(disk, history, where + ", second crash");
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Losses, CrashTest, testing::Range(0, 4));

// The nth write or sync fails: the store stops, and a restart (without power cut) finds a commit.
TEST(StoreFaults, AFailingCallStopsTheStoreAndHarmsNothing) {
  for (const Operation operation :
       {Operation::kWrite, Operation::kSync, Operation::kTruncate, Operation::kOpen, Operation::kRead,
        Operation::kRename, Operation::kSyncDirectory, Operation::kSize}) {
    MemoryDisk whole;
    test::make_folder(whole);
    History all;
    ASSERT_TRUE(run(whole, all));
    const uint64_t calls = whole.calls(operation);
    const uint64_t step = operation == Operation::kRead ? 7 : 1;
    for (uint64_t n = 1; n <= calls; n += step) {
      const std::string where = "call " + std::to_string(n) + " of kind " + std::to_string(static_cast<int>(operation));
      MemoryDisk disk;
      test::make_folder(disk);
      const uint64_t before = disk.calls(operation);
      if (n <= before) continue;
      disk.inject({.operation = operation, .nth = n - before, .partial_bytes = n % 5000});
      History history;
      const Status ended = run(disk, history);
      ASSERT_FALSE(ended) << where;
      EXPECT_EQ(ended.error().code, Code::kDataLoss) << where << ended.error().message;
      disk.restart();
      expect_good(disk, history, where);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// A failed sync leaves its data in the system's cache, where a restart finds it as if it were durable. What is marked
// after that must be: the power goes once the marks are in the log.
TEST(StoreFaults, WhatAFailedSyncLeftIsMadeDurableBeforeItIsMarked) {
  uint64_t marked = 0;
  for (uint64_t n = 1;; ++n) {
    const std::string where = "sync " + std::to_string(n);
    MemoryDisk disk;
    test::make_folder(disk);
    disk.inject({.operation = Operation::kSync, .nth = n});
    History history;
    if (run(disk, history)) break;
    disk.restart();
    {
      const auto store = open_store(disk, history.mark);
      ASSERT_TRUE(store) << where << ": " << store.error().message;
      int c = static_cast<int>((*store)->meta().applied_index);
      for (const int last = c + 3; c < last;) {
        ASSERT_TRUE(commit(**store, ++c)) << where;
        history.committed = c;
        const auto begun = (*store)->begin_checkpoint();
        ASSERT_TRUE(begun) << where << ": " << begun.error().message;
        if (*begun) {
          history.mark = **begun;
          ++marked;
          if (n % 2 == 0) history.mark = *(*store)->run_checkpoint();
        }
        (*store)->end_checkpoint();
      }
    }
    SeededRandom random(n);
    disk.cut_power();
    disk.crash(random, MemoryDisk::Loss::kEverything);
    expect_good(disk, history, where);
    if (HasFailure()) return;
  }
  EXPECT_GT(marked, 30U);
}

// The disk is full at the nth write; after a refusal there is room again and the same commit is tried again.
TEST(StoreFaults, AFullDiskAtEveryWriteIsSurvivedInPlace) {
  MemoryDisk whole;
  test::make_folder(whole);
  History all;
  ASSERT_TRUE(run(whole, all));
  const uint64_t writes = whole.calls(Operation::kWrite);
  for (uint64_t n = 1; n <= writes; ++n) {
    const std::string where = "full at write " + std::to_string(n);
    MemoryDisk disk;
    disk.inject(
        {.operation = Operation::kWrite, .nth = n, .code = Code::kResourceExhausted, .partial_bytes = n * 517 % 5000});
    test::make_folder(disk);
    auto opened = open_store(disk);
    if (!opened) {
      ASSERT_EQ(opened.error().code, Code::kResourceExhausted) << where << opened.error().message;
      opened = open_store(disk);
      ASSERT_TRUE(opened) << where << opened.error().message;
    }
    const auto store = std::move(*opened);
    std::optional<Mark> mark;
    int refused = 0;
    for (int c = 1; c <= kCommits;) {
      const Status done = commit(*store, c);
      if (!done) {
        ASSERT_EQ(done.error().code, Code::kResourceExhausted) << where << done.error().message;
        ASSERT_EQ(++refused, 1) << where;
        continue;
      }
      if (c % 4 == 0) {
        const Status copied = test::checkpoint(*store, [&](const Mark& m) { mark = m; });
        if (!copied) {
          ASSERT_EQ(copied.error().code, Code::kResourceExhausted) << where << copied.error().message;
        }
      }
      ++c;
    }
    EXPECT_TRUE(*read_all(*store) == content_of(kCommits)) << where;
    disk.restart();
    History history{mark, kCommits};
    expect_good(disk, history, where);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace store
