// The compares of a transaction, as etcd's server/etcdserver/txn/txn.go evaluates them.
#pragma once

#include <vector>

#include "api/rpc.pb.h"
#include "apply/view.h"
#include "base/result.h"

namespace apply {

// For each transaction in the order in which an executor meets them (the outer one first): do its compares hold? All of
// them are evaluated before the first operation runs, so nested ones do not see what the outer one writes. Only the
// branches that will run are looked at.
using Path = std::vector<bool>;
Result<Path> choose_path(View& view, const etcdserverpb::TxnRequest& request);

}  // namespace apply
