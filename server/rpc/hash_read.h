// HashKV and Hash: one number for all that members must agree on, made in pieces of bounded size.
//
// What is hashed follows from the requested revision R and the compacted revision C alone, not from how far the removal
// of compacted rows got or from how pages lie in the file: the key-values that were alive at C, in key order, then
// every change after C up to R, in order. So members with equal C and R have equal hashes, and a change that was undone
// later counts, too. The number itself is not etcd's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "mvcc/mvcc.h"
#include "rpc/context.h"
#include "rpc/range_read.h"

namespace rpc {

// One thread at a time.
class KvHash {
 public:
  explicit KvHash(int64_t revision) : asked_(revision) {}  // 0: the latest

  // Reads the next piece: some milliseconds, or one revision if that takes longer. True: that was the last one. Errors
  // are those of mvcc::Reader::range. A compaction that passes begins it anew, at most kRestartsMax times.
  Result<bool> next(mvcc::Reader& reader);

  // Once next() said true.
  uint32_t hash() const { return static_cast<uint32_t>(hash_ ^ hash_ >> 32); }
  int64_t compacted() const { return compacted_; }
  int64_t revision() const { return revision_; }
  int64_t latest() const { return latest_; }  // of the reader that it ended with

  static constexpr int kRestartsMax = 16;

 private:
  Status begin(mvcc::Reader& reader);
  Status read_live(mvcc::Reader& reader);
  Status read_history(mvcc::Reader& reader);
  void add(uint64_t number);

  const int64_t asked_;
  bool begun_ = false;
  int restarts_ = 0;
  uint64_t hash_ = 0;
  int64_t compacted_ = -1;
  int64_t revision_ = 0;
  int64_t latest_ = 0;
  std::optional<RangeRead> live_;  // as long as there are more of them
  int64_t next_ = 0;               // of the history
};

void hash_kv(Context& context, http::UnaryCall call);
void hash(Context& context, http::UnaryCall call);

}  // namespace rpc
