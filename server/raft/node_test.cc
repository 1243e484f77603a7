#include "raft/node.h"

#include <gtest/gtest.h>

#include "raft/quorum.h"
#include "raft/raft_test_cluster.h"

namespace raft {
namespace {

LogEntry make_entry(uint64_t index, uint64_t term, EntryType type = EntryType::kCommand) {
  return {.index = index, .term = term, .type = type, .data = std::make_shared<const Bytes>("entry")};
}

Proposal proposal(std::string text) { return {.data = std::make_shared<const Bytes>(std::move(text))}; }

Config alone() { return {.id = 1}; }
Restored fresh() { return {.membership = {.voters = {1}}}; }

// Makes durable and applies whatever there is.
void run(Node& node, std::vector<LogEntry>* applied = nullptr) {
  while (auto ready = node.take_ready()) {
    if (ready->persists()) node.persisted(ready->batch);
    for (const LogEntry& entry : ready->committed) {
      node.applied(entry.index);
      if (applied) applied->push_back(entry);
    }
  }
}

TEST(Quorum, IsWhatMoreThanHalfHaveReached) {
  EXPECT_EQ(majority_value({}), 0u);
  EXPECT_EQ(majority_value({7}), 7u);
  EXPECT_EQ(majority_value({7, 3}), 3u);
  EXPECT_EQ(majority_value({1, 9, 5}), 5u);
  EXPECT_EQ(majority_value({1, 9, 5, 7}), 5u);
  EXPECT_EQ(tally(3, 2, 0), Tally::kWon);
  EXPECT_EQ(tally(3, 1, 1), Tally::kOpen);
  EXPECT_EQ(tally(3, 1, 2), Tally::kLost);
  EXPECT_EQ(tally(4, 2, 2), Tally::kLost);
  EXPECT_EQ(tally(1, 1, 0), Tally::kWon);
}

TEST(Node, TheSoleVoterLeadsOnlyAfterItsVoteIsDurable) {
  SeededRandom random(1);
  Node node(alone(), fresh(), random);
  EXPECT_EQ(node.role(), Role::kCandidate);
  const auto ready = node.take_ready();
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->hard_state, (HardState{1, 1, 0}));
  EXPECT_FALSE(node.take_ready());
  EXPECT_EQ(node.propose(std::vector{proposal("a")}).error(), (Error{Code::kUnavailable, "etcdserver: no leader"}));
  node.persisted(ready->batch);
  EXPECT_EQ(node.role(), Role::kLeader);
  EXPECT_TRUE(node.propose(std::vector{proposal("a")}));
}

TEST(Node, ALeaderCountsItselfOnlyWithWhatIsDurable) {
  SeededRandom random(1);
  Node node(alone(), fresh(), random);
  run(node);
  ASSERT_EQ(node.commit_index(), 1u);
  ASSERT_TRUE(node.propose(std::vector{proposal("a"), proposal("b")}));
  const auto first = node.take_ready();
  ASSERT_TRUE(node.propose(std::vector{proposal("c")}));
  const auto second = node.take_ready();
  ASSERT_EQ(first->entries.size(), 2u);
  ASSERT_EQ(second->entries.size(), 1u);
  EXPECT_EQ(node.commit_index(), 1u);
  EXPECT_FALSE(node.take_ready());
  node.persisted(first->batch);
  EXPECT_EQ(node.commit_index(), 3u);
  const auto third = node.take_ready();
  ASSERT_EQ(third->committed.size(), 2u);
  EXPECT_EQ(*third->committed[1].data, "b");
  EXPECT_FALSE(third->persists());  // a new commit index alone is not worth a sync
  node.persisted(second->batch);
  EXPECT_EQ(node.take_ready()->committed.size(), 1u);
}

TEST(Node, ARestartHandsOutAgainWhatWasCommittedButNotApplied) {
  SeededRandom random(1);
  std::vector<LogEntry> entries;
  for (uint64_t index = 4; index <= 9; ++index) entries.push_back(make_entry(index, 2));
  Node node(alone(),
            {.hard_state = {2, 1, 7},
             .base_index = 3,
             .base_term = 1,
             .entries = entries,
             .applied = 5,
             .membership = {.voters = {1}}},
            random);
  const auto ready = node.take_ready();
  ASSERT_EQ(ready->committed.size(), 2u);
  EXPECT_EQ(ready->committed[0].index, 6u);
  EXPECT_EQ(ready->hard_state, (HardState{3, 1, 7}));
  node.persisted(ready->batch);
  std::vector<LogEntry> applied;
  run(node, &applied);  // 8 and 9 were not known to be committed: they are with the no-op of the new term
  ASSERT_EQ(applied.size(), 3u);
  EXPECT_EQ(applied[0].index, 8u);
  EXPECT_EQ(applied[2].term, 3u);
}

TEST(Node, WhatIsAppliedIsCommittedEvenIfTheCommitIndexWasNotWritten) {
  SeededRandom random(1);
  Node node(alone(),
            {.hard_state = {2, 1, 1},
             .entries = {make_entry(1, 1), make_entry(2, 2)},
             .applied = 2,
             .membership = {.voters = {1}}},
            random);
  EXPECT_EQ(node.commit_index(), 2u);
}

TEST(Node, DoesNotCampaignWithAMembershipChangeThatIsNotApplied) {
  SeededRandom random(1);
  Node node(alone(),
            {.hard_state = {1, 1, 2},
             .entries = {make_entry(1, 1), make_entry(2, 1, EntryType::kMembership)},
             .applied = 1,
             .membership = {.voters = {1}}},
            random);
  EXPECT_EQ(node.role(), Role::kFollower);
  for (int i = 0; i < 100; ++i) node.tick();
  EXPECT_EQ(node.role(), Role::kFollower);
  ASSERT_EQ(node.take_ready()->committed.size(), 1u);
  node.set_membership({.voters = {1}});
  node.applied(2);
  EXPECT_EQ(node.role(), Role::kCandidate);
}

TEST(Node, ALearnerNeverCampaigns) {
  SeededRandom random(1);
  Node node(alone(), {.membership = {.voters = {2}, .learners = {1}}}, random);
  for (int i = 0; i < 100; ++i) node.tick();
  EXPECT_EQ(node.term(), 0u);
}

TEST(Node, RefusesProposalsBeyondTheUncommittedLimit) {
  SeededRandom random(1);
  Config config = alone();
  config.uncommitted_bytes_max = 1000;
  Node node(config, fresh(), random);
  run(node);
  ASSERT_TRUE(node.propose(std::vector{proposal(Bytes(5000, 'x'))}));  // one is always taken
  const auto refused = node.propose(std::vector{proposal("y")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{Code::kResourceExhausted, "etcdserver: too many requests"}));
  run(node);
  EXPECT_TRUE(node.propose(std::vector{proposal("y")}));
}

TEST(Node, RefusesProposalsWhileApplyIsFarBehind) {
  SeededRandom random(1);
  Config config = alone();
  config.unapplied_entries_max = 3;
  Node node(config, fresh(), random);
  run(node);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(node.propose(std::vector{proposal("a")}));
  node.persisted(node.take_ready()->batch);
  EXPECT_EQ(node.propose(std::vector{proposal("b")}).error().code, Code::kResourceExhausted);
  run(node);
  EXPECT_TRUE(node.propose(std::vector{proposal("b")}));
}

TEST(Node, HandsOverAndAppliesInBoundedPortions) {
  SeededRandom random(1);
  Config config = alone();
  config.batch_bytes_max = 500;
  config.apply_bytes_max = 500;
  Node node(config, fresh(), random);
  run(node);
  std::vector<Proposal> proposals;
  for (int i = 0; i < 20; ++i) proposals.push_back(proposal(Bytes(100, 'x')));
  ASSERT_TRUE(node.propose(proposals));
  size_t handed = 0;
  std::vector<BatchNumber> batches;
  while (const auto ready = node.take_ready()) {
    EXPECT_LE(ready->entries.size(), 3u);
    handed += ready->entries.size();
    batches.push_back(ready->batch);
  }
  EXPECT_EQ(handed, 20u);
  node.persisted(batches.back());
  size_t applied = 0;
  while (const auto ready = node.take_ready()) {
    EXPECT_LE(ready->committed.size(), 3u);
    applied += ready->committed.size();
  }
  EXPECT_EQ(applied, 20u);
}

TEST(Node, KeepsABoundedTailOfAppliedEntries) {
  SeededRandom random(1);
  Config config = alone();
  config.kept = {.entries_max = 10, .bytes_max = 1000};
  Node node(config, fresh(), random);
  for (int i = 0; i < 50; ++i) {
    run(node);
    ASSERT_TRUE(node.propose(std::vector{proposal("a")}));
  }
  run(node);
  EXPECT_EQ(node.last_index(), 51u);
  EXPECT_EQ(node.log().last_index() - node.log().base_index(), 10u);
  ASSERT_TRUE(node.propose(std::vector{proposal(Bytes(5000, 'x'))}));
  EXPECT_GT(node.log().bytes(), 5000u);  // what is not applied stays, whatever its size
  run(node);
  EXPECT_LE(node.log().bytes(), 1000u);
}

TEST(Node, AReadWaitsForAnEntryOfTheOwnTerm) {
  SeededRandom random(1);
  Node node(alone(),
            {.hard_state = {1, 1, 1}, .entries = {make_entry(1, 1)}, .applied = 1, .membership = {.voters = {1}}},
            random);
  EXPECT_EQ(node.read_index(7).error().code, Code::kUnavailable);
  node.persisted(node.take_ready()->batch);
  ASSERT_TRUE(node.read_index(7));
  const auto ready = node.take_ready();
  EXPECT_TRUE(ready->read_states.empty());
  node.persisted(ready->batch);
  const auto next = node.take_ready();
  ASSERT_EQ(next->read_states.size(), 1u);
  EXPECT_EQ(next->read_states[0].context, 7u);
  EXPECT_EQ(next->read_states[0].index, 2u);
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

// --- several members

TEST(Raft, ElectsReplicatesAndAppliesEverywhere) {
  TestCluster cluster(3, 1);
  cluster.elect(1);
  ASSERT_TRUE(cluster.propose(1, {"a", "b", "c"}));
  cluster.settle();
  for (auto& [id, member] : cluster.members) {
    ASSERT_EQ(member.applied.size(), 4u) << id;
    EXPECT_EQ(*member.applied[3].data, "c");
    EXPECT_EQ(member.node->leader(), 1u);
  }
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
  EXPECT_EQ(*cluster.members.at(3).applied.at(1).data, "a");
}

// Paper, figure 8: an entry of an earlier term that is on a majority is not committed by that.
TEST(Raft, EntriesOfEarlierTermsAreNotCommittedByCounting) {
  const auto entry_of = [](uint64_t index, uint64_t term) { return make_entry(index, term); };
  SeededRandom random(1);
  const Restored restored{.hard_state = {2, 0, 1},
                          .entries = {entry_of(1, 1), entry_of(2, 2)},
                          .applied = 1,
                          .membership = {.voters = {1, 2, 3}}};
  Node node({.id = 1}, restored, random);
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

// Everything at once, in any order: lost, repeated, reordered messages, slow syncs, crashes that forget what was not
// synced, elections. The cluster checks the paper's rules (figure 3) after each step; at the end all logs agree.
TEST(Raft, TheRulesHoldUnderRandomFaults) {
  uint64_t applied = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SeededRandom random(seed);
    TestCluster cluster(seed % 2 == 0 ? 3 : 5, seed);
    const uint64_t size = cluster.members.size();
    for (int step = 0; step < 3000 && !testing::Test::HasFailure(); ++step) {
      const uint64_t id = 1 + random.below(size);
      switch (random.below(12)) {
        case 0:
          cluster.tick(id);
          break;
        case 1:
        case 2:
          cluster.sync_one(id);
          break;
        case 3:
          cluster.apply_one(id);
          break;
        case 4:
          if (random.below(10) == 0) cluster.start(id);  // crash and restart
          break;
        case 5:
          (void)cluster.propose(id, {std::to_string(step), Bytes(random.below(300), 'x')});
          break;
        case 6:
          (void)cluster.node(id).read_index(static_cast<uint64_t>(step));
          cluster.take(id);
          break;
        default:
          if (cluster.network.empty()) break;
          const size_t number = random.below(cluster.network.size());
          const uint64_t fate = random.below(20);
          if (fate == 0) {
            cluster.network.erase(cluster.network.begin() + static_cast<std::ptrdiff_t>(number));
          } else {
            if (fate == 1) cluster.network.push_back(cluster.network[number]);
            cluster.deliver(random.below(3) == 0 ? number : 0);
          }
      }
    }
    for (int round = 0; round < 300; ++round) {
      for (uint64_t id = 1; id <= size; ++id) cluster.tick(id);
      cluster.settle();
    }
    for (uint64_t id = 2; id <= size; ++id) {
      ASSERT_EQ(cluster.members.at(id).applied.size(), cluster.members.at(1).applied.size()) << id;
    }
    applied += cluster.members.at(1).applied.size();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(applied, 60u * 20);  // it did make progress
}

}  // namespace
}  // namespace raft
