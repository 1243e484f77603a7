// etcd's record of consistency faults (etcd_record.md): what crashes left behind.
#include "sim/cut_alone.h"
#include "sim/cut_points.h"
#include "sim/seeds.h"

namespace sim {
namespace {

using Loss = MemoryDisk::Loss;
using std::chrono::milliseconds;

// Requests of all kinds, so that one batch of apply has some that write keys and some that do not.
std::vector<Answer<Result<apply::Message>>> burst(Scenario& scenario, size_t node, int count) {
  static int64_t next_lease = 1000;
  std::vector<Answer<Result<apply::Message>>> answers;
  for (int i = 0; i < count; ++i) {
    const std::string key = "k" + std::to_string(scenario.cluster.random.below(20));
    switch (scenario.cluster.random.below(6)) {
      case 0:
        answers.push_back(scenario.ask(node, command::grant(next_lease++, 100'000)));
        break;
      case 1:
        answers.push_back(scenario.ask(node, command::erase(key)));
        break;
      case 2:
        answers.push_back(scenario.ask(node, command::compaction(scenario.published(node).revision)));
        break;
      default:
        answers.push_back(scenario.ask(node, command::put(key, "v" + std::to_string(i))));
    }
  }
  return answers;
}

bool all_there(const std::vector<Answer<Result<apply::Message>>>& answers) {
  return std::all_of(answers.begin(), answers.end(), [](const auto& answer) { return answer->has_value(); });
}

// #13766: the index of the last entry that was applied went to disk in another transaction than what the entry did. A
// member that was killed under load then skipped the entry (or did it twice), and its revisions differed from the
// others' at the same index for ever.
TEST(EtcdRecord, CrashUnderHighLoad) {
  for_seeds(20, [](uint64_t seed) {
    Scenario scenario({.seed = seed});
    // At one change after the other; half of the time nothing is lost, as when only the process dies.
    constexpr size_t kRounds = 60;
    for (size_t round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
      const size_t leader = scenario.await_leader();
      const size_t victim = scenario.follower(leader, round % 2);
      const uint64_t cuts = scenario.power_cuts(victim);
      MemoryDisk& disk = scenario.disk(victim);
      scenario.cluster.node(victim).loss = round % 4 < 2    ? Loss::kNothing
                                           : round % 4 == 2 ? Loss::kRandom
                                                            : Loss::kEverything;
      disk.cut_power_at(disk.changes() + round);
      for (int i = 0; i < 40 && scenario.power_cuts(victim) == cuts; ++i) {
        const auto answers = burst(scenario, leader, 40);
        EXPECT_TRUE(scenario.until([&] { return all_there(answers); }));
      }
      EXPECT_EQ(scenario.power_cuts(victim), cuts + 1);
      EXPECT_TRUE(scenario.await_equal());
      for (size_t i = 1; i < 3; ++i) EXPECT_EQ(difference(scenario.member(0), scenario.member(i)), "");
    }
  });
}

// #14370: a cluster of one answered while its own sync of the entry was still under way; the power went, and the write
// was gone.
TEST(EtcdRecord, SingleMemberLosesNoWrite) {
  for_seeds(10, [](uint64_t seed) {
    Scenario scenario({.nodes = 1, .seed = seed});
    scenario.cluster.node(0).loss = Loss::kEverything;
    Content acknowledged;
    uint64_t written = 0;
    for (uint64_t cut = 0; cut < 40 && !testing::Test::HasFailure(); ++cut) {
      scenario.await_leader();
      for (const auto& [key, value] : acknowledged) EXPECT_EQ(scenario.look(0, key), value) << key << " is lost";
      scenario.disk(0).cut_power_at(scenario.disk(0).changes() + cut);
      const uint64_t starts = scenario.cluster.node(0).starts;
      const auto is_cut = [&] { return !scenario.cluster.is_up(0) || scenario.cluster.node(0).starts > starts; };
      while (!is_cut() && !scenario.cluster.stopped()) {
        const std::string key = "k" + std::to_string(written % 50);
        const std::string value = std::to_string(++written);
        const auto answer = scenario.ask(0, command::put(key, value));
        acknowledged.erase(key);  // until it is answered, either
        scenario.until([&] { return answer->has_value() || is_cut(); });
        if (answer->has_value() && **answer) acknowledged[key] = value;
      }
    }
    EXPECT_GT(acknowledged.size(), 20U);
  });
}

// #14140, #12589: followers confirmed, or a leader counted itself, before the sync; when the power of all went at once,
// what was acknowledged was gone, and reads went back.
TEST(EtcdRecord, AllPowerGoesAtOnce) {
  for_seeds(10, [](uint64_t seed) {
    Scenario scenario({.seed = seed});
    for (int round = 0; round < 15 && !testing::Test::HasFailure(); ++round) {
      const size_t leader = scenario.await_leader();
      const std::string value = "v" + std::to_string(round);
      scenario.must(scenario.follower(leader, round % 2), command::put("k", value));
      for (size_t i = 0; i < 3; ++i) scenario.power_off(i, Loss::kEverything);
      for (size_t i = 0; i < 3; ++i) scenario.start(i);
      const auto read = scenario.read(scenario.await_leader(), "k");
      ASSERT_TRUE(scenario.until([&] { return read->has_value(); }));
      ASSERT_TRUE(**read) << (*read)->error().message;
      EXPECT_EQ(***read, value) << "an acknowledged write is lost";
    }
  });
}

// #14685: a crash while the database was made smaller left the data of entries without their index: they were applied
// again, and the member's revision ran ahead. Nothing is defragmented here on demand; free pages go back by themselves.
TEST(EtcdRecord, CrashWhileSpaceIsGivenBack) {
  const auto options = [](member::Options& options) {
    options.store_wal_bytes_max = 8 << 20;
    options.checkpoint_from_bytes = 2 << 20;
    options.log_segment_bytes = 1 << 20;
  };
  for_seeds(60, [&](uint64_t seed) {
    Scenario before({.nodes = 1, .seed = seed, .options = options});
    before.await_leader();
    before.fill(190, 120'000);
    const int64_t erased = before.must(0, command::erase("fill/", "fill0"));
    EXPECT_TRUE(before.await_equal());
    before.stop(0);
    int64_t acknowledged = 0;
    const auto compact_and_write = [&](Scenario& scenario) {
      acknowledged = erased;
      const int64_t size = scenario.member(0).state().store.size_bytes;
      const auto compacted = scenario.ask(0, command::compaction(erased));
      const auto smaller = [&] { return scenario.member(0).state().store.size_bytes < size / 2; };
      for (int i = 0; i < 200 && scenario.cluster.is_up(0) && !smaller(); ++i) {
        const auto put = scenario.ask(0, command::put("after", std::to_string(i)));
        scenario.until([&] { return put->has_value() || !scenario.cluster.is_up(0); });
        if (put->has_value() && **put) acknowledged = erased + i + 1;
        scenario.until([&] { return !scenario.cluster.is_up(0); }, milliseconds(20));
      }
      EXPECT_TRUE(!scenario.cluster.is_up(0) || smaller()) << "nothing was given back";
    };
    const auto check = [&](Scenario& scenario) {
      const int64_t revision = scenario.published(0).revision;
      // One put may have been under way.
      EXPECT_GE(revision, acknowledged);
      EXPECT_LE(revision, acknowledged + 1) << "an entry was applied twice";
      EXPECT_EQ(scenario.must(0, command::put("one more", "")), revision + 1);
      EXPECT_EQ(content_of(scenario.member(0)).size(), acknowledged == erased && revision == erased ? 1U : 2U);
    };
    const uint64_t cuts = cut_alone(seed, before.disk(0), options, 90, compact_and_write, check);
    std::printf("%llu cuts\n", static_cast<unsigned long long>(cuts));
    EXPECT_GT(cuts, 5U);
  });
}

// #17780, #6633: the newest revision was a deletion, compaction removed its row, and a member that crashed then counted
// its revisions from what was left: its revision had gone down.
TEST(EtcdRecord, RevisionDoesNotFallAtACrashInACompaction) {
  for_seeds(10, [](uint64_t seed) {
    Scenario before({.nodes = 1, .seed = seed});
    before.await_leader();
    before.fill(40, 100);
    before.must(0, command::put("last", "v"));
    const int64_t deleted = before.must(0, command::erase("last"));
    EXPECT_TRUE(before.await_equal());
    before.stop(0);
    const auto compact_twice = [&](Scenario& scenario) {
      // At the deletion its row stays for watchers; behind the next one it goes.
      for (const auto& command : {command::compaction(deleted, true), command::erase("fill/", "fill0"),
                                  command::compaction(deleted + 1, true)}) {
        const auto answer = scenario.ask(0, command);
        scenario.until([&] { return answer->has_value() || !scenario.cluster.is_up(0); });
        if (!answer->has_value()) return;
      }
      scenario.until([&] { return !scenario.cluster.is_up(0); }, milliseconds(50));
    };
    const auto check = [&](Scenario& scenario) {
      const int64_t revision = scenario.published(0).revision;
      EXPECT_GE(revision, deleted) << "the revision went down";
      EXPECT_LE(revision, deleted + 1);
      EXPECT_EQ(scenario.must(0, command::put("next", "v")), revision + 1);
    };
    EXPECT_GT(cut_alone(
                  seed, before.disk(0), [](member::Options&) {}, 1, compact_twice, check),
              5U);
  });
}

// #3879: a member that was restarted answered reads from what it had until it had caught up with its own log.
TEST(EtcdRecord, RestartedMemberDoesNotReadThePast) {
  for_seeds(10, [](uint64_t seed) {
    for (const size_t nodes : {1U, 3U}) {
      Scenario scenario({.nodes = nodes, .seed = seed});
      const size_t leader = scenario.await_leader();
      scenario.fill(200, 20);
      scenario.must(leader, command::put("k", "new"));
      for (size_t i = 0; i < nodes; ++i) scenario.power_off(i, Loss::kEverything);  // the store is behind the log
      for (size_t i = 0; i < nodes; ++i) scenario.start(i);
      // Asked all the time, also in the moment when it leads and has not applied its log.
      constexpr size_t kOpenMax = 20;
      uint64_t answers = 0;
      std::vector<std::vector<Answer<Result<std::string>>>> reads(nodes);
      const bool enough = scenario.until([&] {
        for (size_t i = 0; i < nodes; ++i) {
          std::erase_if(reads[i], [&](const auto& read) {
            if (!read->has_value() || !**read) return read->has_value();
            EXPECT_EQ(***read, "new") << "a linearizable read of what was before the restart";
            ++answers;
            return true;
          });
          if (scenario.cluster.is_up(i) && reads[i].size() < kOpenMax) reads[i].push_back(scenario.read(i, "k"));
        }
        return answers > 100;
      });
      EXPECT_TRUE(enough);
    }
  });
}

}  // namespace
}  // namespace sim
