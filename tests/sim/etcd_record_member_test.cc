// etcd's record of consistency faults (etcd_record.md): snapshots between members, and who takes part.
#include <utility>

#include "member/reconfig.h"
#include "sim/scenario.h"
#include "sim/seeds.h"

namespace sim {
namespace {

using Change = conclavepb::MembershipChange;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The file that a snapshot is fetched into, once there is one.
std::optional<std::string> incoming_file(MemoryDisk& disk) {
  if (const auto there = disk.exists("data/snap"); !there || !*there) return std::nullopt;
  const auto names = disk.list("data/snap");
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    if (name.starts_with("incoming")) return "data/snap/" + name;
  }
  return std::nullopt;
}

// Asks only when the disk was changed: a look is a disk call, too, and takes its time.
template <class Look>
auto when_changed(MemoryDisk& disk, Look look) {
  return [&disk, look, last = uint64_t{0}]() mutable {
    return std::exchange(last, disk.changes()) != disk.changes() && look();
  };
}

// Beside the generation in force another one is being built.
bool is_building(MemoryDisk& disk) {
  const auto generations = disk.list("data/store");
  return generations && generations->size() > 1;
}

// #18055, #20133: a second snapshot came soon after the first; the member looked for the file of the one and found it
// gone, or the other's, and panicked.
TEST(EtcdRecord, TwoSnapshotsInAShortTime) {
  uint64_t runs = 0;
  uint64_t replacements = 0;
  for_seeds(6, [&](uint64_t seed) {
    Scenario scenario({.seed = seed});
    const size_t lagging = scenario.follower(scenario.await_leader());
    scenario.fill(10, 100);
    EXPECT_TRUE(scenario.await_equal());
    scenario.cut_off(lagging);
    scenario.leave_behind(lagging);
    SimulatedNetwork::Quality slow;
    slow.bytes_per_second = 100'000;
    scenario.cluster.network.set_quality(Network::Lane::kSnapshot, slow);
    scenario.cluster.network.heal_all();
    MemoryDisk& disk = scenario.disk(lagging);
    EXPECT_TRUE(scenario.until(when_changed(disk, [&] { return incoming_file(disk).has_value(); })));
    if (seed % 2 == 0) {
      scenario.run_for(milliseconds(scenario.cluster.random.below(2000)));
    } else {  // it takes its time to build
      auto& speed = scenario.cluster.node(lagging).machine->disk_speed;
      speed.call_us = 10'000;
      speed.sync_us = 100'000;
      EXPECT_TRUE(scenario.until(when_changed(disk, [&] { return is_building(disk); })));
    }
    // While it is fetched or built another one leads and offers its own; then the log goes on without both of them.
    const size_t leader = scenario.await_leader();
    const size_t other = 3 - leader - lagging;
    scenario.member(leader).transfer_leadership(scenario.member(other).member_id(), [](const Status&) {});
    EXPECT_TRUE(scenario.until([&] { return scenario.ready_leader() == other; }));
    scenario.run_for(milliseconds(scenario.cluster.random.below(1000)));
    scenario.leave_behind(lagging);
    scenario.cluster.node(lagging).machine->disk_speed = {};
    scenario.cluster.network.set_quality(Network::Lane::kSnapshot, {});
    EXPECT_TRUE(scenario.await_equal());
    for (size_t i = 1; i < 3; ++i) EXPECT_EQ(difference(scenario.member(0), scenario.member(i)), "");
    ++runs;
    replacements += scenario.cluster.replacements();
  });
  std::printf("%llu snapshots in %llu runs\n", static_cast<unsigned long long>(replacements),
              static_cast<unsigned long long>(runs));
  if (runs >= 10) {
    EXPECT_GT(replacements, runs) << "never two in one run";
  }
}

// #20271: a page of a snapshot that had been received was damaged (it read as zeros); the member opened it as its store
// and panicked whenever it met that page.
TEST(EtcdRecord, DamagedSnapshotIsNotPutInForce) {
  for_seeds(10, [](uint64_t seed) {
    Scenario scenario({.seed = seed});
    const size_t lagging = scenario.follower(scenario.await_leader());
    scenario.fill(10, 100);
    EXPECT_TRUE(scenario.await_equal());
    scenario.cut_off(lagging);
    scenario.leave_behind(lagging);
    scenario.cluster.network.heal_all();
    std::optional<std::string> file;
    uint64_t bytes = 0;
    MemoryDisk& disk = scenario.disk(lagging);
    EXPECT_TRUE(scenario.until(when_changed(disk, [&] {
      file = incoming_file(disk);
      if (file) bytes = disk.content(*file)->size();
      return bytes > 100'000;
    })));
    ASSERT_TRUE(file);
    for (int flips = 0; flips < 3; ++flips) {
      disk.flip_bit(*file, scenario.cluster.random.below(8 * bytes));
    }
    EXPECT_TRUE(scenario.await_equal());
    EXPECT_EQ(scenario.cluster.replacements(), 1U);
    for (size_t i = 1; i < 3; ++i) EXPECT_EQ(difference(scenario.member(0), scenario.member(i)), "");
  });
}

Change change_of(Change::Kind kind, uint64_t id) {
  Change change;
  change.set_kind(kind);
  change.set_id(id);
  return change;
}

constexpr uint64_t kLearnerId = 4711;

// The machine `node` joins as a learner, and is where the others are.
void join(Scenario& scenario, size_t node) {
  Cluster::Node& machine = scenario.cluster.node(node);
  const size_t leader = scenario.await_leader();
  Change add = change_of(Change::ADD, kLearnerId);
  add.set_is_learner(true);
  for (const std::string& url : machine.options.peer_urls) add.add_peer_urls(url);
  const auto added = scenario.change(leader, add);
  ASSERT_TRUE(scenario.until([&] { return added->has_value(); }));
  ASSERT_TRUE(**added) << (*added)->error().message;
  machine.options.join_existing = true;
  machine.options.initial_cluster.clear();
  for (const apply::Member& member : scenario.member(leader).members()) {
    if (member.id != kLearnerId) machine.options.initial_cluster.push_back({member.name, member.peer_urls});
  }
  machine.options.initial_cluster.push_back({machine.options.name, machine.options.peer_urls});
  machine.joining = true;
  scenario.start(node);
  ASSERT_TRUE(scenario.await_equal());
}

// A new leader has to hear first that the learner is in sync.
void promote(Scenario& scenario) {
  for (int i = 0; i < 20; ++i) {
    const auto promoted = scenario.change(scenario.await_leader(), change_of(Change::PROMOTE, kLearnerId));
    ASSERT_TRUE(scenario.until([&] { return promoted->has_value(); }));
    if (**promoted) return;
    EXPECT_EQ((*promoted)->error().message, member::kErrorLearnerNotReady);
    scenario.run_for(milliseconds(100));
  }
  FAIL() << "it is never promoted";
}

bool is_learner(Scenario& scenario, size_t at) {
  for (const apply::Member& member : scenario.member(at).members()) {
    if (member.id == kLearnerId) return member.is_learner;
  }
  ADD_FAILURE() << "member " << at << " does not know it";
  return false;
}

// #11633 (PR 11640), #10537: what a learner counts for. A cluster of one refused to promote its only learner; one that
// counted it too early would stand still, or commit, by the word of a learner.
TEST(EtcdRecord, LearnerCountsForNothing) {
  for_seeds(20, [](uint64_t seed) {
    Scenario scenario({.nodes = 4, .members = 3, .seed = seed});
    const size_t leader = scenario.await_leader();
    join(scenario, 3);
    if (testing::Test::HasFatalFailure()) return;
    // Two voters of three are a quorum, whatever the learner does.
    scenario.stop(scenario.follower(leader) % 3);
    scenario.cluster.pause(3);
    scenario.must(scenario.await_leader(), command::put("k", "by two voters"));
    scenario.cluster.resume(3);
    // One voter and a learner are none.
    const size_t last = scenario.await_leader();
    for (size_t i = 0; i < 3; ++i) {
      if (i != last) scenario.stop(i);
    }
    const auto put = scenario.ask(last, command::put("k", "by a learner"));
    scenario.run_for(seconds(3));
    EXPECT_FALSE(put->has_value() && **put) << "one voter of three and a learner committed it";
    EXPECT_EQ(scenario.look(3, "k"), "by two voters");
    EXPECT_FALSE(scenario.cluster.leader()) << "a voter alone leads";
    for (size_t i = 0; i < 3; ++i) scenario.start(i);
    EXPECT_TRUE(scenario.await_equal());
  });
  Scenario scenario({.nodes = 2, .members = 1});
  join(scenario, 1);
  promote(scenario);
  EXPECT_TRUE(scenario.await_equal());
  scenario.must(scenario.await_leader(), command::put("k", "by both"));
}

// #19557, #20793, #18347: a promotion was kept in one of two places where the members are stored; after a restart, or
// on a member that got a snapshot, the voter was a learner again.
TEST(EtcdRecord, PromotionIsRemembered) {
  for_seeds(15, [](uint64_t seed) {
    Scenario scenario({.nodes = 4, .members = 3, .seed = seed});
    const size_t away = scenario.follower(scenario.await_leader()) % 3;
    join(scenario, 3);
    if (testing::Test::HasFatalFailure()) return;
    scenario.fill(10, 100);
    EXPECT_TRUE(scenario.await_equal());
    scenario.cut_off(away);  // and will have it by a snapshot
    EXPECT_TRUE(scenario.until([&] { return scenario.ready_leader().value_or(away) != away; }));
    promote(scenario);
    scenario.leave_behind(away);
    scenario.cluster.network.heal_all();
    EXPECT_TRUE(scenario.await_equal());
    EXPECT_GE(scenario.cluster.replacements(), 1U);
    for (int restart = 0; restart < 2; ++restart) {
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_FALSE(is_learner(scenario, i)) << "in the list of member " << i;
        EXPECT_FALSE(scenario.member(3).is_learner());
        EXPECT_EQ(difference(scenario.member(0), scenario.member(i)), "");
      }
      for (size_t i = 0; i < 4; ++i) scenario.power_off(i, MemoryDisk::Loss::kEverything);
      for (size_t i = 0; i < 4; ++i) scenario.start(i);
      EXPECT_TRUE(scenario.await_equal());
    }
    // And it votes: three of four go on without one of the others.
    scenario.stop(away);
    scenario.must(scenario.await_leader(), command::put("k", "v"));
  });
}

// rafthttp's AddRemote: a member that was away while another one joined has not heard of it; when that one leads, it is
// the only one to tell.
TEST(EtcdRecord, FollowsALeaderOfWhomItHasNotHeard) {
  for_seeds(15, [](uint64_t seed) {
    Scenario scenario({.nodes = 4, .members = 3, .seed = seed});
    const size_t away = scenario.follower(scenario.await_leader()) % 3;
    scenario.fill(10, 100);
    EXPECT_TRUE(scenario.await_equal());
    scenario.stop(away);
    EXPECT_TRUE(scenario.until([&] { return scenario.ready_leader().value_or(away) != away; }));
    scenario.cluster.node(away).wanted = false;
    join(scenario, 3);
    if (testing::Test::HasFatalFailure()) return;
    promote(scenario);
    const size_t leader = scenario.await_leader();
    if (leader != 3) scenario.member(leader).transfer_leadership(kLearnerId, [](const Status&) {});
    EXPECT_TRUE(scenario.until([&] { return scenario.ready_leader() == 3U; }));
    scenario.must(3, command::put("k", "of the new one"));
    scenario.cluster.node(away).wanted = true;
    scenario.start(away);
    EXPECT_TRUE(scenario.await_equal());
    EXPECT_EQ(scenario.await_leader(), 3U) << "it was told by another one";
    EXPECT_EQ(scenario.look(away, "k"), "of the new one");
  });
}

// Who joins is told who takes part by one that knows it now: what a member has applied so far may be of the past.
TEST(EtcdRecord, WhoHearsNobodyTellsNobodyWhoTakesPart) {
  for_seeds(6, [](uint64_t seed) {
    constexpr SimulatedNetwork::Node kJoiner = 77;
    Scenario scenario({.nodes = 3, .seed = seed});
    const size_t away = scenario.follower(scenario.await_leader());
    const auto asked = [&] {
      return scenario.cluster.network.ask_cluster(kJoiner, scenario.cluster.node(away).options.peer_urls);
    };
    scenario.cut_off(away);
    for (int i = 0; i < 50; ++i) {
      EXPECT_FALSE(asked()) << "it told what it has";
      scenario.run_for(milliseconds(200));
    }
    scenario.cluster.network.heal_all();
    EXPECT_TRUE(scenario.until([&] { return asked().has_value(); }));
  });
}

// "Has already been bootstrapped": a member whose folder was lost was started again as a new one. With the vote of what
// it had promised it elects one that never heard of it, and what was acknowledged is gone.
TEST(EtcdRecord, MemberWithoutItsFolderIsNotLetIn) {
  for_seeds(6, [](uint64_t seed) {
    for (const bool joined : {false, true}) {
      Scenario scenario({.nodes = 3, .seed = seed});
      const size_t leader = scenario.await_leader();
      const size_t lost = scenario.follower(leader);
      const size_t behind = 3 - leader - lost;
      scenario.must(leader, command::put("k", "old"));
      EXPECT_TRUE(scenario.until([&] {  // all have told their folders
        const auto members = scenario.member(behind).members();
        return std::all_of(members.begin(), members.end(), [](const auto& member) { return member.folder_id != 0; });
      }));
      scenario.stop(behind);
      scenario.must(leader, command::put("k", "acknowledged by two"));
      scenario.stop(lost);
      scenario.stop(leader);
      scenario.cluster.wipe(lost);
      if (joined) {
        scenario.cluster.node(lost).options.join_existing = true;
        scenario.cluster.node(lost).joining = true;
      }
      scenario.start(behind);
      scenario.start(lost);
      scenario.run_for(seconds(10));
      EXPECT_FALSE(scenario.ready_leader()) << "two that do not have it lead";
      EXPECT_EQ(scenario.look(behind, "k"), "old");
      scenario.stop(lost);
      scenario.start(leader);
      const size_t again = scenario.await_leader();
      EXPECT_EQ(again, leader);
      EXPECT_EQ(scenario.look(again, "k"), "acknowledged by two");
    }
  });
}

// #21694: an update of a learner's URLs made it a voter in the list of members, while Raft went on to take it for a
// learner; it could never be promoted.
TEST(EtcdRecord, UpdateLeavesALearnerALearner) {
  Scenario scenario({.nodes = 4, .members = 3});
  const size_t leader = scenario.await_leader();
  join(scenario, 3);
  if (testing::Test::HasFatalFailure()) return;
  Change update = change_of(Change::UPDATE, kLearnerId);
  for (const std::string& url : scenario.cluster.node(3).options.peer_urls) update.add_peer_urls(url);
  update.add_peer_urls("http://also-m3:2380");
  const auto updated = scenario.change(leader, update);
  ASSERT_TRUE(scenario.until([&] { return updated->has_value(); }));
  EXPECT_TRUE(**updated);
  EXPECT_TRUE(scenario.await_equal());
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(is_learner(scenario, i));
  EXPECT_TRUE(scenario.member(3).is_learner());
  promote(scenario);
  EXPECT_TRUE(scenario.await_equal());
  for (size_t i = 0; i < 4; ++i) EXPECT_FALSE(is_learner(scenario, i));
  EXPECT_FALSE(scenario.member(3).is_learner());
}

}  // namespace
}  // namespace sim
