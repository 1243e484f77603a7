// A power cut at every disk call of what happens rarely and changes much: a member's store is replaced by a snapshot;
// what a follower has logged and nobody ever committed is cut off, over several segments of its log.
//
// CONCLAVE_SIM_STRIDE: only every so many-th call, with one kind of loss in turn (default below); 1: every call with
// every kind. CONCLAVE_SIM_SEEDS, CONCLAVE_SIM_FIRST as in seeds.h.
#include "sim/cut_points.h"

#include "sim/seeds.h"

namespace sim {
namespace {

using Loss = MemoryDisk::Loss;

struct Kind {
  const char* name;
  Loss loss;
  bool again;
};
constexpr Kind kKinds[] = {{"everything that is not synced is lost", Loss::kEverything, false},
                           {"nothing is lost", Loss::kNothing, false},
                           {"some of it is lost or torn", Loss::kRandom, false},
                           {"the same, and once more while it starts", Loss::kRandom, true}};

void cut_everywhere(const char* name, const Episode& episode, uint64_t stride_otherwise,
                    const std::function<void(const EpisodeRun&)>& check_whole) {
  const EpisodeRun whole = run_episode(episode, {});
  if (testing::Test::HasFailure()) return;
  check_whole(whole);
  const uint64_t stride = std::max<uint64_t>(1, setting("CONCLAVE_SIM_STRIDE", stride_otherwise));
  uint64_t runs = 0;
  for (uint64_t change = episode.seed % stride; change < whole.changes; change += stride) {
    for (uint64_t kind = 0; kind < std::size(kKinds); ++kind) {
      if (stride > 1 && kind != (change / stride + episode.seed) % std::size(kKinds)) continue;
      SCOPED_TRACE("the power goes at change " + std::to_string(change) + " of " + std::to_string(whole.changes) +
                   " (" + std::to_string(whole.changes_caught_up) + ": where the others are); " + kKinds[kind].name);
      run_episode(episode, Cut{.change = change, .loss = kKinds[kind].loss, .again = kKinds[kind].again});
      ++runs;
      if (testing::Test::HasFailure()) return;
    }
  }
  std::printf(
      "seed %llu, %s: %llu disk calls of the victim, %llu of them may change the disk (%llu until it is where "
      "the others are); cut in %llu runs\n",
      static_cast<unsigned long long>(episode.seed), name, static_cast<unsigned long long>(whole.calls),
      static_cast<unsigned long long>(whole.changes), static_cast<unsigned long long>(whole.changes_caught_up),
      static_cast<unsigned long long>(runs));
}

// Of all machines; their processes are gone.
void take_disks(Scenario& scenario, Episode& episode) {
  const size_t leader = scenario.await_leader();
  episode.content = content_of(scenario.member(leader));
  for (size_t i = 0; i < scenario.cluster.size(); ++i) {
    scenario.stop(i);
    episode.disks.push_back(scenario.disk(i).clone());
  }
}

// The victim was away for so long that the others' logs no longer have what it lacks.
Episode lagging_member(uint64_t seed) {
  Episode episode{.seed = seed};
  // So small that an install checkpoints several times.
  episode.options = [](member::Options& options) { options.store_wal_bytes_max = 192 << 10; };
  Scenario scenario({.seed = seed, .options = episode.options});
  const size_t leader = scenario.await_leader();
  episode.victim = scenario.follower(leader, seed % 2);
  scenario.must(leader, command::grant(7, 100'000));
  scenario.must(leader, command::put("leased", "by 7", 7));
  scenario.fill(30, 500, "old/");
  EXPECT_TRUE(scenario.await_equal());
  scenario.stop(episode.victim);
  scenario.must(leader, command::grant(8, 100'000));
  scenario.must(leader, command::put("leased/too", "by 8", 8));
  scenario.must(leader, command::revoke(7));
  const int64_t compacted = scenario.fill(60, 2000, "new/");
  scenario.must(leader, command::erase("old/1", "old/2"));
  scenario.must(leader, command::compaction(compacted));
  scenario.fill(60, 2000, "new/");
  EXPECT_TRUE(scenario.await_equal());
  take_disks(scenario, episode);
  return episode;
}

// Of the log's segments on this disk, how many begin behind `index`.
size_t segments_behind(MemoryDisk& disk, uint64_t index) {
  const auto names = disk.list("data/wal");
  EXPECT_TRUE(names);
  return static_cast<size_t>(std::count_if(names->begin(), names->end(), [index](const std::string& name) {
    return name.ends_with(".wal") && std::stoull(name.substr(name.find('-') + 1), nullptr, 16) > index + 1;
  }));
}

// The victim led, alone at last, and logged what never reached anybody; the others went on without it.
Episode conflicting_member(uint64_t seed) {
  Episode episode{.seed = seed};
  episode.options = [](member::Options& options) {
    options.log_segment_bytes = 4096;
    options.snapshot_count = 1000;  // nothing is forgotten: no snapshot is needed
  };
  Scenario scenario({.seed = seed, .options = episode.options});
  const size_t leader = episode.victim = scenario.await_leader();
  scenario.fill(20, 100);
  EXPECT_TRUE(scenario.await_equal());
  const uint64_t common = scenario.published(leader).applied_index;
  MemoryDisk& disk = scenario.disk(leader);
  scenario.cut_off(leader);
  for (int i = 0; i < 16; ++i) {  // each one is a batch of the log
    const uint64_t syncs = disk.calls(MemoryDisk::Operation::kSync);
    scenario.ask(leader, command::put("never/" + std::to_string(i), std::string(900, 'n')));
    EXPECT_TRUE(scenario.until([&] { return disk.calls(MemoryDisk::Operation::kSync) > syncs; }));
  }
  EXPECT_GT(scenario.member(leader).state().raft.last_index, common + 15);
  EXPECT_EQ(scenario.member(leader).state().raft.commit_index, common);
  EXPECT_GE(segments_behind(disk, common), 3U);
  scenario.stop(leader);
  scenario.cluster.network.heal_all();
  scenario.fill(8, 300, "instead/");  // fewer than were never committed
  EXPECT_TRUE(scenario.await_equal());
  take_disks(scenario, episode);
  return episode;
}

TEST(CutPoints, OfASnapshotInstall) {
  for_seeds(20, [](uint64_t seed) {
    const Episode episode = lagging_member(seed);
    if (testing::Test::HasFailure()) return;
    cut_everywhere("a snapshot is installed", episode, 8, [](const EpisodeRun& whole) {
      EXPECT_EQ(whole.replacements, 1U);
      EXPECT_GT(whole.changes_caught_up, 200U);
      EXPECT_GT(whole.changes, whole.changes_caught_up);
    });
  });
}

TEST(CutPoints, OfAConflictOverSegments) {
  for_seeds(20, [](uint64_t seed) {
    const Episode episode = conflicting_member(seed);
    if (testing::Test::HasFailure()) return;
    cut_everywhere("a conflict is cut off", episode, 3, [](const EpisodeRun& whole) {
      EXPECT_EQ(whole.replacements, 0U);
      EXPECT_GT(whole.changes_caught_up, 10U);
      EXPECT_GT(whole.changes, whole.changes_caught_up);
    });
  });
}

}  // namespace
}  // namespace sim
