// When leases end: the leader loop's heap of deadlines. Pure: time is an argument, and it is monotonic time only.
// Rebuilt at the begin of each term from the replicated table (deadline = now + replicated remaining), never persisted
// itself.
//
// Healthy leases cost nothing: a renewal only moves a number; the heap entry is corrected when it comes up. Remaining
// time is checkpointed only for leases that are not renewed: first at 0.4 TTL without renewal, then every max(1 s,
// TTL/10).
//
// A checkpoint and the reset that a later renewal makes travel through the log in the order in which they were handed
// out. So that reset_done() is never about an older reset than the last checkpoint, none is handed out between a
// renewal that needs a reset and the commit of that reset.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "lease/table.h"

namespace lease {

// Heap entries that one call puts right because the lease was renewed meanwhile. If more are due, next() says "at
// once".
inline constexpr size_t kCorrectionsMax = 4096;
// Entries of removed leases are dropped when a heap has more than twice as many entries as there are leases, plus this.
inline constexpr size_t kGarbageMin = 1024;

using Time = std::chrono::nanoseconds;  // of Clock::monotonic()

class Deadlines {
 public:
  void rebuild(const std::vector<Info>& leases, Time now);
  void clear();  // not the leader (any more)
  void granted(int64_t id, int64_t ttl, Time now);
  void removed(int64_t id);
  // Full TTL again from `now`. False: unknown, or its revocation is under way (then the caller waits for the outcome).
  bool renew(int64_t id, Time now);
  // Its remaining time was checkpointed since the last renewal: a renewal has to reset that by an entry before it is
  // answered.
  bool checkpointed(int64_t id) const;
  bool revoking(int64_t id) const;
  std::optional<Time> remaining(int64_t id, Time now) const;  // zero when over

  // Leases whose time is over, `max` at most; they count as being revoked from now on (until removed() or retry()).
  std::vector<int64_t> expired(Time now, size_t max);
  void retry(int64_t id, Time now);  // the proposal to revoke it failed: it comes up again
  struct Checkpoint {
    int64_t id;
    int64_t remaining;  // seconds, rounded up, at least 1
  };
  std::vector<Checkpoint> due_checkpoints(Time now, size_t max);
  void reset_done(int64_t id);  // the reset of its checkpoint is committed
  // When expired() or due_checkpoints() may next have something; nullopt: never.
  std::optional<Time> next() const;
  size_t size() const;
  size_t heap_size() const;  // entries in both heaps, outdated ones included; bounded by drop_garbage()

 private:
  struct Lease {
    int64_t ttl = 0;
    Time deadline{};
    Time next_checkpoint{};
    bool checkpointed = false;
    bool reset_wanted = false;  // renewed while checkpointed: no further checkpoint until the reset is committed
    bool revoking = false;
    uint64_t expiry_serial = 0;      // of its entry in expiries_; 0: it has none
    uint64_t checkpoint_serial = 0;  // of its entry in checkpoints_; 0: it has none
  };
  // An entry counts only while the lease carries its serial; it is never later than what it stands for, so that a
  // renewal has nothing to do here.
  struct Due {
    Time at;
    int64_t id;
    uint64_t serial;
    bool operator>(const Due& other) const { return at != other.at ? at > other.at : id > other.id; }
  };
  using Heap = std::priority_queue<Due, std::vector<Due>, std::greater<>>;

  void add(int64_t id, int64_t ttl, Time deadline, Time next_checkpoint, bool checkpointed);
  void push_expiry(int64_t id, Lease& lease, Time at);
  void push_checkpoint(int64_t id, Lease& lease, Time at);
  void drop_garbage();

  std::unordered_map<int64_t, Lease> leases_;
  Heap expiries_;
  Heap checkpoints_;
  uint64_t last_serial_ = 0;
};

}  // namespace lease
