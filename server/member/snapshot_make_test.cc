#include "member/snapshot_make.h"

#include <gmock/gmock.h>

#include "member/snapshot_install.h"
#include "member/test_machine.h"

namespace member {
namespace {

using test::make_snapshot;
using test::state_at;

class SnapshotMakerTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(leader_.open()); }
  void run_to(uint64_t index) {
    const Status ran = leader_.run_to(log_, index);
    ASSERT_TRUE(ran) << ran.error().message;
  }
  std::vector<std::string> files() { return *disk_.list("data/snap"); }

  MemoryDisk disk_;
  std::vector<LogEntry> log_ = apply::random_log(1);
  test::Machine leader_{disk_};
};

// Installs it on an empty member and compares with what the log says the state is.
void expect_installs(Disk& disk, const SnapshotInfo& made, const std::vector<LogEntry>& log) {
  MemoryDisk other;
  const auto file = disk.open(snapshot_path("data", made.at), OpenMode::kRead);
  ASSERT_TRUE(file);
  Bytes content(made.bytes, '\0');
  ASSERT_EQ(*(*file)->read(0, std::as_writable_bytes(std::span(content))), made.bytes);
  ASSERT_EQ(*(*file)->size(), made.bytes);
  other.put("arrived", as_bytes(content));
  test::Machine follower(other);
  ASSERT_TRUE(follower.open());
  follower.close();
  const auto installed =
      install_snapshot(other, follower.options, "arrived", identity_of(follower.options).cluster_id, 0);
  ASSERT_TRUE(installed) << installed.error().message;
  EXPECT_EQ(*installed, made.at);
  const Status opened = follower.open();
  ASSERT_TRUE(opened) << opened.error().message;
  const auto state = follower.state();
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_TRUE(*state == state_at(log, made.at.index)) << "at " << made.at.name();
  // And it goes on from there.
  const uint64_t more = std::min<uint64_t>(log.size(), made.at.index + 50);
  const Status ran = follower.run_to(log, more);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(*follower.state() == state_at(log, more));
}

TEST_F(SnapshotMakerTest, TheStateAtItsIndexWhateverHappensMeanwhile) {
  int slices_with_traffic = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SeededRandom random(seed);
    MemoryDisk disk;
    test::Machine leader(disk);
    ASSERT_TRUE(leader.open());
    const auto log = test::mixed_log(seed + 100);
    ASSERT_TRUE(leader.run_to(log, 100 + random.below(400)));
    SnapshotMaker maker(leader.maker_parts());
    const uint64_t begun_at = leader.applied();
    const auto made = make_snapshot(maker, 1, [&] {
      ++slices_with_traffic;
      switch (random.below(5)) {
        case 0:
        case 1:
          ASSERT_TRUE(leader.run_to(log, std::min<uint64_t>(log.size(), leader.applied() + random.below(20)), 3));
          break;
        case 2:
          ASSERT_TRUE(leader.settle());
          break;
        case 3:
          ASSERT_TRUE(leader.applier->step());
          break;
        default:
          ASSERT_TRUE(leader.checkpoint());
      }
    });
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->at.index, begun_at);
    expect_installs(disk, *made, log);
    ASSERT_TRUE(leader.run_to(log, log.size()));
    const auto state = leader.state();
    ASSERT_TRUE(state) << state.error().message;
    EXPECT_TRUE(*state == state_at(log, log.size())) << "compaction goes on afterwards";
    if (HasFailure()) return;
  }
  EXPECT_GT(slices_with_traffic, 50);
}

TEST_F(SnapshotMakerTest, OneThatIsRecentEnoughIsTakenAgain) {
  run_to(100);
  SnapshotMaker maker(leader_.maker_parts());
  const auto first = make_snapshot(maker, 1);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->at.index, 100u);
  run_to(200);
  EXPECT_EQ(make_snapshot(maker, 90)->at.index, 100u);
  EXPECT_EQ(make_snapshot(maker, 100)->at.index, 100u);
  EXPECT_EQ(make_snapshot(maker, 101)->at.index, 200u);
  expect_installs(disk_, *make_snapshot(maker, 101), log_);
}

TEST_F(SnapshotMakerTest, ManyAskersGetTheSameOne) {
  run_to(100);
  SnapshotMaker maker(leader_.maker_parts());
  std::vector<uint64_t> got;
  for (int i = 0; i < 5; ++i) {
    maker.ask(100, [&](Result<SnapshotInfo> made) { got.push_back(made->at.index); });
  }
  while (got.size() < 5) maker.step();
  EXPECT_EQ(got, std::vector<uint64_t>(5, 100));
  const Generation made{log_[99].term, 100};
  EXPECT_EQ(files(), std::vector<std::string>{made.name() + ".snap"});
}

TEST_F(SnapshotMakerTest, TooManyAskersAreTold) {
  SnapshotMaker maker(leader_.maker_parts());
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    maker.ask(1, [&](const Result<SnapshotInfo>& made) {
      refused += !made && made.error().code == Code::kResourceExhausted;
    });
  }
  EXPECT_EQ(refused, 36);
}

TEST_F(SnapshotMakerTest, WhatIsNotAppliedHereCannotBeMade) {
  run_to(10);
  SnapshotMaker maker(leader_.maker_parts());
  const auto made = make_snapshot(maker, 11);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kUnavailable);
  EXPECT_TRUE(make_snapshot(maker, 10)) << "and it goes on";
}

TEST_F(SnapshotMakerTest, OldOnesGoWhenNobodyPullsThem) {
  run_to(100);
  SnapshotMaker maker(leader_.maker_parts());
  const Generation first = make_snapshot(maker, 1)->at;
  run_to(200);
  const Generation second = make_snapshot(maker, 150)->at;
  maker.step();
  EXPECT_EQ(files().size(), 2u) << "somebody was just told of the first one";
  leader_.clock.now += std::chrono::seconds(50);
  maker.serve(3, encode(PieceRequest{.snapshot = first, .offset = 0, .bytes = 10}));
  maker.step();
  leader_.clock.now += std::chrono::seconds(50);
  EXPECT_NE(maker.step(), kWhenWoken);
  EXPECT_EQ(files().size(), 2u) << "somebody pulls it";
  leader_.clock.now += std::chrono::seconds(50);
  EXPECT_EQ(maker.step(), kWhenWoken);
  EXPECT_EQ(files(), std::vector<std::string>{second.name() + ".snap"});
}

TEST_F(SnapshotMakerTest, TheNewestOfAnEarlierRunIsUsedAndTheRestRemoved) {
  run_to(100);
  {
    SnapshotMaker maker(leader_.maker_parts());
    ASSERT_TRUE(make_snapshot(maker, 1));
    run_to(200);
    ASSERT_TRUE(make_snapshot(maker, 150));
  }
  disk_.put("data/snap/making.tmp", as_bytes("half"));
  disk_.put("data/snap/9-900.snap", as_bytes("not one"));
  SnapshotMaker maker(leader_.maker_parts());
  EXPECT_EQ(make_snapshot(maker, 150)->at.index, 200u);
  maker.step();
  const Generation made{log_[199].term, 200};
  EXPECT_EQ(files(), std::vector<std::string>{made.name() + ".snap"});
}

TEST_F(SnapshotMakerTest, AnswersWhoPulls) {
  run_to(100);
  std::vector<std::pair<uint64_t, Bytes>> sent;
  auto parts = leader_.maker_parts();
  parts.send = [&](uint64_t to, Bytes frame) {
    sent.emplace_back(to, std::move(frame));
    return true;
  };
  SnapshotMaker maker(std::move(parts));
  const auto made = make_snapshot(maker, 1);
  for (uint64_t peer = 2; peer < 7; ++peer) {
    maker.serve(peer, encode(PieceRequest{.snapshot = made->at, .offset = peer, .bytes = 100}));
  }
  maker.serve(8, "nonsense");
  maker.serve(9, encode(PieceRequest{.snapshot = {1, 1}, .offset = 0, .bytes = 100}));
  while (maker.step() == kNow) {
  }
  ASSERT_EQ(sent.size(), 6u);
  for (uint64_t peer = 2; peer < 7; ++peer) {
    EXPECT_EQ(sent[peer - 2].first, peer);
    EXPECT_EQ(decode_piece_answer(as_bytes(sent[peer - 2].second))->bytes.size(), 100u);
  }
  EXPECT_EQ(decode_piece_answer(as_bytes(sent[5].second))->status, PieceAnswer::Status::kGone);
}

TEST_F(SnapshotMakerTest, ACompactionMeanwhileIsPublishedAndItsRowsGoAfterwards) {
  std::vector<LogEntry> log;
  const auto add = [&](const conclavepb::Entry& entry) {
    log.push_back({.index = log.size() + 1,
                   .term = 1,
                   .type = EntryType::kCommand,
                   .data = std::make_shared<const Bytes>(entry.SerializeAsString())});
  };
  for (int i = 0; i < 1000; ++i) add(apply::Machine::command(apply::build::put("k" + std::to_string(i % 50), "v")));
  add(apply::Machine::command(apply::build::erase("k7", "", false)));
  add(apply::Machine::compaction(1002));  // all but the newest of each key
  ASSERT_TRUE(leader_.run_to(log, 1001));
  SnapshotMaker maker(leader_.maker_parts());
  const auto rows = [&] {
    size_t count = 0;
    const auto txn = *leader_.folder.store->read();
    EXPECT_TRUE(txn->scan(0, std::numeric_limits<store::RowId>::max(), true,
                          [&](const store::RowView&) { return ++count > 0; }));
    return count;
  };
  int looked = 0;
  const auto made = make_snapshot(maker, 1, [&] {
    ASSERT_TRUE(++looked != 5 || leader_.run_to(log, 1002));
    ASSERT_TRUE(leader_.settle());
    EXPECT_EQ(rows(), 1001u);
  });
  ASSERT_TRUE(made);
  EXPECT_GE(looked, 8);
  EXPECT_EQ(made->at.index, 1001u);
  EXPECT_EQ(leader_.folder.store->meta().compacted, 1002);
  ASSERT_TRUE(leader_.settle());
  EXPECT_EQ(rows(), 50u);  // a tombstone of the compacted revision stays
  expect_installs(disk_, *made, log);
}

// Why there is a hold at all: a key's rows are deleted in the order of revisions, as they are read. Whoever has read
// its value, but not yet its tombstone when both go, brings it back. Installing notices.
TEST_F(SnapshotMakerTest, WithoutTheHoldAKeyComesBack) {
  std::vector<LogEntry> log;
  const auto add = [&](const conclavepb::Entry& entry) {
    log.push_back({.index = log.size() + 1,
                   .term = 1,
                   .type = EntryType::kCommand,
                   .data = std::make_shared<const Bytes>(entry.SerializeAsString())});
  };
  add(apply::Machine::command(apply::build::put("gone", "v")));
  for (int i = 0; i < 600; ++i) add(apply::Machine::command(apply::build::put("k" + std::to_string(i), "v")));
  add(apply::Machine::command(apply::build::erase("gone", "", false)));
  add(apply::Machine::command(apply::build::put("last", "v")));
  add(apply::Machine::compaction(604));
  for (const bool with_hold : {true, false}) {
    MemoryDisk disk;
    test::Machine leader(disk);
    ASSERT_TRUE(leader.open());
    ASSERT_TRUE(leader.run_to(log, 603));
    auto parts = leader.maker_parts();
    if (!with_hold) parts.hold_compaction = [](bool) {};
    SnapshotMaker maker(std::move(parts));
    int steps = 0;
    const auto made = make_snapshot(maker, 1, [&] {
      if (++steps < 3) return;  // begun, and a slice was read
      ASSERT_TRUE(leader.run_to(log, 604));
      ASSERT_TRUE(leader.settle());
    });
    ASSERT_TRUE(made);
    test::Machine follower(disk_);
    leader_.close();
    disk_.put("arrived", as_bytes(*disk.content(snapshot_path("data", made->at))));
    const auto installed =
        install_snapshot(disk_, follower.options, "arrived", identity_of(follower.options).cluster_id, 0);
    EXPECT_EQ(installed.has_value(), with_hold);
    if (!installed) {
      EXPECT_THAT(installed.error().message, testing::HasSubstr("do not add up"));
    }
    disk_.put("data/CURRENT", as_bytes(current_line("0-0")));  // for the second round
  }
}

TEST_F(SnapshotMakerTest, AFullDiskAtAnyWriteIsToldAndSurvived) {
  run_to(300);
  uint64_t n = 0;
  for (bool failed = true; failed; ++n) {
    SCOPED_TRACE("write " + std::to_string(n + 1));
    ASSERT_LT(n, 1000u);
    const auto disk = disk_.clone();
    test::Machine leader(*disk);
    ASSERT_TRUE(leader.open());
    SnapshotMaker maker(leader.maker_parts());
    disk->inject({.operation = MemoryDisk::Operation::kWrite,
                  .nth = n + 1,
                  .code = Code::kResourceExhausted,
                  .path = "snap",
                  .partial_bytes = n * 37});
    auto made = make_snapshot(maker, 1);
    failed = !made;
    if (made) continue;
    EXPECT_EQ(made.error().code, Code::kResourceExhausted);
    EXPECT_FALSE(leader.failure.failed());
    EXPECT_TRUE(disk->list("data/snap")->empty()) << "gives its space back";
    ASSERT_TRUE(leader.run_to(log_, 320)) << "writes go on";
    made = make_snapshot(maker, 1);
    ASSERT_TRUE(made) << "and there is space again";
    expect_installs(*disk, *made, log_);
  }
  EXPECT_GE(n, 4u);
}

TEST_F(SnapshotMakerTest, DamageOfTheStoreStopsTheMember) {
  run_to(300);
  ASSERT_TRUE(leader_.checkpoint());
  const std::string database = "data/store/0-0/store.db";
  for (uint64_t byte = 2 * 4096 + 500; byte < disk_.content(database)->size(); byte += 4096) {
    disk_.flip_bit(database, byte * 8);
  }
  run_to(301);  // readers have to read anew
  SnapshotMaker maker(leader_.maker_parts());
  const auto made = make_snapshot(maker, 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kDataLoss);
  EXPECT_TRUE(leader_.failure.failed());
}

}  // namespace
}  // namespace member
