// One committed entry on the staged state of its batch. A function of the entry and that state, nothing else. Apply
// thread.
#pragma once

#include <vector>

#include "api/entry.pb.h"
#include "apply/alarms.h"
#include "apply/members.h"
#include "apply/reply.h"
#include "base/entry.h"
#include "base/result.h"
#include "lease/table.h"
#include "mvcc/mvcc.h"
#include "store/store.h"

namespace apply {

// For the leader's deadlines.
struct LeaseChange {
  enum class Kind { kGranted, kRevoked, kCheckpointed, kReset } kind;
  int64_t id = 0;
  int64_t ttl = 0;        // of kGranted
  int64_t remaining = 0;  // of kCheckpointed
};

// What a batch has staged so far, and where it stages. All of it is committed or given up together.
struct Batch {
  store::WriteTxn& txn;
  mvcc::Writer& writer;
  lease::Table& leases;
  store::Meta meta;  // to be saved with the batch; its applied index and term are of the entries that were executed
  Alarms alarms;
  Members members;
  std::vector<mvcc::EventBatch> events;
  std::vector<LeaseChange> lease_changes;
  std::vector<int64_t> revocations_refused;
  bool attributes = false;  // a member has told of itself
};

struct Executed {
  uint64_t request_id = 0;
  uint64_t proposer = 0;
  Reply reply;
};

inline constexpr const char* kErrorOtherTerm = "etcdserver: decided by a leader of another term";
inline constexpr const char* kErrorNoCommand = "etcdserver: entry without a command";

// `member_id`: who we are, so that what nobody here waits for need not be read; 0: not known.
// Errors stop the batch: kFailedPrecondition: of a newer version than this build knows; kDataLoss: not an entry at all,
// or the store's; kResourceExhausted: the store's disk is full.
Result<Executed> execute(Batch& batch, const LogEntry& entry, uint64_t member_id);

// Whether execute() can take this as the data of a command; what it cannot take stops every member. For what others
// hand in to be proposed. Pure, any thread. kInvalidArgument: not an entry, or one without a command.
// kFailedPrecondition: of a newer version.
Status check_command(const Bytes& data);

}  // namespace apply
