#include "sim/cluster_run.h"

#include "history/linearizability.h"
#include "history/revision_check.h"

namespace sim {
namespace {

using std::chrono::seconds;

class Run {
 public:
  explicit Run(const RunOptions& options)
      : options_(options),
        cluster_(options.seed, options.nodes,
                 [&options](size_t node, size_t nodes) {
                   return cluster_options(node, options.members > 0 ? options.members : nodes);
                 }),
        invariants_(cluster_),
        clients_(cluster_, invariants_, result_.record),
        watchers_(cluster_, 6),
        leases_(cluster_, result_.record),
        locks_(cluster_, result_.record),
        membership_(cluster_, invariants_, options.members > 0 ? options.members : options.nodes),
        faults_(cluster_, options.faults ? *options.faults : Faults::some(cluster_.random)) {
    cluster_.after_step = [this](size_t node, const char*) {
      invariants_.check(node);
      note_leadership();
    };
    cluster_.before_down = [this](size_t node) {
      clients_.member_down(node);
      watchers_.member_down(node);
      locks_.member_down(node);
    };
  }

  RunResult run() {
    work();
    faults_.heal();
    settle();
    if (!cluster_.stopped()) check();
    result_.faults = cluster_.faults();
    if (cluster_.stopped()) result_.recent = cluster_.recent();
    result_.trace = cluster_.trace();
    result_.steps = cluster_.steps();
    result_.virtual_time = cluster_.clock.monotonic();
    result_.operations = result_.record.operations.size();
    result_.acknowledged = clients_.acknowledged();
    result_.faults_injected = faults_.injected();
    result_.leaders = invariants_.leaders();
    result_.contents_compared = invariants_.contents_compared();
    result_.membership_changes = membership_.changes();
    result_.replacements = cluster_.replacements();
    for (size_t i = 0; i < cluster_.size(); ++i) {  // while those are alive whom it may still answer
      if (cluster_.node(i).is_open()) cluster_.kill(i);
    }
    return std::move(result_);
  }

 private:
  // Leases do not end while nobody leads.
  void note_leadership() {
    const auto now = cluster_.clock.monotonic();
    if (!led_) leaderless_ += now - looked_;
    looked_ = now;
    const auto leader = cluster_.leader();
    led_ = leader && cluster_.member(*leader).state().published.applied_term == cluster_.member(*leader).term();
  }

  // For each change of the leader what is not checkpointed (0.4 of a TTL of seven seconds), and some for stuck disks.
  std::chrono::nanoseconds lease_late_max() const {
    return seconds(10) + leaderless_ + seconds(3) * static_cast<int64_t>(invariants_.leaders());
  }

  void work() {
    SeededRandom& random = cluster_.random;
    while (cluster_.steps() < options_.steps && !cluster_.stopped()) {
      cluster_.step();
      switch (random.below(8)) {
        case 0:
        case 1:
          clients_.act();
          break;
        case 2:
          watchers_.act();
          break;
        case 3:
          leases_.act();
          break;
        case 4:
          locks_.act();
          break;
        default:
          break;
      }
      if (random.below(options_.steps_per_fault) == 0) faults_.act();
      if (random.below(64) == 0) faults_.end_the_due();
      if (options_.members > 0 && random.below(50) == 0) membership_.act();
    }
  }

  bool all_up_and_equal() {
    std::optional<uint64_t> applied;  // a member that has just joined stands at 0
    for (size_t i = 0; i < cluster_.size(); ++i) {
      if (!cluster_.node(i).wanted) continue;
      if (!cluster_.is_up(i)) return false;
      const auto state = cluster_.member(i).state();
      if (state.raft.leader == raft::kNobody || state.proposals_waiting > 0) return false;
      if (!applied) applied = state.published.applied_index;
      if (state.published.applied_index != *applied || state.raft.commit_index != *applied) return false;
    }
    return true;
  }

  // With everything healed, the cluster answers again, members become equal, leases end and watches hear all of it.
  void settle() {
    const auto wait = [this](const char* what, seconds within, auto done) {
      if (!cluster_.run_until(done, within) && !cluster_.stopped()) {
        cluster_.fault(std::string("after everything was healed, in ") + std::to_string(within.count()) +
                       " s: " + what);
      }
    };
    wait("no leader", seconds(30), [this] {
      const auto leader = cluster_.leader();
      return leader && cluster_.member(*leader).state().published.applied_term == cluster_.member(*leader).term();
    });
    wait("requests that are left unanswered", seconds(30), [this] {
      clients_.give_up_the_late();
      return clients_.is_idle();
    });
    if (options_.members > 0) {
      membership_.stop();
      wait("machines that are neither in nor out", seconds(60), [this] {
        if (cluster_.random.below(20) == 0) membership_.act();
        return membership_.is_settled();
      });
    }
    wait("leases that nobody renews do not end", seconds(60), [this] { return leases_.all_over(); });
    wait("members that do not become equal", seconds(30), [this] { return all_up_and_equal(); });
    wait("watches that do not hear everything", seconds(60), [this] {
      if (cluster_.random.below(20) == 0) watchers_.read_all();
      const auto leader = cluster_.leader();
      // Equal again: a member that started meanwhile has told the others its name.
      return leader && watchers_.have_heard(cluster_.member(*leader).state().published.revision) && all_up_and_equal();
    });
  }

  // Without what the lock clients write, which is not in the record of operations.
  static history::Events of_recorded_keys(const history::Events& events) {
    history::Events recorded;
    for (const auto& [revision, all] : events) {
      for (const history::Event& event : all) {
        const bool of_locks = event.kv.key.starts_with("lock/") || event.kv.key.starts_with("fenced/");
        if (!of_locks) recorded[revision].push_back(event);
      }
    }
    return recorded;
  }

  void hold(const char* what, const history::Verdict& verdict) {
    if (verdict.kind == history::Verdict::Kind::kViolation) cluster_.fault(std::string(what) + ": " + verdict.text);
  }

  void check() {
    invariants_.check_equal();
    if (!clients_.learn_events()) return cluster_.fault("nobody knows what happened");
    const history::Events& events = clients_.events();
    history::Record& record = result_.record;
    record.watches = watchers_.records();
    add_lease_sightings(record, record.watches);
    locks_.finish();
    hold("locks", history::check_locks(record.holds, record.uses));
    const history::Events written = of_recorded_keys(events);
    hold("revisions", history::check_revisions(record.operations, &written));
    hold("linearizability", history::check_linearizable(record.operations));
    const int64_t last = events.empty() ? 0 : events.rbegin()->first;
    for (const history::WatchRecord& watch : record.watches) {
      // One that was last heard to be compacted starts behind it; what it missed there it was told.
      hold("watch", history::check_watch(watch, events, last));
    }
    hold("leases", history::check_leases(record.lease_calls, record.lease_sightings,
                                         {.late_max = lease_late_max(), .unknown_within = seconds(20)}));
  }

  const RunOptions options_;
  RunResult result_;
  Cluster cluster_;
  Invariants invariants_;
  Clients clients_;
  Watchers watchers_;
  LeaseClients leases_;
  LockClients locks_;
  Membership membership_;
  Faults faults_;
  bool led_ = false;
  std::chrono::nanoseconds looked_{};
  std::chrono::nanoseconds leaderless_{};
};

}  // namespace

RunResult run_cluster(const RunOptions& options) { return Run(options).run(); }

}  // namespace sim
