// The `loop` stage: owns the Raft core, the proposals on their way into it, the timers and the leases' deadlines. It
// never touches a disk: a slow sync must not cost leadership.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/network.h"
#include "base/world.h"
#include "member/failure.h"
#include "member/forward.h"
#include "member/lease_keeper.h"
#include "member/options.h"
#include "member/stage.h"
#include "member/waiters.h"
#include "member/wal_stage.h"
#include "raft/node.h"

namespace member {

// What apply did with a run of entries.
struct AppliedNote {
  uint64_t index = 0;
  uint64_t term = 0;
  uint64_t membership_index = 0;  // the last change of the membership among them; 0: none
  std::vector<apply::LeaseChange> leases;
  std::vector<int64_t> revocations_refused;  // of leases that are over: to be tried again
  bool attributes = false;                   // a member has told of itself
};

// A look at the Raft core from any thread.
struct RaftStatus {
  uint64_t leader = raft::kNobody;
  raft::Role role = raft::Role::kFollower;
  uint64_t term = 0;
  uint64_t commit_index = 0;
  uint64_t applied_index = 0;
  uint64_t last_index = 0;
  uint64_t leader_changes = 0;
  bool is_learner = false;
};

class Loop final : public Stage {
 public:
  struct Parts {
    Clock& clock;
    Random& random;
    Failure& failure;
    Waiters& waiters;
    const lease::Table& leases;
    Network* network = nullptr;  // null: a cluster of one that nobody can join
    std::function<void(WalStage::Job)> persist;
    std::function<void(std::vector<LogEntry>)> commit;  // to the apply stage
    std::function<std::vector<apply::Member>()> members;
    std::function<void()> members_changed;  // `members` has others now, or tells other things of them
    // A snapshot of at least this index is wanted for this member; answer with snapshot_made().
    std::function<void(uint64_t to, uint64_t index_min)> snapshot_needed;
    std::function<void(const raft::SnapshotOffer&)> snapshot_offered;
  };

  Loop(const Options& options, raft::Config config, raft::Restored restored, Parts parts);

  // Any thread. False: too much is waiting already, nothing happened.
  bool propose(Command command) { return proposals_in_.push(std::move(command)); }
  bool keep_alive(int64_t id, KeptAlive done);
  bool remaining(int64_t id, Remaining done);
  // `done` once everything that was acknowledged before this call is applied here.
  bool read_index(std::function<void(Status)> done);
  // `done` when another member leads, or the attempt is over.
  bool transfer_leadership(uint64_t to, std::function<void(Status)> done);
  // This member is the whole quorum and leads, and has applied an entry of its own term. Then nobody else can have
  // acknowledged anything, and what is acknowledged is published before: a linearizable read needs to ask nobody.
  bool is_whole_quorum() const { return whole_quorum_.load(std::memory_order_acquire); }
  void persisted(raft::BatchNumber batch) { CHECK(persisted_in_.push(std::move(batch)), "persisted"); }
  void applied(AppliedNote note) { CHECK(applied_in_.push(std::move(note)), "applied"); }
  // From other members. What is too much is dropped; they repeat it.
  void receive(raft::Message message) { (void)messages_in_.push(std::move(message)); }
  void receive_forwarded(uint64_t from, Bytes frame);
  size_t forwarded_bytes() const { return forwarded_bytes_.load(std::memory_order_relaxed); }  // that wait; any thread
  void unreachable(uint64_t peer);
  // No answer: it cannot be made.
  void snapshot_made(uint64_t to, std::optional<raft::SnapshotPoint> point);
  void fetch_failed();
  // A store with the state of a snapshot is complete. `done(true)`: it is to be put in force, after this member was
  // closed; the loop does nothing any more.
  void install(raft::SnapshotPoint point, raft::Membership membership, std::function<void(bool)> done);

  RaftStatus status() const;
  uint64_t term() const { return term_.load(std::memory_order_relaxed); }
  bool is_learner() const { return is_learner_.load(std::memory_order_relaxed); }

  Time step() override;
  const char* name() const override { return "raft"; }
  bool is_urgent() const override { return true; }

 private:
  using Call = std::function<void(Time now)>;
  struct Forwarded {
    uint64_t from = 0;
    Bytes frame;
  };
  // A keepalive, or a question for the remaining time.
  struct LeaseAsk {
    int64_t id = 0;
    KeptAlive kept_alive = {};
    Remaining remaining = {};
    Time until{};
    bool forwarded = false;  // by another member: it goes no further
    void refuse(const Error& error) const;
  };
  struct Read {
    std::optional<uint64_t> index;
    Time until{};
    std::function<void(Status)> done;
  };

  void call(Call call) { CHECK(own_calls_in_.push(std::move(call)), "calls"); }
  void take_messages();
  void take_applied(Time now);
  void take_forwarded(Time now);
  void tick(Time now);
  void sweep(Time now);
  void take_proposals();
  void propose_here();
  void propose_membership(const Command& command);
  void propose_due(Time now);
  void serve_leases(Time now);
  void serve_lease(const LeaseAsk& ask, Time now);
  void hand_over();
  void take_soft_state(const raft::SoftState& soft);
  void begin_read(Time now, std::function<void(Status)> done);
  void finish_reads();
  void finish_transfer(Time now);
  void leave_if_removed(Time now);
  void publish();
  Time next_time() const;
  bool leads() const { return node_.role() == raft::Role::kLeader; }

  const Options options_;
  Parts parts_;
  raft::Node node_;
  LeaseKeeper leases_;
  Forward forward_;
  Inbox<Command> proposals_in_;
  Inbox<raft::BatchNumber> persisted_in_;
  Inbox<AppliedNote> applied_in_;
  Inbox<raft::Message> messages_in_;
  Inbox<Forwarded> forwarded_in_;
  Inbox<Call> calls_in_;
  Inbox<Call> own_calls_in_;  // of this member's other stages: few, and none may be lost
  std::vector<Command> proposals_;
  std::vector<Command> proposals_forwarded_;
  std::vector<raft::BatchNumber> persisted_;
  std::vector<AppliedNote> applied_;
  std::vector<raft::Message> messages_;
  std::vector<Forwarded> forwarded_;
  std::deque<Forwarded> forwarded_later_;
  std::atomic<size_t> forwarded_bytes_{0};  // of both, and in the inbox
  std::vector<Call> calls_;
  std::vector<LeaseAsk> lease_asks_;      // of this step
  size_t lease_asks_confirming_ = 0;      // of steps before: until the leadership is confirmed
  std::vector<LeaseAsk> without_leader_;  // they wait for one

  Time next_tick_{};
  Time next_sweep_{};
  uint64_t applied_index_ = 0;
  uint64_t applied_term_ = 0;
  uint64_t membership_index_ = 0;  // the last change that is applied here; at the start all that was applied
  raft::SoftState soft_;
  uint64_t leader_changes_ = 0;
  uint64_t next_read_ = 1;
  std::unordered_map<uint64_t, Read> reads_;
  struct Transfer {
    Time until{};
    std::function<void(Status)> done;
  };
  std::optional<Transfer> transfer_;
  std::optional<Time> removed_since_;
  bool closing_ = false;  // a snapshot is being put in place

  std::atomic<bool> whole_quorum_{false};
  std::atomic<uint64_t> term_{0};
  std::atomic<bool> is_learner_{false};
  mutable Mutex status_mutex_;
  RaftStatus status_ GUARDED_BY(status_mutex_);
};

}  // namespace member
