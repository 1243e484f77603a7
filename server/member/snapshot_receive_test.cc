// The whole way: a leader's stage makes and hands out, a follower's fetches and builds, over a network that loses,
// repeats and reorders; then the follower switches.
#include "member/snapshot_receive.h"

#include <gmock/gmock.h>

#include "member/test_machine.h"

namespace member {
namespace {

using test::state_at;

constexpr uint64_t kLeader = 1;
constexpr uint64_t kFollower = 2;

class SnapshotReceiverTest : public testing::Test {
 protected:
  struct Frame {
    bool to_leader = false;
    Bytes bytes;
  };

  void begin(uint64_t seed) {
    random_ = SeededRandom(seed);
    ASSERT_TRUE(leader_.open());
    ASSERT_TRUE(leader_.run_to(log_, 300));
    ASSERT_TRUE(follower_.open());
    ASSERT_TRUE(follower_.run_to(log_, 50));
    start_leader();
    start_follower();
  }
  void start_leader() {
    auto parts = leader_.maker_parts();
    parts.send = [this](uint64_t to, Bytes frame) {
      EXPECT_EQ(to, kFollower);
      frames_.push_back({false, std::move(frame)});
      return true;
    };
    maker_.emplace(std::move(parts));
  }
  void start_follower() {
    receiver_.emplace(SnapshotReceiver::Parts{.clock = follower_.clock,
                                              .failure = follower_.failure,
                                              .disk = follower_disk_,
                                              .options = follower_.options,
                                              .cluster_id = identity_of(follower_.options).cluster_id,
                                              .piece_bytes = 20'000,
                                              .send =
                                                  [this](uint64_t to, Bytes frame) {
                                                    EXPECT_EQ(to, kLeader);
                                                    frames_.push_back({true, std::move(frame)});
                                                    return true;
                                                  },
                                              .built = [this](SnapshotReceiver::Built built) { built_ = built; },
                                              .failed = [this](Generation, Error error) { failed_ = error; }});
  }
  // One step of somebody, or a frame that arrives, is lost, comes twice or out of order.
  void step() {
    switch (random_.below(3)) {
      case 0:
        maker_->step();
        return;
      case 1:
        receiver_->step();
        follower_.clock.now += std::chrono::milliseconds(random_.below(50));
        return;
      default:
        break;
    }
    if (frames_.empty()) return;
    const auto pick = frames_.begin() + static_cast<ptrdiff_t>(random_.below(frames_.size()));
    Frame frame = *pick;
    const uint64_t fate = random_.below(10);
    if (fate != 0) frames_.erase(pick);  // else it comes again
    if (fate == 1) return;               // lost
    EXPECT_EQ(is_piece_request(as_bytes(frame.bytes)), frame.to_leader);
    if (frame.to_leader) {
      maker_->serve(kFollower, std::move(frame.bytes));
    } else {
      receiver_->take(kLeader, std::move(frame.bytes));
    }
  }
  void offer() {
    maker_->ask(300, [this](const Result<SnapshotInfo>& made) {
      ASSERT_TRUE(made) << made.error().message;
      offered_ = made->at;
    });
    for (int i = 0; !offered_; ++i) {
      ASSERT_LT(i, 10'000);
      maker_->step();
    }
    receiver_->offer(kLeader, *offered_);
  }
  void run_until_over() {
    for (int i = 0; !built_ && !failed_; ++i) {
      ASSERT_LT(i, 200'000);
      step();
    }
  }
  // As the member does it.
  void switch_over() {
    ASSERT_TRUE(built_);
    EXPECT_EQ(built_->membership, follower_.folder.store->meta().membership);
    receiver_.reset();
    const uint64_t applied = follower_.applied();
    follower_.close();
    ASSERT_TRUE(put_in_force(follower_disk_, follower_.options, built_->at, applied));
    const Status opened = follower_.open();
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(*follower_.state() == state_at(log_, built_->at.index));
    EXPECT_EQ(follower_disk_.list("data/snap")->size(), 0u) << "what was fetched is gone";
    EXPECT_EQ(follower_disk_.list("data/store")->size(), 1u);
  }

  const std::vector<LogEntry> log_ = test::mixed_log(5);
  SeededRandom random_{1};
  MemoryDisk leader_disk_;
  MemoryDisk follower_disk_;
  test::Machine leader_{leader_disk_};
  test::Machine follower_{follower_disk_};
  std::vector<Frame> frames_;
  std::optional<SnapshotMaker> maker_;
  std::optional<SnapshotReceiver> receiver_;
  std::optional<Generation> offered_;
  std::optional<SnapshotReceiver::Built> built_;
  std::optional<Error> failed_;
};

class SnapshotReceiverSeeds : public SnapshotReceiverTest, public testing::WithParamInterface<int> {};

TEST_P(SnapshotReceiverSeeds, TheWholeWayBesideTheFollowersOwnWork) {
  begin(static_cast<uint64_t>(GetParam()));
  offer();
  int worked = 0;
  for (int i = 0; !built_ && !failed_; ++i) {
    ASSERT_LT(i, 200'000);
    step();
    if (random_.below(50) == 0 && follower_.applied() < 90) {
      ASSERT_TRUE(follower_.run_to(log_, follower_.applied() + 1));
      ++worked;
    }
    if (random_.below(100) == 0) receiver_->offer(kLeader, *offered_);  // repeated
    if (random_.below(300) == 0) receiver_->unreachable(kLeader);
  }
  ASSERT_FALSE(failed_) << failed_->message;
  EXPECT_GT(worked, 2);
  switch_over();
}
INSTANTIATE_TEST_SUITE_P(Seeds, SnapshotReceiverSeeds, testing::Range(1, 21));

TEST_F(SnapshotReceiverTest, ANewOfferReplacesTheOneThatIsBeingFetched) {
  begin(1);
  receiver_->offer(kLeader, {1, 200});  // of a leader that is gone
  receiver_->step();
  frames_.clear();
  offer();
  run_until_over();
  ASSERT_FALSE(failed_) << failed_->message;
  EXPECT_EQ(built_->at, *offered_);
  switch_over();
}

TEST_F(SnapshotReceiverTest, WhatIsGoneIsToldAndTheNextOfferServes) {
  begin(1);
  receiver_->offer(kLeader, {1, 200});
  run_until_over();
  ASSERT_TRUE(failed_);
  EXPECT_EQ(failed_->code, Code::kNotFound);
  failed_.reset();
  offer();
  run_until_over();
  ASSERT_TRUE(built_);
  switch_over();
}

TEST_F(SnapshotReceiverTest, WhatIsNotNeededAnyMoreIsThrownAway) {
  begin(1);
  offer();
  run_until_over();
  ASSERT_TRUE(built_);
  EXPECT_EQ(follower_disk_.list("data/store")->size(), 2u);
  receiver_->discard();
  receiver_->step();
  EXPECT_EQ(*follower_disk_.list("data/store"), std::vector<std::string>{"0-0"});
  EXPECT_EQ(follower_disk_.list("data/snap")->size(), 0u);
  built_.reset();
  receiver_->offer(kLeader, *offered_);
  run_until_over();
  switch_over();
}

TEST_F(SnapshotReceiverTest, AFullDiskWhileItIsBuiltIsToldAndTheNextOfferBuildsFromWhatIsHere) {
  begin(1);
  follower_disk_.inject({.operation = MemoryDisk::Operation::kWrite,
                         .nth = 5,
                         .code = Code::kResourceExhausted,
                         .path = "store/" + Generation{log_[299].term, 300}.name(),
                         .partial_bytes = 100});
  offer();
  run_until_over();
  ASSERT_TRUE(failed_);
  EXPECT_EQ(failed_->code, Code::kResourceExhausted);
  EXPECT_EQ(*follower_disk_.list("data/store"), std::vector<std::string>{"0-0"}) << "its space was given back";
  EXPECT_FALSE(follower_.failure.failed());
  failed_.reset();
  frames_.clear();
  receiver_->offer(kLeader, *offered_);
  run_until_over();
  ASSERT_TRUE(built_);
  switch_over();
}

TEST_F(SnapshotReceiverTest, ADamagedOneIsRemovedAndTold) {
  begin(1);
  offer();
  leader_disk_.flip_bit(snapshot_path("data", *offered_), 8 * 1500);
  run_until_over();
  ASSERT_TRUE(failed_);
  EXPECT_EQ(failed_->code, Code::kDataLoss);
  EXPECT_EQ(follower_disk_.list("data/snap")->size(), 0u);
}

}  // namespace
}  // namespace member
