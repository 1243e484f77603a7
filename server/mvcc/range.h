// A RangeRequest over index, cache and rows: what Reader and Writer share. Behaviour as etcd's
// server/etcdserver/txn/range.go.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "api/rpc.pb.h"
#include "base/result.h"
#include "mvcc/key_index.h"
#include "mvcc/value_cache.h"
#include "store/store.h"

namespace mvcc {

// Where rows come from that are not in the cache.
class Rows {
 public:
  virtual ~Rows() = default;
  // visit(i, row) for the row ids[i], in order; `ids` ascends. False: a compaction went past `revision`, for which the
  // ids were looked up; some rows may be gone. A row that is missing otherwise is kDataLoss.
  virtual Result<bool> load(int64_t revision, std::span<const store::RowId> ids, bool heads_only,
                            const std::function<void(size_t i, const store::RowView& row)>& visit) = 0;
};

struct Source {
  const KeyIndex& index;
  ValueCache& cache;
  Rows& rows;
};

KeyValuePtr make_key_value(const store::RowView& row);
void fill(const KeyValue& from, mvccpb::KeyValue* to);
// The key-value with this row id; see Rows::load for false.
Result<bool> load_value(const Source& source, int64_t revision, const Found& found, KeyValuePtr* kv);

// Answers the request at `revision` (> 0; request.revision is not looked at). False: as Rows::load; `response` is then
// unfinished. kInvalidArgument: sort_order or sort_target is no value of its enum.
Result<bool> execute_range(const Source& source, int64_t revision, const etcdserverpb::RangeRequest& request,
                           etcdserverpb::RangeResponse* response);

}  // namespace mvcc
