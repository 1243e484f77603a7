// `key_prefix`: put before every key that goes out, taken off what comes back. Also how a range is written for the
// server.
#pragma once

#include <string>
#include <string_view>

#include "conclave/result.h"

namespace conclave::inline v1::internal {

// The first key after all that begin with `prefix`; one zero byte ("no end") if there is none.
std::string prefix_end(std::string prefix);

class KeySpace {
 public:
  struct Range {
    std::string key;
    std::string end;  // empty: this key only
  };

  explicit KeySpace(std::string prefix = {}) : prefix_(std::move(prefix)) {}

  std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  std::string strip(std::string key) const;
  // kInvalidArgument: an empty key without `prefix` or `range_end`, or both of these.
  Result<Range> range(std::string_view key, bool prefix, std::string_view range_end) const;

 private:
  std::string prefix_;
};

}  // namespace conclave::inline v1::internal
