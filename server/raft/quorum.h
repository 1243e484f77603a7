// Majorities.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace raft {

// The largest value that a majority has reached; 0 of nobody.
inline uint64_t majority_value(std::vector<uint64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end(), std::greater<>());
  return *middle;
}

enum class Tally : uint8_t { kOpen, kWon, kLost };

inline Tally tally(size_t voters, size_t yes, size_t no) {
  const size_t majority = voters / 2 + 1;
  if (yes >= majority) return Tally::kWon;
  return voters - std::min(no, voters) < majority ? Tally::kLost : Tally::kOpen;
}

}  // namespace raft
