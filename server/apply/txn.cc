#include "apply/txn.h"

#include <limits>
#include <map>
#include <utility>

#include "apply/shape.h"

namespace apply {
namespace {

using etcdserverpb::DeleteRangeRequest;
using etcdserverpb::DeleteRangeResponse;
using etcdserverpb::PutRequest;
using etcdserverpb::PutResponse;
using etcdserverpb::RequestOp;
using etcdserverpb::TxnRequest;
using etcdserverpb::TxnResponse;

void fill(const mvcc::KeyValue& from, mvccpb::KeyValue* to) {
  to->set_key(from.key);
  to->set_value(from.value);
  to->set_create_revision(from.create_revision);
  to->set_mod_revision(from.mod_revision);
  to->set_version(from.version);
  to->set_lease(from.lease);
}

static_assert(kChangesMax == 1048575, "as the error text says");

// The lease of a key as it is now; nullopt: there is no such key.
std::optional<int64_t> lease_of(mvcc::Writer& writer, std::string_view key) {
  std::optional<int64_t> lease;
  writer.heads(key, {}, [&](const mvcc::Writer::Head& head) {
    lease = head.lease;
    return false;
  });
  return lease;
}

// What a request would change at most, counted while it is validated.
struct Tally {
  int64_t changes = 0;
  std::map<int64_t, int64_t> attached;  // keys that are new to a lease
};

Status validate_put(Context& context, const PutRequest& request, Tally* tally) {
  if (request.lease() != 0) {
    if (!context.leases.find(request.lease())) return ::fail(Code::kNotFound, lease::kErrorNotFound);
    const auto held = static_cast<int64_t>(context.leases.key_count(request.lease()));
    const int64_t attached = ++tally->attached[request.lease()];
    if (held + attached > kChangesMax && !context.leases.holds(request.lease(), request.key())) {
      return ::fail(Code::kResourceExhausted, kErrorLeaseFull);
    }
  }
  if ((request.ignore_value() || request.ignore_lease()) && !lease_of(context.writer, request.key())) {
    return ::fail(Code::kInvalidArgument, kErrorKeyNotFound);
  }
  tally->changes += 2;  // inside a transaction a later nested delete may take it away again
  return {};
}

void validate_delete(Context& context, const DeleteRangeRequest& request, Tally* tally) {
  tally->changes +=
      request.range_end().empty() ? 1 : context.writer.count(request.key(), request.range_end(), kChangesMax + 1);
}

Status validate_branch(Context& context, const TxnRequest& request, Path::const_iterator& path, Tally* tally) {
  const bool succeeded = *path++;
  for (const RequestOp& operation : succeeded ? request.success() : request.failure()) {
    switch (operation.request_case()) {
      case RequestOp::kRequestRange:
        TRY(check_revision(operation.request_range(), context.writer.revision(), context.writer.compacted()));
        break;
      case RequestOp::kRequestPut:
        TRY(validate_put(context, operation.request_put(), tally));
        break;
      case RequestOp::kRequestDeleteRange:
        validate_delete(context, operation.request_delete_range(), tally);
        break;
      case RequestOp::kRequestTxn:
        TRY(validate_branch(context, operation.request_txn(), path, tally));
        break;
      case RequestOp::REQUEST_NOT_SET:
        break;
    }
  }
  if (tally->changes > kChangesMax) return ::fail(Code::kInvalidArgument, mvcc::kErrorTooManyOperations);
  return {};
}

Status execute_put(Context& context, const PutRequest& request, PutResponse* response) {
  std::string_view value = request.value();
  int64_t lease = request.lease();
  int64_t lease_before = 0;
  mvcc::KeyValuePtr kept;  // holds what `value` points to
  if (request.ignore_value()) {
    TRY_ASSIGN(kept, context.writer.get(request.key()));
    if (!kept) return ::fail(Code::kInternal, "apply: a put that keeps a value lost it after it was validated");
    value = kept->value;
    lease_before = kept->lease;
  } else if (request.ignore_lease() || context.leases.size() > 0) {
    lease_before = lease_of(context.writer, request.key()).value_or(0);
  }
  if (request.ignore_lease()) lease = lease_before;
  TRY_ASSIGN(auto previous, context.writer.put(request.key(), value, lease, request.prev_kv()));
  if (lease != lease_before) {
    if (lease_before != 0) context.leases.detach(lease_before, request.key());
    if (lease != 0) context.leases.attach(lease, request.key());
  }
  if (request.prev_kv() && previous) fill(*previous, response->mutable_prev_kv());
  response->mutable_header()->set_revision(context.writer.revision());
  return {};
}

Status execute_delete(Context& context, const DeleteRangeRequest& request, DeleteRangeResponse* response) {
  std::vector<mvcc::KeyValuePtr> previous;
  TRY_ASSIGN(int64_t deleted,
             context.writer.erase(request.key(), request.range_end(), request.prev_kv() ? &previous : nullptr,
                                  [&](std::string_view key, int64_t lease) {
                                    if (lease != 0) context.leases.detach(lease, key);
                                  }));
  for (const mvcc::KeyValuePtr& kv : previous) fill(*kv, response->add_prev_kvs());
  response->set_deleted(deleted);
  response->mutable_header()->set_revision(context.writer.revision());
  return {};
}

// Everything is validated: an error here is a fault of the store.
Status execute_branch(Context& context, const TxnRequest& request, Path::const_iterator& path, TxnResponse* response) {
  const bool succeeded = *path++;
  response->set_succeeded(succeeded);
  for (const RequestOp& operation : succeeded ? request.success() : request.failure()) {
    auto* part = response->add_responses();
    switch (operation.request_case()) {
      case RequestOp::kRequestRange:
        if (context.answer_wanted) TRY(context.writer.range(operation.request_range(), part->mutable_response_range()));
        part->mutable_response_range()->mutable_header()->set_revision(context.writer.revision());
        break;
      case RequestOp::kRequestPut:
        TRY(execute_put(context, operation.request_put(), part->mutable_response_put()));
        break;
      case RequestOp::kRequestDeleteRange:
        TRY(execute_delete(context, operation.request_delete_range(), part->mutable_response_delete_range()));
        break;
      case RequestOp::kRequestTxn:
        part->mutable_response_txn()->mutable_header();  // there, but empty: as etcd's
        TRY(execute_branch(context, operation.request_txn(), path, part->mutable_response_txn()));
        break;
      case RequestOp::REQUEST_NOT_SET:
        break;
    }
  }
  return {};
}

}  // namespace

Status check_revision(const etcdserverpb::RangeRequest& request, int64_t revision, int64_t compacted) {
  if (request.revision() == 0) return {};
  if (request.revision() > revision) return ::fail(Code::kOutOfRange, mvcc::kErrorFutureRevision);
  if (request.revision() < compacted) return ::fail(Code::kOutOfRange, mvcc::kErrorCompacted);
  return {};
}

Result<Reply> put(Context& context, const PutRequest& request) {
  if (Status fine = check_put(request); !fine) return refuse(fine.error());
  Tally tally;
  if (Status fine = validate_put(context, request, &tally); !fine) return refuse(fine.error());
  auto response = std::make_unique<PutResponse>();
  TRY(execute_put(context, request, response.get()));
  return Reply{.response = std::move(response), .when_compacted = -1};
}

Result<Reply> delete_range(Context& context, const DeleteRangeRequest& request) {
  if (Status fine = check_delete_range(request); !fine) return refuse(fine.error());
  Tally tally;
  validate_delete(context, request, &tally);
  if (tally.changes > kChangesMax) return refuse(Code::kInvalidArgument, mvcc::kErrorTooManyOperations);
  auto response = std::make_unique<DeleteRangeResponse>();
  TRY(execute_delete(context, request, response.get()));
  return Reply{.response = std::move(response), .when_compacted = -1};
}

Result<Reply> txn(Context& context, const TxnRequest& request) {
  // The number of operations is a limit of the proposing server, not one of the state.
  if (Status fine = check_txn(request, std::numeric_limits<int>::max()); !fine) return refuse(fine.error());
  WriterView view(context.writer);
  TRY_ASSIGN(const Path path, choose_path(view, request));
  Tally tally;
  auto position = path.begin();
  if (Status fine = validate_branch(context, request, position, &tally); !fine) return refuse(fine.error());
  auto response = std::make_unique<TxnResponse>();
  position = path.begin();
  TRY(execute_branch(context, request, position, response.get()));
  response->mutable_header()->set_revision(context.writer.revision());
  return Reply{.response = std::move(response), .when_compacted = -1};
}

Status erase_keys(Context& context, const std::vector<Bytes>& keys) {
  for (const Bytes& key : keys) TRY(context.writer.erase(key, {}, nullptr, [](std::string_view, int64_t) {}));
  return {};
}

}  // namespace apply
