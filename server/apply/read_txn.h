// Transactions that only read, answered from a read view without a trip through the log. rpc's business: is_read_only()
// and is_serializable() in apply/shape.h tell when.
#pragma once

#include "api/rpc.pb.h"
#include "base/result.h"
#include "mvcc/mvcc.h"

namespace apply {

// `request` is well formed (check_txn) and is_read_only(). Headers are filled as apply does it: the outer one with the
// revision only. Errors: kOutOfRange with mvcc's texts; kDataLoss;
// kUnavailable: compactions passed by all the time. Any thread, the one of the reader.
Status read_txn(mvcc::Reader& reader, const etcdserverpb::TxnRequest& request, etcdserverpb::TxnResponse* response);

}  // namespace apply
