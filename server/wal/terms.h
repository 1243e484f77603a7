// The terms of a log without its entries: a term holds from where it begins to the next beginning. A handful of
// numbers.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "base/check.h"

namespace wal {

class Terms {
 public:
  // The log is empty after (index, term).
  void reset(uint64_t index, uint64_t term) { starts_ = {{index, term}}; }
  // The log now ends with (index, term).
  void set_last(uint64_t index, uint64_t term) {
    starts_.erase(starts_.lower_bound(index), starts_.end());
    if (starts_.empty() || starts_.rbegin()->second != term) starts_.emplace(index, term);
  }
  uint64_t at(uint64_t index) const {
    const auto after = starts_.upper_bound(index);
    CHECK(after != starts_.begin(), index);
    return std::prev(after)->second;
  }
  void forget_before(uint64_t index) {
    const uint64_t term = at(index);
    starts_.erase(starts_.begin(), starts_.upper_bound(index));
    starts_.emplace(index, term);
  }

 private:
  std::map<uint64_t, uint64_t> starts_ = {{0, 0}};
};

}  // namespace wal
