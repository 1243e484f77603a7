// A range in pieces of bounded size, for answers of any size: each piece is read with a reader of its own, all at the
// revision of the first one, which the key index keeps unless a compaction passes it.
//
// First the keys are listed, which the index alone can do: in key order a block at a time, for the answer may have any
// number; sorted or filtered all that the answer has. Then their values are read: neighbours page by page, where the
// size of a page follows the sizes of those before; keys in another order one by one. Sorted by value it is one piece:
// there is no way to know the first one without reading all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/rpc.pb.h"
#include "base/result.h"
#include "mvcc/mvcc.h"

namespace rpc {

// Of a request that was checked (apply::check_range). One thread at a time.
class RangeRead {
 public:
  explicit RangeRead(std::shared_ptr<const etcdserverpb::RangeRequest> request) : request_(std::move(request)) {}

  // Adds the next piece to `part`, which is empty: its fields come after those of the pieces before, as
  // http::PartsEncoder wants it. Of the header the first one brings the revision. True: that was the last one. Errors
  // are those of mvcc::Reader::range; kErrorCompacted also when a compaction passed between two pieces. `keys_max` (>
  // 0) bounds what a page of values costs that are larger than those before it.
  Result<bool> next(mvcc::Reader& reader, int keys_max, etcdserverpb::RangeResponse* part);
  // From the beginning, at the revision that is published by then if the request names none.
  void restart();
  bool in_one_piece() const;

 private:
  using Request = etcdserverpb::RangeRequest;
  using Response = etcdserverpb::RangeResponse;

  bool in_key_order() const;
  Result<bool> begin(mvcc::Reader& reader, int keys_max, Response* part);
  void begun(const mvcc::Reader& reader, const Response& read);
  Result<bool> read_keys(mvcc::Reader& reader, Response* part);
  Result<bool> read_values(mvcc::Reader& reader, int keys_max, Response* part);
  Status read_page(mvcc::Reader& reader, int keys_max, Response* part);
  Status read_one_by_one(mvcc::Reader& reader, Response* part);
  Status list_block(mvcc::Reader& reader, Response* listed);
  Result<bool> took(Response* part);
  void set_keys(const Response& listed);
  std::string_view key(size_t i) const;

  const std::shared_ptr<const Request> request_;
  bool begun_ = false;
  int64_t revision_ = 0;  // that all is read at
  int64_t count_ = 0;     // of all keys, whatever the limit
  bool more_ = false;
  int64_t left_ = 0;          // key-values that are still to come
  std::string after_;         // in key order: what was listed so far is below
  std::string keys_;          // listed, in a row
  std::vector<size_t> ends_;  // of each, in keys_
  size_t at_ = 0;             // the next one to read
  int64_t page_keys_ = 0;     // of the last page; 0: there was none
  int64_t page_bytes_ = 0;
};

}  // namespace rpc
