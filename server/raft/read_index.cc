#include "raft/read_index.h"

#include <utility>

namespace raft {

uint64_t ReadQueue::begin_round(uint64_t commit) {
  confirming_ += arrived_.size();
  rounds_.push_back({.number = ++round_, .commit = commit, .contexts = std::exchange(arrived_, {})});
  return round_;
}

std::vector<uint64_t> ReadQueue::drop_all() {
  std::vector<uint64_t> dropped;
  for (const Round& round : rounds_) dropped.insert(dropped.end(), round.contexts.begin(), round.contexts.end());
  dropped.insert(dropped.end(), arrived_.begin(), arrived_.end());
  rounds_.clear();
  arrived_.clear();
  confirming_ = 0;
  return dropped;
}

}  // namespace raft
