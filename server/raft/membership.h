// Who takes part. Taken over by the core when the entry that changes it is applied, as in etcd/raft.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace raft {

struct Membership {
  std::vector<uint64_t> voters = {};    // sorted, no duplicates, no id in both lists
  std::vector<uint64_t> learners = {};  // receive entries, neither vote nor count

  bool is_voter(uint64_t id) const { return std::binary_search(voters.begin(), voters.end(), id); }
  bool is_learner(uint64_t id) const { return std::binary_search(learners.begin(), learners.end(), id); }
  friend bool operator==(const Membership&, const Membership&) = default;
};

}  // namespace raft
