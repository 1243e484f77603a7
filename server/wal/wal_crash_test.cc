// Power cuts, failing calls and full disks at every place where they can happen.
#include <gtest/gtest.h>

#include "wal/segment.h"
#include "wal/wal_test_model.h"

namespace wal {
namespace {

// Deterministic work: creates the log if there is none, appends, drops, prepares. Keeps what was acknowledged, and what
// the log holds if the last append, which failed, reached the disk all the same.
struct Work {
  Model acknowledged;
  std::optional<Model> perhaps;
  uint64_t droppable = 0;
  bool created = false;

  Status run(Disk& disk, uint64_t seed, int batches) {
    SeededRandom random(seed);
    auto wal = create_small(disk);
    if (!wal) return fail(wal.error());
    created = true;
    return go_on(**wal, random, batches);
  }

  Status go_on(Wal& wal, SeededRandom& random, int batches) {
    for (int i = 0; i < batches; ++i) {
      const WalBatch batch = random_batch(acknowledged, random, 500);
      perhaps = acknowledged;
      perhaps->apply(batch);
      TRY(wal.append(batch));
      acknowledged = *perhaps;
      perhaps.reset();
      if (i % 7 == 0) TRY(wal.prepare());
      if (i % 9 == 8) {
        droppable = std::max(droppable, acknowledged.hard_state.commit);
        TRY(wal.drop_before(acknowledged.hard_state.commit));
      }
    }
    return {};
  }

  // The log after a crash holds all that was acknowledged. Takes over which of the two it is.
  void expect_kept(const WalContents& contents) {
    if (perhaps && perhaps->equals(contents, droppable)) acknowledged = *perhaps;
    ASSERT_TRUE(acknowledged.equals(contents, droppable));
    perhaps.reset();
  }
};

void reopen_and_go_on(MemoryDisk& disk, Work& work, SeededRandom& random) {
  if (!work.created) {
    const bool exists = *Wal::exists(disk, kFolder);
    if (!exists) {
      ASSERT_TRUE(work.run(disk, random.next(), 5));
    }
  }
  for (int round = 0; round < 2; ++round) {
    auto opened = Wal::open(disk, small_segments());
    ASSERT_TRUE(opened) << opened.error().message;
    work.expect_kept(opened->contents);
    if (testing::Test::HasFatalFailure()) return;
    ASSERT_TRUE(work.go_on(*opened->wal, random, 4));
    opened->wal.reset();
    disk.crash(random);
  }
}

TEST(WalCrash, APowerCutAtEveryCallLosesNothingAcknowledged) {
  constexpr int kBatches = 60;
  MemoryDisk whole;
  ASSERT_TRUE(Work().run(whole, 1, kBatches));
  ASSERT_GT(whole.changes(), 150u);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    for (uint64_t change = 0; change < whole.changes(); ++change) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " change " + std::to_string(change));
      SeededRandom random(seed * 1000 + change);
      MemoryDisk disk;
      disk.cut_power_at(change);
      Work work;
      ASSERT_FALSE(work.run(disk, 1, kBatches));
      disk.crash(random);
      reopen_and_go_on(disk, work, random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// The start itself may be cut short as well, again and again.
TEST(WalCrash, APowerCutDuringEachCallOfOpenLosesNothing) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SeededRandom random(seed);
    MemoryDisk disk;
    disk.cut_power_at(60 + random.below(60));
    Work work;
    ASSERT_FALSE(work.run(disk, seed, 100));
    ASSERT_TRUE(work.created);
    disk.crash(random);
    for (uint64_t cut = 0;; ++cut) {
      ASSERT_LT(cut, 50u);
      SCOPED_TRACE("seed " + std::to_string(seed) + " cut " + std::to_string(cut));
      disk.cut_power_at(disk.changes() + cut);
      auto opened = Wal::open(disk, small_segments());
      if (opened) {
        work.expect_kept(opened->contents);
        break;
      }
      disk.crash(random);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
}

// One call fails, the process goes on: everything later is refused; after a start everything acknowledged is there,
// also when the power goes after that (a failed sync leaves its data in the system's cache only).
TEST(WalFaults, AFailingCallOfEachKindIsFinal) {
  using Operation = MemoryDisk::Operation;
  int failures = 0;
  for (const Operation operation : {Operation::kWrite, Operation::kSync, Operation::kRename, Operation::kRemove,
                                    Operation::kSyncDirectory, Operation::kAllocate, Operation::kOpen}) {
    for (uint64_t nth = 1; nth < 400; ++nth) {
      SCOPED_TRACE("operation " + std::to_string(static_cast<int>(operation)) + " nth " + std::to_string(nth));
      SeededRandom random(nth);
      MemoryDisk disk;
      disk.inject({.operation = operation, .nth = nth, .partial_bytes = random.below(300)});
      Work work;
      auto wal = create_small(disk);
      if (!wal) continue;
      work.created = true;
      SeededRandom work_random(2);
      const Status status = work.go_on(**wal, work_random, 80);
      if (status) break;  // fewer than `nth` calls of this kind
      ++failures;
      EXPECT_EQ(status.error().code, Code::kDataLoss);
      EXPECT_EQ((*wal)->append({}).error(), status.error());
      EXPECT_EQ((*wal)->seal().error(), status.error());
      EXPECT_EQ((*wal)->drop_before(1).error(), status.error());
      EXPECT_EQ((*wal)->prepare().error(), status.error());
      wal->reset();
      disk.restart();
      reopen_and_go_on(disk, work, random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(failures, 200);
}

TEST(WalFaults, AfterAFailedSyncAndAStartTheLastBatchIsDurable) {
  MemoryDisk disk;
  auto wal = *create_small(disk);
  ASSERT_TRUE(wal->append({.entries = {make_entry(1, 1, "one")}}));
  disk.inject({.operation = MemoryDisk::Operation::kSync});
  ASSERT_FALSE(wal->append({.entries = {make_entry(2, 1, "two")}}));
  disk.restart();
  ASSERT_EQ(Wal::open(disk, small_segments())->contents.last_index(), 2u);  // from now on the member relies on it
  SeededRandom random(1);
  disk.crash(random, MemoryDisk::Loss::kEverything);
  EXPECT_EQ(Wal::open(disk, small_segments())->contents.last_index(), 2u);
}

TEST(WalFaults, AFullDiskRefusesTheBatchAndGoesOnWhenThereIsSpace) {
  for (uint64_t room = 0; room < 3 * kSegmentBytesMin; room += 512) {
    SCOPED_TRACE(room);
    SeededRandom random(room + 1);
    MemoryDisk disk;
    Work work;
    auto wal = *create_small(disk);
    work.created = true;
    disk.set_capacity(kSegmentBytesMin + room);
    SeededRandom work_random(3);
    int refused = 0;
    for (int i = 0; i < 60; ++i) {
      const WalBatch batch = random_batch(work.acknowledged, work_random, 500);
      Status status = wal->append(batch);
      if (!status) {
        ++refused;
        ASSERT_EQ(status.error().code, Code::kResourceExhausted);
        ASSERT_EQ(wal->append(batch).error().code, Code::kResourceExhausted);
        disk.set_capacity(disk.free_bytes("/").value() + (i + 4) * 2 * kSegmentBytesMin);
        status = wal->append(batch);
      }
      ASSERT_TRUE(status) << status.error().message;
      work.acknowledged.apply(batch);
    }
    EXPECT_GT(refused, 0);
    wal.reset();
    disk.crash(random);
    reopen_and_go_on(disk, work, random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// File systems that copy on write may have no room for blocks that are there already.
TEST(WalFaults, AWriteThatFindsNoSpaceIsMadeAgain) {
  for (uint64_t nth = 1; nth < 40; ++nth) {
    SCOPED_TRACE(nth);
    SeededRandom random(nth);
    MemoryDisk disk;
    Work work;
    auto wal = *create_small(disk);
    work.created = true;
    disk.inject({.operation = MemoryDisk::Operation::kWrite,
                 .nth = nth,
                 .code = Code::kResourceExhausted,
                 .path = ".wal",
                 .partial_bytes = random.below(600)});
    int refused = 0;
    for (int i = 0; i < 60; ++i) {
      const WalBatch batch = random_batch(work.acknowledged, random, 500);
      Status status = wal->append(batch);
      if (!status) {
        ++refused;
        ASSERT_EQ(status.error().code, Code::kResourceExhausted);
        if (nth % 2 == 0) {  // it never comes to that
          work.perhaps = work.acknowledged;
          work.perhaps->apply(batch);
          break;
        }
        status = wal->append(batch);
      }
      ASSERT_TRUE(status) << status.error().message;
      work.acknowledged.apply(batch);
    }
    EXPECT_EQ(refused, 1);
    wal.reset();
    disk.crash(random);
    reopen_and_go_on(disk, work, random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// As when all descriptors of the process are taken: nothing was done, and the same call goes through later.
TEST(WalFaults, WithoutAFreeDescriptorItWaitsAndLosesNothing) {
  using Operation = MemoryDisk::Operation;
  for (const Operation operation : {Operation::kOpen, Operation::kSyncDirectory}) {
    for (uint64_t nth = 1; nth < 12; ++nth) {
      SCOPED_TRACE(nth);
      SeededRandom random(nth);
      MemoryDisk disk;
      Work work;
      auto wal = *create_small(disk);
      work.created = true;
      disk.inject({.operation = operation, .nth = nth, .code = Code::kResourceExhausted, .repeat = true});
      int refused = 0;
      const auto passes = [&](auto call) {
        Status status = call();
        if (status) return true;
        ++refused;
        EXPECT_EQ(status.error().code, Code::kResourceExhausted) << status.error().message;
        EXPECT_FALSE(call()) << "still none";
        if (nth % 3 == 0) return false;  // it never comes to that
        disk.clear_faults();
        status = call();
        EXPECT_TRUE(status) << status.error().message;
        return status.has_value();
      };
      bool passed = true;
      for (int i = 0; passed && i < 60; ++i) {
        const WalBatch batch = random_batch(work.acknowledged, random, 500);
        work.perhaps = work.acknowledged;
        work.perhaps->apply(batch);
        passed = passes([&] { return wal->append(batch); });
        if (!passed) break;
        work.acknowledged = *work.perhaps;
        work.perhaps.reset();
        if (i % 9 != 8) continue;
        work.droppable = std::max(work.droppable, work.acknowledged.hard_state.commit);
        passed = passes([&] { return wal->drop_before(work.acknowledged.hard_state.commit); });
      }
      EXPECT_EQ(refused, 1);
      wal.reset();
      disk.crash(random);
      reopen_and_go_on(disk, work, random);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(WalFaults, ASyncThatFindsNoSpaceIsFinalAndNotToBeWaitedFor) {
  MemoryDisk disk;
  auto wal = *create_small(disk);
  disk.inject({.operation = MemoryDisk::Operation::kSync, .code = Code::kResourceExhausted});
  const Status status = wal->append({.entries = {make_entry(1, 1, "one")}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDataLoss);
  EXPECT_NE(status.error().message.find("No space left"), std::string::npos);
  EXPECT_EQ(wal->append({}).error(), status.error());
}

TEST(WalFaults, CreateCanBeRepeatedAfterAnyFailure) {
  for (uint64_t change = 0;; ++change) {
    SeededRandom random(change + 1);
    MemoryDisk disk;
    disk.cut_power_at(change);
    if (create_small(disk)) break;
    disk.crash(random);
    if (*Wal::exists(disk, kFolder)) {
      EXPECT_TRUE(Wal::open(disk, small_segments()));
    } else {
      EXPECT_TRUE(create_small(disk));
    }
  }
}

}  // namespace
}  // namespace wal
