// etcd's record of consistency faults (etcd_record.md): leases that ended too early, too late or not at all.
#include "sim/cluster_sessions.h"
#include "sim/scenario.h"
#include "sim/seeds.h"

namespace sim {
namespace {

using history::LeaseCall;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kLease = 7;
constexpr const char* kKey = "leased";

void grant(Scenario& scenario, size_t node, int64_t ttl) {
  scenario.must(node, command::grant(kLease, ttl));
  scenario.must(node, command::put(kKey, "v", kLease));
}

bool is_over(Scenario& scenario, size_t node) {
  return !scenario.member(node).leases().find(kLease) && scenario.look(node, kKey).empty();
}

// Renews the lease through one member, every second.
class Renewer {
 public:
  Renewer(Scenario& scenario, size_t node) : scenario_(scenario), node_(node) {}
  void act() {
    const auto now = scenario_.cluster.clock.monotonic();
    if (answer_ && answer_->has_value() && **answer_) {
      renewed_ += ***answer_ > 0;
      lost_ += ***answer_ == 0;
      answer_.reset();
    }
    if (now < next_) return;
    next_ = now + seconds(1);
    answer_ = scenario_.keep_alive(node_, kLease);
  }
  uint64_t renewed() const { return renewed_; }
  uint64_t lost() const { return lost_; }  // it was told that there is no such lease

 private:
  Scenario& scenario_;
  const size_t node_;
  Answer<Result<int64_t>> answer_;
  std::chrono::nanoseconds next_{};
  uint64_t renewed_ = 0;
  uint64_t lost_ = 0;
};

// #15247, #12528: a leader that stood still (a sync that hangs, a busy processor) went on as the leader that it no
// longer was: by its clock the leases were over, and it revoked what clients kept alive with its successor.
TEST(EtcdRecord, PausedLeaderRevokesNothing) {
  for_seeds(10, [](uint64_t seed) {
    Scenario scenario({.seed = seed});
    const size_t old = scenario.await_leader();
    const size_t other = scenario.follower(old);
    grant(scenario, old, 5);
    Renewer renewer(scenario, other);
    const auto renew_for = [&](seconds time) { scenario.until([&] { return renewer.act(), false; }, time); };
    renew_for(seconds(2));
    scenario.cluster.pause(old);
    scenario.cut_off(old);  // what the others say meanwhile never reaches it
    renew_for(seconds(9));
    ASSERT_TRUE(scenario.ready_leader());
    ASSERT_NE(*scenario.ready_leader(), old);
    EXPECT_FALSE(is_over(scenario, other)) << "the successor did not keep it";
    scenario.cluster.network.heal_all();
    scenario.cluster.resume(old);
    EXPECT_EQ(scenario.member(old).state().raft.role, raft::Role::kLeader);  // it knows of nothing yet
    renew_for(seconds(10));
    EXPECT_FALSE(is_over(scenario, other)) << "the former leader revoked it";
    EXPECT_EQ(renewer.lost(), 0U);
    EXPECT_GT(renewer.renewed(), 12U);
    EXPECT_TRUE(scenario.await_equal());
    EXPECT_TRUE(scenario.until([&] { return is_over(scenario, other); }, seconds(10))) << "nobody renews it any more";
  });
}

// #15247, the other half: such a leader also answered renewals, of which its successor knew nothing.
TEST(EtcdRecord, PausedLeaderRenewsNothing) {
  for_seeds(10, [](uint64_t seed) {
    Scenario scenario({.seed = seed});
    const size_t old = scenario.await_leader();
    const size_t other = scenario.follower(old);
    grant(scenario, old, 5);
    scenario.cluster.pause(old);
    scenario.cut_off(old);
    EXPECT_TRUE(scenario.until([&] { return scenario.ready_leader().value_or(old) != old; }));
    scenario.run_for(seconds(3));
    ASSERT_FALSE(is_over(scenario, other));
    scenario.cluster.resume(old);  // and still reaches nobody
    EXPECT_EQ(scenario.member(old).state().raft.role, raft::Role::kLeader);
    const auto renewed = scenario.keep_alive(old, kLease);
    const bool over = scenario.until([&] { return is_over(scenario, other); }, seconds(20));
    EXPECT_TRUE(over);
    const bool promised = renewed->has_value() && **renewed && ***renewed > 0;
    EXPECT_FALSE(promised) << "nobody who counts has heard of the renewal";
  });
}

// #9888, #13508, #17132: each new leader gave every lease its whole time again (also with checkpoints, from the third
// leader on): one that nobody renews never ended while leaders came and went.
TEST(EtcdRecord, LeaseEndsAlthoughLeadersChange) {
  for_seeds(15, [](uint64_t seed) {
    for (const size_t nodes : {3U, 1U}) {
      Scenario scenario({.nodes = nodes, .seed = seed});
      size_t leader = scenario.await_leader();
      grant(scenario, leader, 10);
      const auto granted = scenario.cluster.clock.monotonic();
      uint64_t changes = 0;
      const auto lasted = [&] { return scenario.cluster.clock.monotonic() - granted; };
      while (lasted() < seconds(60) && !scenario.cluster.stopped()) {
        leader = scenario.await_leader();
        if (scenario.until([&] { return scenario.cluster.is_up(leader) && is_over(scenario, leader); }, seconds(6)))
          break;
        if (nodes == 1) {
          scenario.power_off(0, MemoryDisk::Loss::kEverything);
          scenario.start(0);
        } else {
          const uint64_t to = scenario.member(scenario.follower(leader)).member_id();
          scenario.member(leader).transfer_leadership(to, [](const Status&) {});
          EXPECT_TRUE(scenario.until([&] { return scenario.ready_leader().value_or(leader) != leader; }));
        }
        ++changes;
      }
      EXPECT_GT(changes, 0U);
      EXPECT_GE(lasted(), seconds(10)) << "it ended early";
      EXPECT_LE(lasted(), seconds(25)) << "it began anew " << changes << " times";
    }
  });
}

// #14758 (PR 20590): a renewal that met the lease's revocation was answered as if it had come before it.
TEST(EtcdRecord, RevokedLeaseIsNotRenewed) {
  for_seeds(10, [](uint64_t seed) {
    Scenario scenario({.seed = seed});
    history::Record record;
    struct Open {
      size_t call = 0;
      Answer<Result<int64_t>> answer;
    };
    std::vector<std::optional<Open>> open(3);
    const auto now = [&] { return scenario.cluster.clock.monotonic(); };
    uint64_t gone = 0;
    for (int64_t lease = 100; lease < 120; ++lease) {
      const size_t leader = scenario.await_leader();
      const size_t granted = begin_lease_call(record, {.kind = LeaseCall::Kind::kGrant, .lease = lease, .call = now()});
      scenario.must(leader, command::grant(lease, 60));
      end_lease_call(record, granted, history::Outcome::kOk, 60, now());
      scenario.must(leader, command::put("of " + std::to_string(lease), "v", lease));
      const size_t through = static_cast<size_t>(lease) % 3;
      scenario.run_for(std::chrono::microseconds(scenario.cluster.random.below(500)));
      const size_t revoked =
          begin_lease_call(record, {.kind = LeaseCall::Kind::kRevoke, .lease = lease, .call = now()});
      const auto answer = scenario.ask(through, command::revoke(lease));
      bool is_revoked = false;
      std::vector<uint64_t> told(3);
      EXPECT_TRUE(scenario.until([&] {
        if (!is_revoked && answer->has_value()) {
          is_revoked = true;
          EXPECT_TRUE(**answer);
          end_lease_call(record, revoked, history::Outcome::kOk, 0, now());
        }
        for (size_t node = 0; node < 3; ++node) {
          if (open[node] && open[node]->answer->has_value()) {
            const auto& ttl = **open[node]->answer;
            EXPECT_TRUE(ttl);
            end_lease_call(record, open[node]->call, history::Outcome::kOk, ttl.value_or(0), now());
            told[node] += ttl && *ttl == 0;
            open[node].reset();
          }
          if (!open[node]) {
            const size_t call = begin_lease_call(
                record, {.kind = LeaseCall::Kind::kKeepAlive, .lease = lease, .client = node, .call = now()});
            open[node] = Open{call, scenario.keep_alive(node, lease)};
          }
        }
        return is_revoked && std::all_of(told.begin(), told.end(), [](uint64_t times) { return times > 1; });
      }));
      EXPECT_TRUE(scenario.until([&] {
        return std::all_of(open.begin(), open.end(), [](const auto& one) { return one->answer->has_value(); });
      }));
      for (auto& one : open) one.reset();
      gone += is_revoked;
    }
    EXPECT_EQ(gone, 20U);
    const auto verdict =
        history::check_leases(record.lease_calls, {}, {.late_max = seconds(60), .unknown_within = seconds(60)});
    EXPECT_TRUE(verdict.ok()) << verdict.text;
  });
}

// #10686, #9935: the revocation of a lease that was over failed (no quorum just then), was forgotten, and the lease
// with its keys stayed for ever.
TEST(EtcdRecord, LeaseEndsAlthoughItsRevocationWasLost) {
  for_seeds(15, [](uint64_t seed) {
    Scenario scenario({.seed = seed});
    const size_t old = scenario.await_leader();
    const size_t other = scenario.follower(old);
    grant(scenario, old, 3);
    scenario.run_for(milliseconds(2500));
    const uint64_t before = scenario.member(old).state().raft.last_index;
    scenario.cut_off(old);
    EXPECT_TRUE(scenario.until([&] { return scenario.member(old).state().raft.last_index > before; }, seconds(2)))
        << "it was not over while the old leader was alone";
    EXPECT_TRUE(scenario.until([&] { return scenario.ready_leader().value_or(old) != old; }));
    EXPECT_FALSE(is_over(scenario, other));
    EXPECT_TRUE(scenario.until([&] { return is_over(scenario, other); }, seconds(10)));
    scenario.cluster.network.heal_all();
    EXPECT_TRUE(scenario.await_equal());
    EXPECT_TRUE(is_over(scenario, old));
  });
}

// The same when an alarm refuses the revocation.
TEST(EtcdRecord, LeaseEndsAlthoughItsRevocationWasRefused) {
  Scenario scenario({});
  const size_t leader = scenario.await_leader();
  grant(scenario, leader, 3);
  conclavepb::Entry alarm;
  alarm.mutable_alarm()->set_action(etcdserverpb::AlarmRequest::ACTIVATE);
  alarm.mutable_alarm()->set_memberid(scenario.member(leader).member_id());
  alarm.mutable_alarm()->set_alarm(etcdserverpb::CORRUPT);
  scenario.must(leader, alarm);
  scenario.run_for(seconds(6));
  EXPECT_FALSE(is_over(scenario, leader));
  alarm.mutable_alarm()->set_action(etcdserverpb::AlarmRequest::DEACTIVATE);
  scenario.must(leader, alarm);
  EXPECT_TRUE(scenario.until([&] { return is_over(scenario, leader); }, seconds(6)));
}

}  // namespace
}  // namespace sim
