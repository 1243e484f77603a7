// Who takes part. Taken over by the core when the entry that changes it is applied, as in etcd/raft.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace raft {

struct Membership {
  std::vector<uint64_t> voters = {};    // sorted, no duplicates, no id in both lists
  std::vector<uint64_t> learners = {};  // receive entries, neither vote nor count

  bool is_voter(uint64_t id) const { return std::binary_search(voters.begin(), voters.end(), id); }
  bool is_learner(uint64_t id) const { return std::binary_search(learners.begin(), learners.end(), id); }
  bool contains(uint64_t id) const { return is_voter(id) || is_learner(id); }
  friend bool operator==(const Membership&, const Membership&) = default;
};

inline void check_membership(const Membership& membership) {
  for (const auto* ids : {&membership.voters, &membership.learners}) {
    CHECK(std::is_sorted(ids->begin(), ids->end()));
    CHECK(std::adjacent_find(ids->begin(), ids->end()) == ids->end());
  }
  for (const uint64_t id : membership.learners) CHECK(!membership.is_voter(id), id);
}

}  // namespace raft
