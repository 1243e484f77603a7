// What a slow member costs its leader, what is sent again and when, and what heartbeats say.
#include <gtest/gtest.h>

#include <algorithm>

#include "raft/raft_test_cluster.h"
#include "raft/raft_test_follower.h"

namespace raft {
namespace {

// Entries that were on their way to disk or to apply when the snapshot came.
// While a snapshot is on its way the log is kept for it, but not beyond every bound; then a newer one is needed.
// A member that vanishes in the middle is not waited for.
// The answers to appends were lost: heartbeats say it as well, and only what is durable.
TEST(Flow, HeartbeatsAcknowledgeWhatIsDurable) {
  TestCluster cluster(3, 1);
  cluster.elect(1);
  cluster.members.at(2).disk_stands_still = cluster.members.at(3).disk_stands_still = true;
  ASSERT_TRUE(cluster.propose(1, {"a"}));
  cluster.tick_all(2);
  EXPECT_EQ(cluster.node(1).commit_index(), 1u);
  cluster.cut = {{2, 1}, {3, 1}};
  cluster.members.at(2).disk_stands_still = cluster.members.at(3).disk_stands_still = false;
  cluster.settle();
  cluster.cut.clear();
  EXPECT_EQ(cluster.node(1).commit_index(), 1u);
  cluster.tick_all(1);
  EXPECT_EQ(cluster.node(1).commit_index(), 2u);
}

// What one leader was told of the log says nothing to the next, whose log may be another.
TEST(Flow, AnotherLeaderIsToldNothingOfBefore) {
  Follower follower({});
  ASSERT_TRUE(follower.append(0, 0, {make_entry(1, 3), make_entry(2, 3)}));
  follower.node.persisted(follower.node.take_ready()->batch);
  ASSERT_TRUE(follower.step({.type = MessageType::kHeartbeat}));
  EXPECT_EQ(follower.node.take_ready()->messages_now.at(0).hint_index, 2u);
  Message beat{.type = MessageType::kHeartbeat, .from = 3, .to = 1, .term = 4};
  ASSERT_TRUE(follower.node.step(beat));
  follower.node.persisted(follower.node.take_ready()->batch);
  ASSERT_TRUE(follower.node.step(beat));
  EXPECT_EQ(follower.node.take_ready()->messages_now.at(0).hint_index, 0u);
  beat = {.type = MessageType::kHeartbeat, .from = 3, .to = 1, .term = 5};  // the same one, in another term
  ASSERT_TRUE(follower.node.step({.type = MessageType::kAppend, .from = 3, .to = 1, .term = 4, .entries = {}}));
  ASSERT_TRUE(follower.node.step(beat));
  follower.node.persisted(follower.node.take_ready()->batch);
  ASSERT_TRUE(follower.node.step(beat));
  EXPECT_EQ(follower.node.take_ready()->messages_now.at(0).hint_index, 0u);
}

// What follows the last entry of an append may not be the leader's.
TEST(Log, IsCommittedOnlyAsFarAsItAgrees) {
  Follower follower({make_entry(1, 1), make_entry(2, 2)});
  ASSERT_TRUE(follower.append(0, 0, {make_entry(1, 1)}, 2));
  EXPECT_EQ(follower.node.commit_index(), 1u);
  EXPECT_EQ(follower.node.last_index(), 2u);
  ASSERT_TRUE(follower.append(1, 1, {make_entry(2, 3)}, 2));
  EXPECT_EQ(follower.node.commit_index(), 2u);
  EXPECT_EQ(follower.node.log().last_term(), 3u);
}

TEST(Flow, ASlowMemberIsSentNoMoreThanTheLimitsAndCostsNoMemory) {
  Config config = TestCluster::small();
  config.kept = {.entries_max = 10, .bytes_max = 2000};
  config.kept_for_catching_up = {.entries_max = 20, .bytes_max = 4000};
  config.inflight_messages_max = 5;
  TestCluster cluster(TestCluster::all_voters(3), 3, 1, config);
  cluster.elect(1);
  cluster.members.at(3).disk_stands_still = true;
  uint64_t appends = 0;
  uint64_t heartbeats = 0;
  cluster.on_delivery = [&](const Message& message, bool) {
    if (message.to != 3) return;
    if (message.type == MessageType::kAppend && !message.entries.empty()) ++appends;
    if (message.type == MessageType::kHeartbeat) {
      ++heartbeats;
      EXPECT_TRUE(message.entries.empty());
    }
  };
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(cluster.propose(1, {Bytes(100, 'x')}));
    cluster.settle();
  }
  EXPECT_EQ(appends, 5u);
  EXPECT_EQ(cluster.node(1).log().last_index() - cluster.node(1).log().base_index(), 20u);
  EXPECT_LE(cluster.node(1).log().bytes(), 4000u);
  // Heartbeats go on, and while nothing is lost nothing is repeated before its time.
  cluster.tick_all(kHeartbeatsWithoutAnswerMax - 1);
  EXPECT_GE(heartbeats, kHeartbeatsWithoutAnswerMax - 1);
  EXPECT_EQ(appends, 5u);
  cluster.members.at(3).disk_stands_still = false;
  cluster.tick_all(5);
  EXPECT_EQ(cluster.members.at(3).stored, cluster.node(1).last_index());
}

// Heartbeats of many rounds of reads overtake an append: that is no reason to send it again.
TEST(Flow, ReadsDoNotMakeAppendsLookLost) {
  TestCluster cluster(3, 1);
  cluster.elect(1);
  ASSERT_TRUE(cluster.propose(1, {"a"}));
  const auto slow = std::find_if(cluster.network.begin(), cluster.network.end(),
                                 [](const Message& message) { return message.to == 3; });
  ASSERT_NE(slow, cluster.network.end());
  const Message append = *slow;
  cluster.network.erase(slow);
  uint64_t again = 0;
  cluster.on_delivery = [&](const Message& message, bool) {
    if (message.to == 3 && message.type == MessageType::kAppend && !message.entries.empty()) ++again;
  };
  for (uint64_t context = 1; context <= 100; ++context) {
    ASSERT_TRUE(cluster.read(1, {context}));
    while (!cluster.network.empty()) {
      const bool overtaken = cluster.network.front().to == 3 && cluster.network.front().type == MessageType::kAppend;
      overtaken ? cluster.network.pop_front() : cluster.deliver(0);
    }
  }
  EXPECT_EQ(cluster.answered_reads.size(), 100u);
  EXPECT_EQ(cluster.node(1).progress().at(3).state, Progress::State::kReplicate);
  EXPECT_EQ(again, 0u);
  cluster.network.push_back(append);
  cluster.settle();
  EXPECT_EQ(cluster.node(3).last_index(), 2u);
}

// A follower that applies slowly does not take the whole stream into its memory, and misses nothing of it.
TEST(Flow, AFollowerTakesNoMoreThanItCanHold) {
  Config config = TestCluster::small();
  config.unapplied_bytes_max = 2000;
  config.unapplied_entries_max = 4;
  TestCluster cluster(TestCluster::all_voters(3), 3, 1, config);
  cluster.elect(1);
  cluster.members.at(3).apply_stands_still = true;
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(cluster.propose(1, {Bytes(136, 'x')}));  // 200 with the overhead
    cluster.settle();
  }
  cluster.tick_all(20);
  EXPECT_EQ(cluster.node(1).commit_index(), 31u);
  EXPECT_GE(cluster.node(3).log().bytes(), 2000u);
  EXPECT_LT(cluster.node(3).log().bytes(), 2400u);
  EXPECT_EQ(cluster.node(3).role(), Role::kFollower);
  EXPECT_GE(cluster.members.at(3).to_apply.size(), 4u);
  EXPECT_LE(cluster.members.at(3).to_apply.size(), 6u);
  cluster.members.at(3).apply_stands_still = false;
  cluster.tick_all(40);
  EXPECT_EQ(cluster.node(3).applied_index(), 31u);
}

// A broken connection says that a member may be gone, sooner than its silence does.
TEST(Flow, WhoseConnectionBrokeIsNotActiveUntilItAnswers) {
  TestCluster cluster(3, 1);
  cluster.elect(1);
  const auto is_active = [&cluster](uint64_t id) {
    for (const MemberProgress& member : cluster.node(1).member_progress()) {
      if (member.id == id) return member.recently_active;
    }
    return false;
  };
  cluster.tick_all(1);
  EXPECT_TRUE(is_active(3));
  cluster.node(1).messages_lost(3);
  EXPECT_FALSE(is_active(3));
  EXPECT_TRUE(is_active(2));
  cluster.tick_all(1);
  EXPECT_TRUE(is_active(3));
}

TEST(Flow, BytesOnTheWayAreLimited) {
  Config config = TestCluster::small();
  config.inflight_messages_max = 100;
  config.inflight_bytes_max = 1000;
  TestCluster cluster(TestCluster::all_voters(3), 3, 1, config);
  cluster.elect(1);
  std::vector<std::string> texts(50, Bytes(136, 'x'));  // 200 with the overhead: two in a message
  ASSERT_TRUE(cluster.propose(1, texts));
  uint64_t entries = 0;
  for (const Message& message : cluster.network) {
    EXPECT_LE(message.entries.size(), 2u);
    if (message.to == 3) entries += message.entries.size();
  }
  EXPECT_EQ(entries, 6u);  // three messages
  cluster.settle();
  EXPECT_EQ(cluster.members.at(3).stored, 51u);
}

TEST(Flow, WhatWasLostIsSentAgain) {
  TestCluster cluster(3, 1);
  cluster.elect(1);
  const auto lose_one = [&] {
    cluster.cut.insert({1, 3});
    ASSERT_TRUE(cluster.propose(1, {"a"}));
    cluster.settle();
    cluster.cut.clear();
  };
  lose_one();
  EXPECT_EQ(cluster.node(3).last_index(), 1u);
  cluster.node(1).messages_lost(3);  // the connection broke
  cluster.take(1);
  cluster.settle();
  EXPECT_EQ(cluster.node(3).last_index(), 2u);
  // Without such a hint: after some heartbeats,
  lose_one();
  cluster.tick_all(kHeartbeatsWithoutArrivalMax - 1);
  EXPECT_EQ(cluster.node(3).last_index(), 2u);
  cluster.tick_all(1);
  EXPECT_EQ(cluster.node(3).last_index(), 3u);
  // or with the next append, which does not fit.
  lose_one();
  ASSERT_TRUE(cluster.propose(1, {"b"}));
  cluster.settle();
  EXPECT_EQ(cluster.node(3).last_index(), 5u);
}

}  // namespace
}  // namespace raft
