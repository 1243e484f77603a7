#include "apply/shape.h"

#include <algorithm>

#include "apply/key_set.h"

namespace apply {
namespace {

using etcdserverpb::RequestOp;
using etcdserverpb::TxnRequest;
using Operations = google::protobuf::RepeatedPtrField<RequestOp>;

Status invalid(const char* text) { return fail(Code::kInvalidArgument, text); }

Status check_level(const TxnRequest& request, size_t max_txn_ops, size_t depth);

Status check_operation(const RequestOp& operation, size_t max_txn_ops, size_t depth) {
  switch (operation.request_case()) {
    case RequestOp::kRequestRange:
      return check_range(operation.request_range());
    case RequestOp::kRequestPut:
      return check_put(operation.request_put());
    case RequestOp::kRequestDeleteRange:
      return check_delete_range(operation.request_delete_range());
    case RequestOp::kRequestTxn:
      return check_level(operation.request_txn(), max_txn_ops, depth + 1);
    case RequestOp::REQUEST_NOT_SET:
      break;
  }
  return invalid(kErrorKeyNotFound);  // an operation without content; etcd's choice of words
}

Status check_level(const TxnRequest& request, size_t max_txn_ops, size_t depth) {
  const auto most =
      static_cast<size_t>(std::max({request.compare_size(), request.success_size(), request.failure_size()}));
  if (most > max_txn_ops || depth > kTxnDepthMax) return invalid(kErrorTooManyOps);
  for (const auto& compare : request.compare()) {
    if (compare.key().empty()) return invalid(kErrorEmptyKey);
  }
  for (const Operations* branch : {&request.success(), &request.failure()}) {
    for (const RequestOp& operation : *branch) TRY(check_operation(operation, max_txn_ops - most, depth));
  }
  return {};
}

// What a list of operations and everything nested in it may write.
struct Writes {
  std::set<std::string_view> puts;
  KeyRanges deletes;
};

// The order matters and is etcd's: a put nested in one operation is held against the deletes of its own level and of
// those nested operations before it, so that a nested delete after a nested put of the same key passes.
Status collect_writes(const Operations& operations, Writes* writes) {
  for (const RequestOp& operation : operations) {
    if (!operation.has_request_delete_range()) continue;
    writes->deletes.add(operation.request_delete_range().key(), operation.request_delete_range().range_end());
  }
  for (const RequestOp& operation : operations) {
    if (!operation.has_request_txn()) continue;
    Writes then;
    Writes otherwise;
    TRY(collect_writes(operation.request_txn().success(), &then));
    TRY(collect_writes(operation.request_txn().failure(), &otherwise));
    for (std::string_view key : then.puts) {
      if (writes->deletes.contains(key) || writes->puts.contains(key)) return invalid(kErrorDuplicateKey);
    }
    for (std::string_view key : otherwise.puts) {
      if (writes->deletes.contains(key) || writes->puts.contains(key)) return invalid(kErrorDuplicateKey);
    }
    writes->puts.merge(then.puts);  // only one of the two branches runs, so they may share keys
    writes->puts.merge(otherwise.puts);
    writes->deletes.add(then.deletes);
    writes->deletes.add(otherwise.deletes);
  }
  for (const RequestOp& operation : operations) {
    if (!operation.has_request_put()) continue;
    std::string_view key = operation.request_put().key();
    if (writes->deletes.contains(key)) return invalid(kErrorDuplicateKey);
    if (!writes->puts.insert(key).second) return invalid(kErrorDuplicateKey);
  }
  return {};
}

// The usual small transaction has nothing that could collide.
bool may_write_twice(const Operations& operations) {
  int writes = 0;
  for (const RequestOp& operation : operations) {
    if (operation.has_request_txn()) return true;
    if (!operation.has_request_range()) ++writes;
  }
  return writes > 1;
}

template <class Test>
bool all_ranges(const TxnRequest& request, const Test& test) {
  for (const Operations* branch : {&request.success(), &request.failure()}) {
    for (const RequestOp& operation : *branch) {
      const bool fine = operation.has_request_range()
                            ? test(operation.request_range())
                            : operation.has_request_txn() && all_ranges(operation.request_txn(), test);
      if (!fine) return false;
    }
  }
  return true;
}

}  // namespace

Status check_range(const etcdserverpb::RangeRequest& request) {
  if (request.key().empty()) return invalid(kErrorEmptyKey);
  if (!etcdserverpb::RangeRequest_SortOrder_IsValid(request.sort_order())) return invalid(kErrorInvalidSort);
  if (!etcdserverpb::RangeRequest_SortTarget_IsValid(request.sort_target())) return invalid(kErrorInvalidSort);
  return {};
}

Status check_put(const etcdserverpb::PutRequest& request) {
  if (request.key().empty()) return invalid(kErrorEmptyKey);
  if (request.ignore_value() && !request.value().empty()) return invalid(kErrorValueProvided);
  if (request.ignore_lease() && request.lease() != 0) return invalid(kErrorLeaseProvided);
  return {};
}

Status check_delete_range(const etcdserverpb::DeleteRangeRequest& request) {
  if (request.key().empty()) return invalid(kErrorEmptyKey);
  return {};
}

Status check_txn(const TxnRequest& request, size_t max_txn_ops) {
  TRY(check_level(request, max_txn_ops, 1));
  for (const Operations* branch : {&request.success(), &request.failure()}) {
    if (!may_write_twice(*branch)) continue;
    Writes writes;
    TRY(collect_writes(*branch, &writes));
  }
  return {};
}

bool has_put(const TxnRequest& request) {
  for (const Operations* branch : {&request.success(), &request.failure()}) {
    for (const auto& op : *branch) {
      if (op.has_request_put()) return true;
      if (op.has_request_txn() && has_put(op.request_txn())) return true;
    }
  }
  return false;
}

bool is_read_only(const TxnRequest& request) {
  return all_ranges(request, [](const auto&) { return true; });
}

bool is_serializable(const TxnRequest& request) {
  return all_ranges(request, [](const auto& range) { return range.serializable(); });
}

}  // namespace apply
