#include "raft/read_index.h"

#include <utility>

namespace raft {

namespace {

template <class Batches>
std::vector<uint64_t> take_all(Batches& batches, std::vector<uint64_t>& arrived) {
  std::vector<uint64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.contexts.begin(), batch.contexts.end());
  all.insert(all.end(), arrived.begin(), arrived.end());
  batches.clear();
  arrived.clear();
  return all;
}

}  // namespace

uint64_t ReadQueue::begin_round(uint64_t commit) {
  confirming_ += arrived_.size();
  rounds_.push_back({.number = ++round_,
                     .commit = commit,
                     .contexts = std::exchange(arrived_, {}),
                     .batches = std::exchange(arrived_batches_, {})});
  return round_;
}

std::vector<uint64_t> ReadQueue::drop_all() {
  confirming_ = 0;
  arrived_batches_.clear();
  return take_all(rounds_, arrived_);
}

std::optional<uint64_t> ForwardedReads::begin_batch(Random& random) {
  if (arrived_.empty() || batches_.size() >= kReadBatchesAskedMax) return std::nullopt;
  if (last_number_ == 0) last_number_ = random.next() >> 1;  // far from the end of the numbers
  asked_ += arrived_.size();
  batches_.push_back({.number = ++last_number_, .contexts = std::exchange(arrived_, {})});
  return last_number_;
}

std::optional<uint64_t> ForwardedReads::newest() const {
  if (batches_.empty()) return std::nullopt;
  return batches_.back().number;
}

std::vector<uint64_t> ForwardedReads::drop_all() {
  asked_ = 0;
  return take_all(batches_, arrived_);
}

}  // namespace raft
