// Rules that need several members, and messages made by hand.
#include <gtest/gtest.h>

#include "raft/raft_test_cluster.h"

namespace raft {
namespace {

LogEntry make_entry(uint64_t index, uint64_t term, EntryType type = EntryType::kCommand) {
  return {.index = index, .term = term, .type = type, .data = std::make_shared<const Bytes>("entry")};
}

TEST(Node, WaitingReadsAreLimited) {
  TestCluster cluster(3, 1);
  cluster.members.at(1).config.waiting_reads_max = 2;
  cluster.start(1);
  cluster.elect(1);
  ASSERT_TRUE(cluster.node(1).read_index(1));
  ASSERT_TRUE(cluster.node(1).read_index(2));
  EXPECT_EQ(cluster.node(1).read_index(3).error().code, Code::kResourceExhausted);
}

TEST(Raft, ElectsReplicatesAndAppliesEverywhere) {
  TestCluster cluster(3, 1);
  cluster.elect(1);
  ASSERT_TRUE(cluster.propose(1, {"a", "b", "c"}));
  cluster.settle();
  for (auto& [id, member] : cluster.members) {
    ASSERT_EQ(member.stored, 4u) << id;
    EXPECT_EQ(member.node->leader(), 1u);
  }
  EXPECT_EQ(*cluster.decided(4).data, "c");
  EXPECT_EQ(cluster.propose(2, {"d"}).error().code, Code::kFailedPrecondition);
}

TEST(Raft, OnlyAMemberWithAllCommittedEntriesIsElected) {
  TestCluster cluster(3, 1);
  cluster.elect(1);
  ASSERT_TRUE(cluster.propose(1, {"a"}));
  cluster.settle({3});
  for (int i = 0; i < 30; ++i) cluster.tick(3);  // campaigns again and again, with an old log
  cluster.settle({1});
  EXPECT_NE(cluster.node(3).role(), Role::kLeader);
  EXPECT_EQ(cluster.node(3).leader(), kNobody);
  cluster.elect(2, {1});
  EXPECT_EQ(cluster.members.at(3).stored, 3u);
  EXPECT_EQ(*cluster.decided(2).data, "a");
}

// The first to miss its leader is not sent back to wait because the others heard of the leader a little longer.
TEST(Raft, APreVoteThatWasIgnoredIsAskedForAgain) {
  TestCluster cluster(3, 1);
  cluster.elect(1);
  cluster.crash(1);
  for (int i = 0; i < 9; ++i) cluster.tick(3);  // not beyond its shortest timeout
  for (int i = 0; i < 100 && cluster.node(2).role() == Role::kFollower; ++i) cluster.tick(2);
  cluster.settle();
  EXPECT_EQ(cluster.node(2).role(), Role::kPreCandidate);  // 3 ignored it
  cluster.tick(3);
  cluster.tick(2);
  cluster.settle();
  EXPECT_EQ(cluster.node(2).role(), Role::kLeader);
}

// Paper, figure 8: an entry of an earlier term that is on a majority is not committed by that.
TEST(Raft, EntriesOfEarlierTermsAreNotCommittedByCounting) {
  SeededRandom random(1);
  const Restored restored{.hard_state = {2, 0, 1},
                          .entries = {make_entry(1, 1), make_entry(2, 2)},
                          .applied = 1,
                          .membership = {.voters = {1, 2, 3}}};
  Node node({.id = 1, .pre_vote = false}, restored, random);
  while (node.role() == Role::kFollower) node.tick();
  const auto ready = node.take_ready();
  ASSERT_EQ(ready->messages_after_sync.size(), 2u);
  node.persisted(ready->batch);
  Message vote;
  vote.type = MessageType::kVoteResponse;
  vote.from = 2;
  vote.to = 1;
  vote.term = 3;
  ASSERT_TRUE(node.step(vote));
  ASSERT_EQ(node.role(), Role::kLeader);
  node.persisted(node.take_ready()->batch);
  Message response = vote;
  response.type = MessageType::kAppendResponse;
  response.log_index = 2;
  ASSERT_TRUE(node.step(response));
  EXPECT_EQ(node.commit_index(), 1u);  // on two of three, but of term 2
  response.log_index = 3;
  ASSERT_TRUE(node.step(response));
  EXPECT_EQ(node.commit_index(), 3u);  // with the no-op of term 3
}

TEST(Raft, AConflictRewritesWhatWasHandedOver) {
  SeededRandom random(1);
  Node node({.id = 1}, {.membership = {.voters = {1, 2, 3}}}, random);
  Message append;
  append.type = MessageType::kAppend;
  append.from = 2;
  append.to = 1;
  append.term = 1;
  append.entries = {make_entry(1, 1), make_entry(2, 1), make_entry(3, 1)};
  ASSERT_TRUE(node.step(append));
  const auto first = node.take_ready();
  ASSERT_EQ(first->entries.size(), 3u);
  append.from = 3;
  append.term = 2;
  append.log_index = 1;
  append.log_term = 1;
  append.entries = {make_entry(2, 2)};
  append.commit = 2;
  ASSERT_TRUE(node.step(append));
  const auto second = node.take_ready();
  ASSERT_EQ(second->entries.size(), 1u);
  EXPECT_EQ(second->entries[0].index, 2u);
  EXPECT_EQ(second->hard_state, (HardState{2, 0, 2}));
  node.persisted(first->batch);
  EXPECT_EQ(node.durable_index(), 1u);  // 2 and 3 of the first hand-over are not the log's any more
  EXPECT_EQ(node.take_ready()->committed.size(), 1u);
  node.persisted(second->batch);
  EXPECT_EQ(node.durable_index(), 2u);
  EXPECT_EQ(node.take_ready()->committed.at(0).term, 2u);
}

TEST(Raft, AnAcknowledgementWaitsForAllPortionsOfItsEntries) {
  SeededRandom random(1);
  Node node({.id = 1, .batch_bytes_max = 200}, {.membership = {.voters = {1, 2, 3}}}, random);
  Message append;
  append.type = MessageType::kAppend;
  append.from = 2;
  append.to = 1;
  append.term = 1;
  for (uint64_t index = 1; index <= 9; ++index) append.entries.push_back(make_entry(index, 1));
  ASSERT_TRUE(node.step(append));
  size_t handed = 0;
  while (const auto ready = node.take_ready()) {
    EXPECT_TRUE(ready->messages_now.empty());
    handed += ready->entries.size();
    EXPECT_EQ(!ready->messages_after_sync.empty(), handed == 9);
  }
  EXPECT_EQ(handed, 9u);
}

TEST(Raft, AReadIsConfirmedByAMajority) {
  TestCluster cluster(3, 1);
  cluster.elect(1);
  ASSERT_TRUE(cluster.node(1).read_index(5));
  ASSERT_TRUE(cluster.node(1).read_index(6));
  cluster.take(1);
  EXPECT_EQ(cluster.network.size(), 2u);  // both reads share one round
  EXPECT_TRUE(cluster.answered_reads.empty());
  cluster.settle({3});
  EXPECT_EQ(cluster.answered_reads, (std::map<uint64_t, uint64_t>{{5, 1}, {6, 1}}));
  ASSERT_TRUE(cluster.node(1).read_index(7));
  cluster.take(1);
  cluster.settle({2, 3});
  EXPECT_FALSE(cluster.answered_reads.contains(7));
  cluster.elect(2, {1});
  cluster.tick(2);
  cluster.settle();
  EXPECT_EQ(cluster.dropped_reads, (std::set<uint64_t>{7}));
}

TEST(Raft, RefusesWhatNoMemberSends) {
  SeededRandom random(1);
  Node node({.id = 1}, {.membership = {.voters = {1, 2, 3}}}, random);
  Message message;
  message.type = MessageType::kAppend;
  message.from = 2;
  message.to = 1;
  message.term = 3;
  message.entries = {make_entry(2, 1)};
  EXPECT_EQ(node.step(message).error().code, Code::kInvalidArgument);  // a gap
  message.entries = {make_entry(1, 4)};
  EXPECT_EQ(node.step(message).error().code, Code::kInvalidArgument);  // of a later term
  message.entries = {make_entry(1, 3), make_entry(2, 2)};
  EXPECT_EQ(node.step(message).error().code, Code::kInvalidArgument);  // terms go back
  message.to = 2;
  EXPECT_EQ(node.step(message).error().code, Code::kInvalidArgument);
  EXPECT_EQ(node.term(), 0u);
  message = {.type = MessageType::kHeartbeat, .from = 2, .to = 1, .term = 3, .commit = 5};
  EXPECT_EQ(node.step(message).error().code, Code::kDataLoss);  // acknowledged once, and lost
  message = {.type = MessageType::kHeartbeat, .from = 3, .to = 1, .term = 3};
  EXPECT_EQ(node.step(message).error().code, Code::kInvalidArgument);  // a second leader of the term
}

TEST(Raft, OnlyAMemberCanSayThatEntriesAreLost) {
  SeededRandom random(1);
  Node node({.id = 1}, {.membership = {.voters = {1, 2}, .learners = {3}}}, random);
  Message message{.type = MessageType::kHeartbeat, .from = 9, .to = 1, .term = 3, .commit = 5};
  EXPECT_EQ(node.step(message).error().code, Code::kInvalidArgument);
  EXPECT_EQ(node.term(), 0u) << "nothing changed";
  message.from = 3;  // it may be a voter by now
  EXPECT_EQ(node.step(message).error().code, Code::kDataLoss);
}

// Of three members one is down, another one is started with an empty folder, and the two that are up go on without what
// was decided before. Then the first one comes back.
TEST(Raft, TwoHistoriesAreNotTakenForOne) {
  const auto append = [](uint64_t from, uint64_t log_index, uint64_t log_term, std::vector<LogEntry> entries) {
    return Message{.type = MessageType::kAppend,
                   .from = from,
                   .to = 1,
                   .term = 3,
                   .log_index = log_index,
                   .log_term = log_term,
                   .entries = std::move(entries)};
  };
  const auto fresh = [](SeededRandom& random) {
    return Node({.id = 1},
                {.hard_state = {3, 0, 3},
                 .entries = {make_entry(1, 1), make_entry(2, 2), make_entry(3, 2), make_entry(4, 2)},
                 .membership = {.voters = {1, 2, 3}}},
                random);
  };
  SeededRandom random(1);
  Node node = fresh(random);
  EXPECT_TRUE(node.step(append(2, 1, 1, {make_entry(2, 2), make_entry(3, 2)}))) << "an old one";
  EXPECT_TRUE(node.step(append(2, 2, 2, {make_entry(3, 2), make_entry(4, 3)}))) << "nothing that is committed differs";
  const Status other = node.step(append(2, 1, 1, {make_entry(2, 3)}));
  EXPECT_EQ(other.error().code, Code::kDataLoss);
  EXPECT_NE(other.error().message.find("entry 2 is committed here with term 2"), std::string::npos);
  EXPECT_EQ(node.step(append(2, 2, 1, {})).error().code, Code::kDataLoss) << "what comes before it differs";
  Node of_stranger = fresh(random);
  EXPECT_TRUE(of_stranger.step(append(9, 1, 1, {make_entry(2, 3)}))) << "who is no member stops nobody";
}

TEST(Raft, RefusesNumbersThatOverflow) {
  SeededRandom random(1);
  Node node({.id = 1}, {.membership = {.voters = {1, 2, 3}}}, random);
  for (const uint64_t huge : {kTermMax + 1, ~uint64_t{0}}) {
    for (const auto number : {&Message::term, &Message::log_index, &Message::log_term, &Message::commit,
                              &Message::hint_index, &Message::hint_term}) {
      Message message{.type = MessageType::kAppendResponse, .from = 2, .to = 1, .term = 3};
      message.*number = huge;
      EXPECT_EQ(node.step(message).error().code, Code::kInvalidArgument);
    }
  }
  const Message snapshot{
      .type = MessageType::kSnapshot, .from = 2, .to = 1, .term = 3, .log_index = kSnapshotIndexMax + 1, .log_term = 3};
  EXPECT_EQ(node.step(snapshot).error().code, Code::kInvalidArgument);
  EXPECT_EQ(node.term(), 0u);
}

// One that says so either lies or has come through each of these terms: then it repeats itself.
TEST(Raft, OneMessageDoesNotUseUpTheTerms) {
  SeededRandom random(1);
  Node node({.id = 1}, {.hard_state = {.term = 7}, .membership = {.voters = {1, 2, 3}}}, random);
  const Message message{.type = MessageType::kHeartbeat, .from = 2, .to = 1, .term = kTermMax};
  ASSERT_TRUE(node.step(message));
  EXPECT_EQ(node.term(), 7 + kTermLeapMax);
  EXPECT_EQ(node.leader(), kNobody);
  ASSERT_TRUE(node.step({.type = MessageType::kHeartbeat, .from = 2, .to = 1, .term = 8 + 2 * kTermLeapMax}));
  EXPECT_EQ(node.term(), 7 + 2 * kTermLeapMax);
  ASSERT_TRUE(node.step({.type = MessageType::kHeartbeat, .from = 2, .to = 1, .term = 8 + 2 * kTermLeapMax}));
  EXPECT_EQ(node.term(), 8 + 2 * kTermLeapMax);
  EXPECT_EQ(node.leader(), 2u);
}

TEST(Raft, InTheLastTermNobodyCampaigns) {
  SeededRandom random(1);
  Node node({.id = 1}, {.hard_state = {.term = kTermMax}, .membership = {.voters = {1, 2, 3}}}, random);
  for (int i = 0; i < 100; ++i) node.tick();
  EXPECT_EQ(node.role(), Role::kFollower);
  EXPECT_FALSE(node.take_ready()) << "nothing that others would take for malformed";
}

}  // namespace
}  // namespace raft
