#include "apply/key_set.h"

#include <algorithm>
#include <iterator>

namespace apply {

void KeyRanges::add(std::string_view key, std::string_view end) {
  if (end.empty()) {
    points_.insert(key);
  } else if (end == std::string_view("\0", 1)) {
    add_range(key, std::nullopt);
  } else if (key < end) {
    add_range(key, end);
  }
}

void KeyRanges::add(const KeyRanges& other) {
  points_.insert(other.points_.begin(), other.points_.end());
  for (const auto& [begin, end] : other.ranges_) add_range(begin, end);
}

bool KeyRanges::contains(std::string_view key) const {
  if (points_.contains(key)) return true;
  auto after = ranges_.upper_bound(key);
  if (after == ranges_.begin()) return false;
  const End& end = std::prev(after)->second;
  return !end || key < *end;
}

void KeyRanges::add_range(std::string_view begin, End end) {
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin()) {
    auto before = std::prev(at);
    if (!before->second || *before->second >= begin) at = before;
  }
  while (at != ranges_.end() && (!end || at->first <= *end)) {
    begin = std::min(begin, at->first);
    end = at->second && end ? End(std::max(*at->second, *end)) : End();
    at = ranges_.erase(at);
  }
  ranges_.emplace(begin, end);
}

}  // namespace apply
