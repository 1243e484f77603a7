// Everything at once, in any order: lost, repeated, reordered messages, one-way cuts, slow and stuck disks, crashes
// that forget what was not synced, elections, changes of the membership, transfers, snapshots. The cluster checks the
// rules after each step (raft_test_cluster.h); at the end everything is healed and all members agree.
// CONCLAVE_RAFT_SEEDS=n runs more seeds, CONCLAVE_RAFT_SEED=n this one alone.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "raft/raft_test_cluster.h"

namespace raft {
namespace {

constexpr uint64_t kSeeds = 2000;
constexpr int kStepsPerSeed = 1500;
constexpr uint64_t kMembers = 5;
constexpr size_t kOnTheWayMax = 150;  // messages; more are lost

struct Counts {
  uint64_t decided = 0, memberships = 0, transfers = 0, installs = 0, crashes = 0, reads = 0, terms = 0;
};

// How often what happens, in percent, each with those before it; the rest are faults.
struct Manner {
  uint64_t deliver, tick, sync, apply, propose, read, snapshot, membership;
  uint64_t bytes_min;  // of a proposal; with many each has a message to itself
};
constexpr Manner kUsual{40, 52, 72, 84, 90, 93, 97, 99, 0};
// Leaders come and go before their entries are everywhere, so that those of several terms meet (paper, figure 8).
constexpr Manner kRestless{26, 56, 80, 84, 92, 92, 92, 92, 250};
// Changes of the membership that are committed and not applied yet.
constexpr Manner kReconfiguring{40, 53, 72, 77, 80, 82, 88, 96, 0};

const Manner& manner_of(uint64_t seed) { return seed % 5 == 3 ? kRestless : seed % 5 == 4 ? kReconfiguring : kUsual; }

class Chaos {
 public:
  explicit Chaos(uint64_t seed)
      : manner_(manner_of(seed)), random_(seed), cluster_(first(seed), kMembers, seed, config(seed)) {}

  void step() {
    const uint64_t id = 1 + random_.below(kMembers);
    if (!cluster_.is_up(id)) {
      if (random_.below(20) == 0) cluster_.start(id);
      return;
    }
    const uint64_t action = random_.below(100);
    if (action < manner_.deliver) {
      deliver();
    } else if (action < manner_.tick) {
      cluster_.tick(id);
    } else if (action < manner_.sync) {
      cluster_.sync_one(id);
    } else if (action < manner_.apply) {
      cluster_.apply_one(id);
    } else if (action < manner_.propose) {
      (void)cluster_.propose(
          id, {std::to_string(next_++), Bytes(manner_.bytes_min + random_.below(300 - manner_.bytes_min), 'x')});
    } else if (action < manner_.read) {
      (void)cluster_.read(id, {next_++});
    } else if (action < manner_.snapshot) {
      if (!cluster_.serve_snapshot(id)) {
        random_.below(6) == 0 ? cluster_.fail_snapshot(id) : cluster_.fetch_snapshot(id);
      }
    } else if (action < manner_.membership) {
      change_membership(id);
    } else {
      disturb(id);
    }
  }

  // Nothing is broken any more: one leader, and all who take part have the same.
  void heal_and_compare() {
    cluster_.cut.clear();
    for (auto& [id, member] : cluster_.members) {
      member.disk_stands_still = false;
      member.apply_stands_still = false;
      if (!member.node) cluster_.start(id);
    }
    cluster_.tick_all(60);  // a member with a later term may still depose somebody once
    for (int round = 0; round < 240 && !agree(); ++round) cluster_.tick_all(1);
    ASSERT_TRUE(agree()) << states();
    // And it still works.
    const uint64_t leader = cluster_.leader();
    ASSERT_TRUE(cluster_.propose(leader, {"last"}));
    cluster_.tick_all(3);
    EXPECT_EQ(*cluster_.decided(cluster_.decided_count()).data, "last");
    EXPECT_TRUE(agree()) << states();
  }

  Counts counts() {
    Counts counts = counts_;
    counts.decided = cluster_.decided_count();
    counts.installs = cluster_.installs;
    counts.reads = cluster_.answered_reads.size();
    counts.terms = cluster_.node(cluster_.leader()).term();
    for (uint64_t index = 1; index <= counts.decided; ++index) {
      if (cluster_.decided(index).type == EntryType::kMembership) ++counts.memberships;
    }
    return counts;
  }

 private:
  static Membership first(uint64_t seed) {
    const bool restless = &manner_of(seed) == &kRestless;
    return TestCluster::all_voters(restless ? 3 + 2 * (seed % 2) : 1 + 2 * (seed % 3));
  }
  static Config config(uint64_t seed) {
    Config config = TestCluster::small();
    config.pre_vote = seed % 4 != 0;
    if (&manner_of(seed) == &kRestless) {
      config.pre_vote = false;
      config.message_bytes_max = 100;
      config.inflight_messages_max = 1;
    }
    config.kept.entries_max = &manner_of(seed) == &kRestless ? 4 + seed % 20 : seed % 20;  // 0: the log may be empty
    config.kept_for_catching_up.entries_max = 10 + seed % 50;
    return config;
  }

  void deliver() {
    auto& network = cluster_.network;
    while (network.size() > kOnTheWayMax) lose(random_.below(network.size()));
    if (network.empty()) return;
    const size_t number = random_.below(3) == 0 ? random_.below(network.size()) : 0;
    const uint64_t fate = random_.below(20);
    if (fate == 0) {
      lose(number);
      return;
    }
    if (fate == 1) network.push_back(network[number]);
    cluster_.deliver(number);
  }

  void lose(size_t number) { cluster_.network.erase(cluster_.network.begin() + static_cast<std::ptrdiff_t>(number)); }

  // Adds, promotes, demotes never, removes: one member at a time.
  void change_membership(uint64_t id) {
    Membership membership = cluster_.node(id).membership();
    auto& [voters, learners] = membership;
    const uint64_t who = 1 + random_.below(kMembers);
    if (membership.is_learner(who)) {
      std::erase(learners, who);
      if (random_.below(3) != 0) voters.push_back(who);
    } else if (membership.is_voter(who)) {
      if (voters.size() == 2) return;  // may never be heard of by the one that is left (node.h, set_membership)
      std::erase(voters, who);
    } else {
      (random_.below(3) == 0 ? voters : learners).push_back(who);
    }
    std::sort(voters.begin(), voters.end());
    std::sort(learners.begin(), learners.end());
    if (!voters.empty()) (void)cluster_.propose(id, membership);
  }

  void disturb(uint64_t id) {
    const uint64_t other = 1 + random_.below(kMembers);
    const uint64_t leader = cluster_.leader();
    constexpr uint64_t kOfRestless[] = {0, 0, 3, 3, 3, 5, 6, 6};
    const uint64_t kind = random_.below(8);
    switch (is_restless() ? kOfRestless[kind] : kind) {
      case 0:
        cluster_.crash(id, random_.below(5));
        ++counts_.crashes;
        break;
      case 1:
        cluster_.members.at(id).disk_stands_still ^= true;
        break;
      case 2:
        if (other != id) cluster_.cut.insert({id, other});
        break;
      case 3:
        cluster_.cut.clear();
        break;
      case 4:
        if (leader != kNobody && cluster_.transfer(leader, other)) ++counts_.transfers;
        break;
      case 5:  // The leader is alone and does not know yet.
        for (uint64_t member = 1; member <= kMembers && leader != kNobody; ++member) {
          cluster_.cut.insert({member, leader});
          if (random_.below(2) == 0) cluster_.cut.insert({leader, member});
        }
        break;
      case 6:  // The others run out of patience.
        for (uint64_t tick = 0; tick < 12; ++tick) {
          for (uint64_t member = 1; member <= kMembers; ++member) {
            if (member != leader && cluster_.is_up(member)) cluster_.tick(member);
          }
        }
        break;
      case 7:
        cluster_.members.at(id).apply_stands_still ^= true;
        break;
    }
  }

  bool is_restless() const { return &manner_ == &kRestless; }

  bool agree() {
    const uint64_t leader = cluster_.leader();
    if (leader == kNobody || cluster_.node(leader).transfer_target() != kNobody) return false;
    const Membership& membership = cluster_.node(leader).membership();
    if (!membership.is_voter(leader)) return false;  // about to step down
    for (const auto& [id, member] : cluster_.members) {
      if (membership.contains(id) && member.stored != cluster_.node(leader).last_index()) return false;
    }
    return true;
  }

  std::string states() {
    std::ostringstream out;
    out << "leader " << cluster_.leader() << ", members of " << cluster_.decided_count() << ": "
        << text_of(cluster_.membership_at(cluster_.decided_count()));
    for (const auto& [id, member] : cluster_.members) {
      const Node& node = *member.node;
      out << "\n"
          << id << ": " << name(node.role()) << " term " << node.term() << " leader " << node.leader() << " commit "
          << node.commit_index() << " durable " << node.durable_index() << " applied " << node.applied_index()
          << " last " << node.last_index() << " base " << node.log().base_index() << " members "
          << text_of(node.membership()) << " store " << member.stored;
    }
    return out.str();
  }

  const Manner& manner_;
  SeededRandom random_;
  TestCluster cluster_;
  uint64_t next_ = 1;
  Counts counts_;
};

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoull(text);
}

TEST(Faults, TheRulesHold) {
  const uint64_t only = number_of("CONCLAVE_RAFT_SEED", 0);
  const uint64_t seeds = only > 0 ? only : number_of("CONCLAVE_RAFT_SEEDS", kSeeds);
  const auto began = std::chrono::steady_clock::now();
  Counts all;
  for (uint64_t seed = only > 0 ? only : 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chaos chaos(seed);
    for (int step = 0; step < kStepsPerSeed && !testing::Test::HasFailure(); ++step) chaos.step();
    if (!testing::Test::HasFailure()) chaos.heal_and_compare();
    if (testing::Test::HasFailure()) return;
    const Counts counts = chaos.counts();
    all.decided += counts.decided;
    all.memberships += counts.memberships;
    all.transfers += counts.transfers;
    all.installs += counts.installs;
    all.crashes += counts.crashes;
    all.reads += counts.reads;
    all.terms += counts.terms;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::cout << seeds << " seeds, " << seeds * kStepsPerSeed << " steps in " << took.count() << " s: " << all.decided
            << " entries decided, " << all.memberships << " of them memberships, " << all.terms << " terms, "
            << all.transfers << " transfers begun, " << all.installs << " snapshots installed, " << all.crashes
            << " crashes, " << all.reads << " reads answered\n";
  if (only > 0) return;
  // It did come to all of that.
  EXPECT_GT(all.decided, seeds * 10);
  EXPECT_GT(all.memberships, seeds / 2);
  EXPECT_GT(all.transfers, seeds / 10);
  EXPECT_GT(all.installs, seeds / 10);
  EXPECT_GT(all.reads, seeds);
}

}  // namespace
}  // namespace raft
