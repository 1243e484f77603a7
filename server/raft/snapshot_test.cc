// Snapshots, hand-over by hand-over.
#include <gtest/gtest.h>

#include "raft/raft_test_cluster.h"
#include "raft/raft_test_follower.h"

namespace raft {
namespace {

Membership others() { return {.voters = {1, 2, 3}, .learners = {4}}; }

TEST(Snapshot, EmptiesTheLogAndIsPersistedBeforeWhatFollows) {
  Follower follower({make_entry(1, 1), make_entry(2, 1), make_entry(3, 2)}, 1);
  ASSERT_TRUE(follower.offer(10, 3));
  ASSERT_TRUE(follower.offer(10, 3));  // repeated
  auto ready = follower.node.take_ready();
  EXPECT_EQ(ready->snapshot_offered, (SnapshotOffer{kLeader, {10, 3}}));
  EXPECT_FALSE(ready->persists());
  ASSERT_TRUE(follower.offer(10, 3));
  EXPECT_FALSE(follower.node.take_ready());  // known

  ASSERT_TRUE(follower.node.install(10, 3, others()));
  EXPECT_EQ(follower.node.commit_index(), 10u);
  EXPECT_EQ(follower.node.durable_index(), 10u);
  EXPECT_EQ(follower.node.applied_index(), 10u);
  EXPECT_EQ(follower.node.last_index(), 10u);
  EXPECT_EQ(follower.node.membership(), others());
  ASSERT_TRUE(follower.append(10, 3, {make_entry(11, 3)}, 11));
  ready = follower.node.take_ready();
  EXPECT_EQ(ready->snapshot, (SnapshotPoint{10, 3}));
  ASSERT_EQ(ready->entries.size(), 1u);
  EXPECT_EQ(ready->hard_state, (HardState{3, 0, 11}));
  EXPECT_TRUE(ready->messages_now.empty());
  ASSERT_EQ(ready->messages_after_sync.size(), 2u);
  EXPECT_EQ(ready->messages_after_sync[0].log_index, 10u);
  EXPECT_EQ(ready->messages_after_sync[1].log_index, 11u);
  EXPECT_TRUE(ready->committed.empty());  // not durable yet
  follower.node.persisted(ready->batch);
  ready = follower.node.take_ready();
  ASSERT_EQ(ready->committed.size(), 1u);
  EXPECT_EQ(ready->committed[0].index, 11u);
}

TEST(Snapshot, OutstandingHandOversStayWhatTheyWere) {
  Follower follower({make_entry(1, 1)}, 1);
  ASSERT_TRUE(follower.append(1, 1, {make_entry(2, 2), make_entry(3, 2)}, 2));
  const auto first = follower.node.take_ready();
  follower.node.persisted(first->batch);
  ASSERT_EQ(follower.node.take_ready()->committed.size(), 2u - 1u);  // 2 goes to apply
  ASSERT_TRUE(follower.append(3, 2, {make_entry(4, 2), make_entry(5, 2), make_entry(6, 2)}, 2));
  const auto second = follower.node.take_ready();
  ASSERT_EQ(second->entries.size(), 3u);
  // Somewhere else index 4 is of term 3: what is in flight here was never committed.
  ASSERT_TRUE(follower.node.install(4, 3, others()));
  const auto third = follower.node.take_ready();
  ASSERT_TRUE(third->snapshot);
  follower.node.persisted(second->batch);
  EXPECT_EQ(follower.node.durable_index(), 4u);  // and not 6
  follower.node.set_membership(2, {.voters = {1}});
  follower.node.applied(1);
  follower.node.applied(2);  // notes from before
  EXPECT_EQ(follower.node.applied_index(), 4u);
  EXPECT_EQ(follower.node.membership(), others());
  follower.node.persisted(third->batch);
  EXPECT_EQ(follower.node.durable_index(), 4u);
  EXPECT_FALSE(follower.node.take_ready());
}

TEST(Snapshot, IsNotNeededWhereItsEntryIs) {
  Follower follower({make_entry(1, 1), make_entry(2, 2), make_entry(3, 2)}, 1);
  ASSERT_TRUE(follower.offer(2, 2));
  EXPECT_EQ(follower.node.commit_index(), 2u);  // all that was missing
  auto ready = follower.node.take_ready();
  EXPECT_FALSE(ready->snapshot_offered);
  ASSERT_EQ(ready->messages_now.size(), 1u);  // nothing to sync
  EXPECT_EQ(ready->messages_now[0].type, MessageType::kAppendResponse);
  EXPECT_EQ(ready->messages_now[0].log_index, 2u);

  // The entries came while the content was being fetched; some of them are acknowledged and must not go.
  ASSERT_TRUE(follower.offer(4, 3));
  EXPECT_TRUE(follower.node.take_ready()->snapshot_offered);
  ASSERT_TRUE(follower.append(3, 2, {make_entry(4, 3), make_entry(5, 3)}));
  const auto refused = follower.node.install(4, 3, others());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(follower.node.last_index(), 5u);
  EXPECT_EQ(follower.node.commit_index(), 4u);
  EXPECT_EQ(follower.node.install(1, 1, others()).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(follower.node.install(9, 4, others()).error().code, Code::kInvalidArgument);  // of a later term
}

TEST(Snapshot, AFailedFetchIsTriedAgainWithTheNextOffer) {
  Follower follower({});
  ASSERT_TRUE(follower.offer(10, 3));
  EXPECT_TRUE(follower.node.take_ready()->snapshot_offered);
  follower.node.fetch_failed();
  ASSERT_TRUE(follower.offer(10, 3));
  EXPECT_TRUE(follower.node.take_ready()->snapshot_offered);
  ASSERT_TRUE(follower.offer(12, 3));  // a newer one
  EXPECT_EQ(follower.node.take_ready()->snapshot_offered->point.index, 12u);
}

TEST(Snapshot, TheLeaderOffersOnlyWhatHelps) {
  Config config = TestCluster::small();
  config.kept.entries_max = 3;
  TestCluster cluster(TestCluster::all_voters(3), 3, 1, config);
  cluster.elect(1);
  cluster.crash(3);
  cluster.tick_all(10);  // until that is noticed
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(cluster.propose(1, {"x"}));
  cluster.settle();
  Node& leader = cluster.node(1);
  EXPECT_EQ(leader.offer_snapshot(2, 11, 1).error().code, Code::kFailedPrecondition);  // needs none
  EXPECT_EQ(leader.offer_snapshot(3, 11, 1).error().code, Code::kFailedPrecondition);  // down
  for (int i = 0; i < 20; ++i) {
    cluster.tick(1);
    EXPECT_TRUE(cluster.members.at(1).snapshots_needed.empty());
    cluster.settle();
  }
  cluster.start(3);
  for (int i = 0; i < 20 && cluster.members.at(1).snapshots_needed.empty(); ++i) {
    cluster.tick(1);
    while (!cluster.network.empty()) cluster.deliver(0);
  }
  ASSERT_EQ(cluster.members.at(1).snapshots_needed, (std::deque<uint64_t>{3}));
  EXPECT_EQ(leader.offer_snapshot(3, 7, 1).error().code, Code::kOutOfRange);
  EXPECT_EQ(leader.offer_snapshot(3, 11, 2).error().code, Code::kInvalidArgument);
  EXPECT_EQ(leader.offer_snapshot(3, 12, 1).error().code, Code::kInvalidArgument);
  EXPECT_EQ(cluster.node(2).offer_snapshot(3, 11, 1).error().code, Code::kFailedPrecondition);
  ASSERT_TRUE(leader.offer_snapshot(3, 11, 1));
  leader.snapshot_failed(3);
  cluster.members.at(1).snapshots_needed.clear();
  cluster.take(1);
  EXPECT_EQ(cluster.members.at(1).snapshots_needed, (std::deque<uint64_t>{3}));  // needed again
  cluster.settle();
  EXPECT_EQ(cluster.members.at(3).stored, 11u);
}

TEST(Snapshot, TheLogIsNotKeptForItForever) {
  Config config = TestCluster::small();
  config.kept.entries_max = 3;
  config.kept_for_catching_up.entries_max = 20;
  TestCluster cluster(TestCluster::all_voters(3), 3, 1, config);
  cluster.elect(1);
  cluster.crash(3);
  cluster.tick_all(10);  // until that is noticed
  const auto write = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(cluster.propose(1, {"x"}));
      cluster.settle();
    }
  };
  write(10);
  cluster.start(3);
  cluster.members.at(3).apply_stands_still = true;  // it takes its time to put the snapshot in place
  cluster.tick_all(3);
  const Progress& progress = cluster.node(1).progress().at(3);
  ASSERT_EQ(progress.state, Progress::State::kSnapshot);
  ASSERT_EQ(progress.snapshot_index, 11u);
  write(15);
  EXPECT_EQ(cluster.node(1).log().base_index(), 11u);
  write(10);
  EXPECT_EQ(cluster.node(1).log().base_index(), 36u - 20u);
  cluster.members.at(3).apply_stands_still = false;
  cluster.tick_all(3);
  EXPECT_EQ(cluster.installs, 2u);
  EXPECT_EQ(cluster.members.at(3).stored, 36u);
  EXPECT_EQ(progress.state, Progress::State::kReplicate);
  EXPECT_EQ(progress.keep_above, 0u);
}

TEST(Snapshot, ForASilentMemberNothingIsKept) {
  Config config = TestCluster::small();
  config.kept.entries_max = 3;
  TestCluster cluster(TestCluster::all_voters(3), 3, 1, config);
  cluster.elect(1);
  cluster.crash(3);
  cluster.tick_all(10);  // until that is noticed
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(cluster.propose(1, {"x"}));
  cluster.settle();
  cluster.start(3);
  cluster.members.at(3).apply_stands_still = true;
  cluster.tick_all(3);
  ASSERT_EQ(cluster.node(1).progress().at(3).state, Progress::State::kSnapshot);
  cluster.crash(3);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(cluster.propose(1, {"x"}));
  cluster.tick_all(kSnapshotSilenceElectionsMax * 10 - 5);
  EXPECT_EQ(cluster.node(1).log().base_index(), 11u);
  cluster.tick_all(10);
  EXPECT_EQ(cluster.node(1).progress().at(3).state, Progress::State::kProbe);
  ASSERT_TRUE(cluster.propose(1, {"x"}));
  cluster.settle();
  EXPECT_EQ(cluster.node(1).log().base_index(), 22u - 3u);
}

TEST(Snapshot, IsAcknowledgedByHeartbeatsOnlyWhenItIsDurable) {
  Follower follower({});
  ASSERT_TRUE(follower.offer(10, 3));
  const auto beat = [&] {
    EXPECT_TRUE(follower.step({.type = MessageType::kHeartbeat}));
    return follower.node.take_ready();
  };
  beat();
  ASSERT_TRUE(follower.node.install(10, 3, others()));
  ASSERT_TRUE(follower.append(10, 3, {make_entry(11, 3)}, 11));
  const auto ready = beat();
  ASSERT_EQ(ready->messages_now.size(), 1u);
  EXPECT_EQ(ready->messages_now[0].hint_index, 0u);
  EXPECT_EQ(beat()->messages_now.at(0).hint_index, 0u);
  follower.node.persisted(ready->batch);
  EXPECT_EQ(beat()->messages_now.at(0).hint_index, 11u);
}

}  // namespace
}  // namespace raft
