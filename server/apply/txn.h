// Puts, deletes and transactions on the staged state of a batch, as etcd's server/etcdserver/txn has them. A request is
// validated completely before its first write, so that it happens as a whole or is refused as a whole. Apply thread.
#pragma once

#include "api/rpc.pb.h"
#include "apply/compare.h"
#include "apply/reply.h"
#include "base/result.h"
#include "lease/table.h"
#include "mvcc/mvcc.h"

namespace apply {

// A revision has room for this many changes (more: mvcc::kErrorTooManyOperations, before the first one is made), and
// all keys of a lease go in one revision.
inline constexpr int64_t kChangesMax = mvcc::kSubMax;
inline constexpr const char* kErrorLeaseFull = "etcdserver: a lease can hold 1048575 keys at most";

struct Context {
  mvcc::Writer& writer;  // a revision has begun
  lease::Table& leases;
  bool answer_wanted = true;  // false: nobody here waits for it, so the ranges of a transaction need not be read
};

// The requests may be malformed (apply/shape.h): they are refused then. The error of the Result: a fault of the store;
// what was staged has to be rolled back.
Result<Reply> put(Context& context, const etcdserverpb::PutRequest& request);
Result<Reply> delete_range(Context& context, const etcdserverpb::DeleteRangeRequest& request);
Result<Reply> txn(Context& context, const etcdserverpb::TxnRequest& request);

// Deletes the keys of a lease that is revoked, in this order.
Status erase_keys(Context& context, const std::vector<Bytes>& keys);

// Can a range be read at its revision? As etcd's checkRange, which is stricter than a range outside of a transaction: a
// negative revision is not the latest but one that was compacted.
Status check_revision(const etcdserverpb::RangeRequest& request, int64_t revision, int64_t compacted);

}  // namespace apply
