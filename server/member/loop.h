// The `loop` stage: owns the Raft core, the proposals on their way into it, the timers and the leases' deadlines. It
// never touches a disk: a slow sync must not cost leadership.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/world.h"
#include "member/failure.h"
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
  std::vector<apply::LeaseChange> leases;
  std::vector<int64_t> revocations_refused;  // of leases that are over: to be tried again
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
};

class Loop final : public Stage {
 public:
  struct Parts {
    Clock& clock;
    Random& random;
    Failure& failure;
    Waiters& waiters;
    const lease::Table& leases;
    std::function<void(WalStage::Job)> persist;
    std::function<void(std::vector<LogEntry>)> commit;  // to the apply stage
  };
  struct Command {
    uint64_t request_id = 0;  // 0: nobody waits
    std::shared_ptr<const Bytes> data;
  };

  Loop(const Options& options, raft::Config config, raft::Restored restored, Parts parts);

  // Any thread. False: too much is waiting already, nothing happened.
  bool propose(Command command) { return proposals_in_.push(std::move(command)); }
  bool keep_alive(int64_t id, KeptAlive done);
  bool remaining(int64_t id, Remaining done);
  // `done` once everything that was acknowledged before this call is applied here.
  bool read_index(std::function<void(Status)> done);
  // This member is the whole quorum and leads, and has applied an entry of its own term. Then nobody else can have
  // acknowledged anything, and what is acknowledged is published before: a linearizable read needs to ask nobody.
  bool is_whole_quorum() const { return whole_quorum_.load(std::memory_order_acquire); }
  void persisted(raft::BatchNumber batch) { CHECK(persisted_in_.push(std::move(batch)), "persisted"); }
  void applied(AppliedNote note) { CHECK(applied_in_.push(std::move(note)), "applied"); }
  RaftStatus status() const;
  uint64_t term() const { return term_.load(std::memory_order_relaxed); }

  Time step() override;
  const char* name() const override { return "raft"; }
  bool is_urgent() const override { return true; }

 private:
  using Call = std::function<void(Time now)>;

  void tick(Time now);
  void take_applied(Time now);
  void take_proposals();
  void propose_due(Time now);
  void hand_over();
  void finish_reads();
  void publish();
  Time next_time() const;

  const Options options_;
  Parts parts_;
  raft::Node node_;
  LeaseKeeper leases_;
  Inbox<Command> proposals_in_;
  Inbox<raft::BatchNumber> persisted_in_;
  Inbox<AppliedNote> applied_in_;
  Inbox<Call> calls_in_;
  std::vector<Command> proposals_;
  std::vector<raft::BatchNumber> persisted_;
  std::vector<AppliedNote> applied_;
  std::vector<Call> calls_;

  Time next_tick_{};
  Time next_sweep_{};
  uint64_t applied_index_ = 0;
  uint64_t applied_term_ = 0;
  raft::SoftState soft_;
  uint64_t leader_changes_ = 0;
  uint64_t next_read_ = 1;
  struct Read {
    std::optional<uint64_t> index;
    Time until{};
    std::function<void(Status)> done;
  };
  std::unordered_map<uint64_t, Read> reads_;

  std::atomic<bool> whole_quorum_{false};
  std::atomic<uint64_t> term_{0};
  mutable Mutex status_mutex_;
  RaftStatus status_ GUARDED_BY(status_mutex_);
};

}  // namespace member
