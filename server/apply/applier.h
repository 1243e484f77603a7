// The one place that orders: takes committed log entries in batches, executes them in one store transaction, publishes
// and answers. A function of the entry and the state: no clock, no randomness, no file size, no order of a hash
// container. Apply thread only.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/entry.pb.h"
#include "api/rpc.pb.h"
#include "apply/entry_version.h"
#include "apply/execute.h"
#include "apply/members.h"
#include "apply/reply.h"
#include "base/entry.h"
#include "base/result.h"
#include "lease/table.h"
#include "mvcc/mvcc.h"
#include "store/store.h"
#include "watch/hub.h"

namespace apply {

// What one entry did. `response` carries header.revision only (and, inside a txn, etcd's headers of the parts); rpc
// adds the rest of the outer header.
struct Outcome {
  uint64_t index = 0;
  uint64_t term = 0;
  uint64_t request_id = 0;
  uint64_t proposer = 0;
  Result<Message> response = Message{};
};

struct Applied {
  std::vector<Outcome> outcomes;  // in log order; a physical compaction's comes later, from step()
  std::vector<LeaseChange> leases;
  // Leases that the leader of this term found expired, but an alarm (CORRUPT) refuses: they have to come up again.
  std::vector<int64_t> revocations_refused;
  bool attributes = false;  // a member has told of itself
};

// The most that step() does between two batches. On two loaded cores slices took 0.8 ms (p99: 1.4) and 0.5 ms (p99: 2).
inline constexpr int kCompactRowsPerSlice = 250;
inline constexpr int kVacuumPagesPerSlice = 16;
// Free pages are used again by later writes; they are given back to the file system only when they are more than this
// and more than a quarter of the database, and then until they are half of that.
inline constexpr int64_t kVacuumBytesMin = 16 << 20;

class Applier {
 public:
  struct Parts {
    store::Store& store;
    mvcc::Mvcc& mvcc;
    lease::Table& leases;
    watch::Hub& hub;
    // Of this member: ranges of transactions that others proposed are not read, as nobody here waits for them. 0: all
    // are.
    uint64_t member_id = 0;
  };
  explicit Applier(Parts parts);
  ~Applier();

  // The members of a brand-new cluster, as of this entry; later they come from the store. kFailedPrecondition: it has
  // members.
  Status bootstrap(const std::vector<Member>& members, uint64_t index = 0, uint64_t term = 0);
  // All other members are removed, whatever the cluster decided (--force-new-cluster). Before anything is applied.
  Status leave_alone(uint64_t id);

  // Entries in index order, the first one at meta.applied_index + 1. All or nothing: kResourceExhausted (disk full):
  // nothing is applied, may be called again with the same entries; any other error: the member must stop.
  // Publishes (mvcc, then watch hub) before it returns.
  Result<Applied> apply(std::span<const LogEntry> entries);

  // A slice (about 2 ms at most) of compaction and vacuum; outcomes of physical compactions that are finished now.
  // `more`: there is more to do. kResourceExhausted (disk full): nothing was done, may be called again.
  struct Slice {
    bool more = false;
    std::vector<Outcome> outcomes;
  };
  Result<Slice> step();

  // While held no row is deleted: compactions are published and answered as always, but step() leaves their rows where
  // they are. When this returns, no deletion is under way either (it waits for a slice that is). Whoever lets go wakes
  // the apply thread for the slices that are due. Any thread.
  void hold_compaction(bool held);

  // Any thread (copies).
  std::vector<Member> members() const;
  std::vector<uint64_t> removed_members() const;          // by id
  std::vector<etcdserverpb::AlarmMember> alarms() const;  // sorted by member, then kind

 private:
  struct State;
  Status set_members(Members members, store::Meta meta);
  std::unique_ptr<State> state_;
};

}  // namespace apply
