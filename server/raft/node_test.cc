#include "raft/node.h"

#include <gtest/gtest.h>

#include "base/memory_disk.h"  // SeededRandom
#include "raft/quorum.h"

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
  node.set_membership(2, {.voters = {1}});
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

}  // namespace
}  // namespace raft
