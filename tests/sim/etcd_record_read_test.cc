// etcd's record of consistency faults (etcd_record.md): reads of the past, and transactions that members judged
// differently.
#include "apply/build_test.h"
#include "sim/scenario.h"
#include "sim/seeds.h"

namespace sim {
namespace {

namespace build = apply::build;
using std::chrono::milliseconds;
using std::chrono::seconds;

// #20418: a question for the read index was asked again under the number it had before, and answers to the heartbeats
// of the first time, which had waited at a leader that stood still, confirmed it, although another one led by then.
TEST(EtcdRecord, PausedLeaderAnswersNoStaleRead) {
  for_seeds(3, [](uint64_t seed) {
    Scenario scenario({.seed = seed});
    const size_t old = scenario.await_leader();
    scenario.must(old, command::put("k", "old"));
    EXPECT_TRUE(scenario.await_equal());
    // Rounds of reads are under way, of its own and of others, at another moment with each seed.
    std::vector<Answer<Result<std::string>>> before;
    const uint64_t steps = scenario.cluster.steps() + scenario.cluster.random.below(60);
    while (scenario.cluster.steps() < steps) {
      before.push_back(scenario.read(scenario.cluster.random.below(3), "k"));
      scenario.cluster.step();
    }
    before.push_back(scenario.read(old, "k"));
    scenario.cluster.pause(old);
    scenario.run_for(milliseconds(2));  // answers come, and wait for it
    for (size_t node = 0; node < 3; ++node) {
      if (node != old) scenario.cluster.network.cut(static_cast<uint32_t>(node), static_cast<uint32_t>(old));
    }
    EXPECT_TRUE(scenario.until([&] { return scenario.ready_leader().value_or(old) != old; }));
    const size_t leader = *scenario.ready_leader();
    scenario.must(leader, command::put("k", "new"));
    scenario.cluster.network.heal_all();
    scenario.cluster.resume(old);
    EXPECT_EQ(scenario.member(old).state().raft.role, raft::Role::kLeader);  // it knows of nothing yet
    std::vector<Answer<Result<std::string>>> after;
    uint64_t answers = 0;
    scenario.until(
        [&] {
          if (after.size() < 200) {
            for (size_t node = 0; node < 3; ++node) after.push_back(scenario.read(node, "k"));
          }
          return false;
        },
        seconds(1));
    for (const auto& read : after) {
      if (!read->has_value() || !**read) continue;
      ++answers;
      EXPECT_EQ(***read, "new");
    }
    EXPECT_GT(answers, 50U);
    EXPECT_TRUE(scenario.await_equal());
  });
}

// #7331: a new leader gave its commit index as the read index before an entry of its own term was committed; the one
// before it may have committed, and answered, more.
TEST(EtcdRecord, NewLeaderReadsAfterItsFirstCommit) {
  for_seeds(10, [](uint64_t seed) {
    Scenario scenario({.seed = seed});
    const size_t old = scenario.await_leader();
    const size_t next = scenario.follower(old);
    const size_t third = scenario.follower(old, 1);
    const auto at = [](size_t node) { return static_cast<SimulatedNetwork::Node>(node); };
    scenario.must(old, command::put("k", "old"));
    EXPECT_TRUE(scenario.await_equal());
    scenario.cut_off(third);
    const uint64_t last = scenario.member(next).state().raft.last_index;
    const auto put = scenario.ask(old, command::put("k", "new"));
    EXPECT_TRUE(scenario.until([&] { return scenario.member(next).state().raft.last_index > last; }));
    scenario.cluster.network.cut(at(old), at(next));  // it is not told that the entry is committed
    ASSERT_TRUE(scenario.until([&] { return put->has_value(); }));
    ASSERT_TRUE(**put);
    scenario.power_off(old, MemoryDisk::Loss::kNothing);
    scenario.cluster.network.heal_all();
    scenario.cluster.network.cut(at(next), at(third), Network::Lane::kAppend);  // elected, but commits nothing
    EXPECT_TRUE(scenario.until([&] { return scenario.cluster.leader() == next; }));
    EXPECT_EQ(scenario.look(next, "k"), "old");  // so that there is something to get wrong
    const auto read = scenario.read(next, "k");
    scenario.until([&] { return read->has_value(); }, seconds(2));
    const auto is_stale = [&] { return read->has_value() && **read && ***read == "old"; };
    EXPECT_FALSE(is_stale()) << "an acknowledged write is not seen";
    scenario.cluster.network.heal_all();
    scenario.start(old);
    EXPECT_TRUE(scenario.await_equal());
    EXPECT_FALSE(is_stale());
    EXPECT_EQ(scenario.look(third, "k"), "new");
  });
}

// #18667: in a transaction with a read of an old revision, members other than the client's left the read out, and with
// it the refusal because that revision is compacted (or still to come): they did its writes, the client's own did not.
TEST(EtcdRecord, TransactionThatReadsThePastIsRefusedByAll) {
  for_seeds(15, [](uint64_t seed) {
    Scenario scenario({.seed = seed});
    const size_t leader = scenario.await_leader();
    scenario.must(leader, command::put("k", "1"));
    const int64_t compacted = scenario.must(leader, command::put("k", "2"));
    scenario.must(leader, command::compaction(compacted));
    int64_t revision = compacted;
    for (const int64_t asked : {compacted - 1, compacted + 1000}) {
      const auto write_and_read =
          build::txn({}, {build::op(build::put("x", "half")), build::op(build::range("k", "", asked))});
      const auto read_and_write =
          build::txn({}, {build::op(build::range("k", "", asked)), build::op(build::put("x", "half"))});
      const auto nested = build::txn({}, {build::op(build::put("x", "half")), build::op(read_and_write)});
      for (const auto& txn : {write_and_read, read_and_write, nested}) {
        for (size_t node = 0; node < 3; ++node) {
          EXPECT_FALSE(scenario.write(node, command::txn(txn))) << "through member " << node;
        }
      }
    }
    // Compacted in the same batch of entries.
    for (size_t node = 0; node < 3; ++node) {
      const int64_t last = scenario.must(leader, command::put("k", "3"));
      const auto compaction = scenario.ask(node, command::compaction(last));
      const auto txn = scenario.ask(node, command::txn(build::txn({}, {build::op(build::put("x", "half")),
                                                                       build::op(build::range("k", "", last - 1))})));
      EXPECT_TRUE(scenario.until([&] { return compaction->has_value() && txn->has_value(); }));
      EXPECT_FALSE(**txn);
      revision = last;
    }
    EXPECT_TRUE(scenario.await_equal());
    for (size_t node = 0; node < 3; ++node) {
      EXPECT_EQ(scenario.published(node).revision, revision) << "member " << node;
      EXPECT_EQ(scenario.look(node, "x"), "") << "member " << node;
      EXPECT_EQ(difference(scenario.member(0), scenario.member(node)), "");
    }
  });
}

}  // namespace
}  // namespace sim
