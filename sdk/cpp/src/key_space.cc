#include "key_space.h"

namespace conclave::inline v1::internal {

namespace {
const std::string kNoEnd(1, '\0');
}

std::string prefix_end(std::string prefix) {
  while (!prefix.empty()) {
    if (static_cast<unsigned char>(prefix.back()) < 0xff) {
      ++prefix.back();
      return prefix;
    }
    prefix.pop_back();
  }
  return kNoEnd;
}

std::string KeySpace::strip(std::string key) const {
  if (prefix_.empty() || key.compare(0, prefix_.size(), prefix_) != 0) return key;
  return key.substr(prefix_.size());
}

Result<KeySpace::Range> KeySpace::range(std::string_view key, bool prefix, std::string_view range_end) const {
  if (prefix && !range_end.empty()) return fail(Code::kInvalidArgument, "prefix and range_end exclude each other");
  if (key.empty() && !prefix && range_end.empty())
    return fail(Code::kInvalidArgument, "etcdserver: key is not provided");
  Range range{this->key(key), {}};
  if (prefix) {
    range.end = prefix_end(range.key);
  } else if (range_end == kNoEnd) {
    range.end = prefix_end(prefix_);
  } else if (!range_end.empty()) {
    range.end = this->key(range_end);
  }
  if (range.key.empty()) range.key = kNoEnd;  // the smallest key there can be
  return range;
}

}  // namespace conclave::inline v1::internal
