// Is a request well formed? Checked by rpc before a request is proposed, with the limits of this server, and again when
// the entry is applied, without them: what is in the log has to be judged equally by every member. Texts, codes and
// order of the checks are those of etcd's api/v3rpc/key.go.
//
// Stricter than etcd in one place: etcd overlooks that a delete with an open end ("\0") covers a key that the same
// transaction puts. Here that is a duplicate key as any other.
#pragma once

#include <cstddef>

#include "api/rpc.pb.h"
#include "base/result.h"

namespace apply {

inline constexpr const char* kErrorEmptyKey = "etcdserver: key is not provided";
inline constexpr const char* kErrorKeyNotFound = "etcdserver: key not found";
inline constexpr const char* kErrorValueProvided = "etcdserver: value is provided";
inline constexpr const char* kErrorLeaseProvided = "etcdserver: lease is provided";
inline constexpr const char* kErrorTooManyOps = "etcdserver: too many operations in txn request";
inline constexpr const char* kErrorDuplicateKey = "etcdserver: duplicate key given in txn request";
inline constexpr const char* kErrorInvalidSort = "etcdserver: invalid sort option";

// How deep transactions may be nested whatever the limit of operations is, since they are walked recursively: as deep
// as etcd's default of 128 operations allows (the innermost one is empty). Deeper ones are too many operations.
inline constexpr size_t kTxnDepthMax = 129;
// Nested protobuf messages of such a transaction inside an entry: two a level, and the entry and an operation around
// them. Whoever parses a transaction needs this as the parser's recursion limit (protobuf's own default is 100).
inline constexpr int kMessageDepthMax = 2 * static_cast<int>(kTxnDepthMax) + 8;

// All are kInvalidArgument.
Status check_range(const etcdserverpb::RangeRequest& request);
Status check_put(const etcdserverpb::PutRequest& request);
Status check_delete_range(const etcdserverpb::DeleteRangeRequest& request);
// `max_txn_ops` (--max-txn-ops) bounds compares, success and failure of each level; what a level uses, the levels
// inside it lack.
Status check_txn(const etcdserverpb::TxnRequest& request, size_t max_txn_ops);

// A put on any level, in either branch: what a full store refuses.
bool has_put(const etcdserverpb::TxnRequest& request);

// Nothing but ranges, on every level: may be answered from a read view (apply/read_txn.h) and need not be proposed.
bool is_read_only(const etcdserverpb::TxnRequest& request);
// All of them serializable: the read view need not be confirmed by the cluster. True for a txn without operations.
bool is_serializable(const etcdserverpb::TxnRequest& request);

}  // namespace apply
