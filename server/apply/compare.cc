#include "apply/compare.h"

#include <compare>
#include <string_view>

namespace apply {
namespace {

using etcdserverpb::Compare;
using etcdserverpb::TxnRequest;

bool holds(const Compare& compare, std::strong_ordering order) {
  switch (compare.result()) {
    case Compare::EQUAL:
      return std::is_eq(order);
    case Compare::NOT_EQUAL:
      return std::is_neq(order);
    case Compare::GREATER:
      return std::is_gt(order);
    case Compare::LESS:
      return std::is_lt(order);
    default:
      return true;  // a number that is no CompareResult: etcd lets it pass
  }
}

// An operand of another kind than the target counts as zero, and a target that does not exist as equal: as in etcd.
bool head_holds(const Compare& compare, const View::Head& head) {
  auto against = [&](int64_t actual, bool given, int64_t operand) {
    return holds(compare, actual <=> (given ? operand : 0));
  };
  switch (compare.target()) {
    case Compare::VERSION:
      return against(head.version, compare.has_version(), compare.version());
    case Compare::CREATE:
      return against(head.create_revision, compare.has_create_revision(), compare.create_revision());
    case Compare::MOD:
      return against(head.mod_revision, compare.has_mod_revision(), compare.mod_revision());
    case Compare::LEASE:
      return against(head.lease, compare.has_lease(), compare.lease());
    default:
      return holds(compare, std::strong_ordering::equal);
  }
}

// A value compare on a key that is absent never holds: an absent value and an empty one look the same on the wire.
Result<bool> value_holds(View& view, const Compare& compare) {
  std::string_view operand = compare.has_value() ? std::string_view(compare.value()) : std::string_view();
  if (compare.range_end().empty()) {
    TRY_ASSIGN(mvcc::KeyValuePtr kv, view.get(compare.key()));
    return kv != nullptr && holds(compare, std::string_view(kv->value) <=> operand);
  }
  etcdserverpb::RangeRequest request;
  request.set_key(compare.key());
  request.set_range_end(compare.range_end());
  etcdserverpb::RangeResponse response;
  TRY(view.range(request, &response));
  for (const auto& kv : response.kvs()) {
    if (!holds(compare, std::string_view(kv.value()) <=> operand)) return false;
  }
  return response.kvs_size() > 0;
}

Result<bool> compare_holds(View& view, const Compare& compare) {
  if (compare.target() == Compare::VALUE) return value_holds(view, compare);
  bool all = true;
  bool any = false;
  TRY(view.heads(compare.key(), compare.range_end(), [&](const View::Head& head) {
    any = true;
    all = head_holds(compare, head);
    return all;
  }));
  return any ? all : head_holds(compare, View::Head{});
}

Status append_path(View& view, const TxnRequest& request, Path* path) {
  bool succeeded = true;
  for (const Compare& compare : request.compare()) {
    TRY_ASSIGN(succeeded, compare_holds(view, compare));
    if (!succeeded) break;
  }
  path->push_back(succeeded);
  for (const auto& operation : succeeded ? request.success() : request.failure()) {
    if (operation.has_request_txn()) TRY(append_path(view, operation.request_txn(), path));
  }
  return {};
}

}  // namespace

Result<Path> choose_path(View& view, const TxnRequest& request) {
  Path path;
  TRY(append_path(view, request, &path));
  return path;
}

Status ReaderView::heads(std::string_view key, std::string_view end, const std::function<bool(const Head&)>& visit) {
  etcdserverpb::RangeRequest request;
  request.set_key(std::string(key));
  request.set_range_end(std::string(end));
  request.set_keys_only(true);
  etcdserverpb::RangeResponse response;
  TRY(reader_.range(request, &response));
  for (const auto& kv : response.kvs()) {
    Head head{.key = kv.key(),
              .create_revision = kv.create_revision(),
              .mod_revision = kv.mod_revision(),
              .version = kv.version(),
              .lease = kv.lease()};
    if (!visit(head)) break;
  }
  return {};
}

}  // namespace apply
