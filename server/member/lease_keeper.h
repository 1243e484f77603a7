// The leader's side of leases: deadlines, keepalives, expiry, checkpoints. Part of the loop and on its thread.
//
// It is active only when this member leads and has applied an entry of its own term: from then on the replicated table
// is at least as new as anything a former leader acknowledged. Until then keepalives and questions wait (bounded, timed
// out).
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/entry.pb.h"
#include "apply/applier.h"
#include "base/result.h"
#include "lease/deadlines.h"
#include "lease/table.h"
#include "member/stage.h"

namespace member {

// Seconds of a keepalive's answer: the granted TTL, or 0: there is no such lease.
using KeptAlive = std::function<void(Result<int64_t>)>;
// Remaining time; nullopt: there is no such lease.
using Remaining = std::function<void(Result<std::optional<Time>>)>;

class LeaseKeeper {
 public:
  LeaseKeeper(const lease::Table& table, Time answer_within);

  void begin_term(uint64_t term, Time now);
  void end_term();  // not the leader any more: everything that waits is refused
  bool active() const { return term_ != 0; }

  void keep_alive(int64_t id, Time now, KeptAlive done);
  void remaining(int64_t id, Time now, Remaining done);
  void applied(const std::vector<apply::LeaseChange>& changes, Time now);

  // An alarm refused them: they come up again after a while.
  void revocations_refused(const std::vector<int64_t>& ids, Time now);

  // Commands to propose now: revocations of what is over, checkpoints, resets. At most a bounded number a call.
  std::vector<conclavepb::Entry> due(Time now);
  // They could not be proposed: they come up again.
  void refused(const std::vector<conclavepb::Entry>& commands, Time now);
  Time next() const;  // when due() may have something, kWhenWoken: unknown

 private:
  enum class WaitsFor { kRevocation, kReset };
  struct Waiting {
    WaitsFor what;
    Time until{};
    KeptAlive done;
  };
  // The keepalives of `id` that wait for this; a lease that is gone answers all.
  void answer_reset(int64_t id, int64_t ttl);
  void answer_gone(int64_t id);
  void expire_waiting(Time now);

  const lease::Table& table_;
  const Time answer_within_;
  lease::Deadlines deadlines_;
  uint64_t term_ = 0;                                  // 0: not active
  std::unordered_multimap<int64_t, Waiting> waiting_;  // for a revocation's outcome, or a reset's commit
  std::vector<int64_t> resets_;
  struct Early {
    Time until{};
    std::function<void(Time now, bool refused)> run;
  };
  std::deque<Early> early_;  // came before this member was active
};

}  // namespace member
