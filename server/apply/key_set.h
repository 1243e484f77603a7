// Sets of keys and of key ranges, for the question whether a transaction writes a key twice. Holds views: what it was
// given must outlive it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace apply {

class KeyRanges {
 public:
  // As in a request: no `end`: the key alone; "\0": everything from `key` on.
  void add(std::string_view key, std::string_view end);
  void add(const KeyRanges& other);
  bool contains(std::string_view key) const;

 private:
  using End = std::optional<std::string_view>;  // nullopt: no end
  void add_range(std::string_view begin, End end);

  std::set<std::string_view> points_;
  std::map<std::string_view, End> ranges_;  // begin -> end, neither overlapping nor touching
};

}  // namespace apply
