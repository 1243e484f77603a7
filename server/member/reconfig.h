// Whether a change of the membership is wise now. Raft's own rules (one at a time, not before an entry of the own term)
// are the core's; these are etcd's (--strict-reconfig-check): a change must not leave the cluster without a quorum of
// members that are up. Pure.
#pragma once

#include <vector>

#include "api/entry.pb.h"
#include "apply/members.h"
#include "base/result.h"
#include "raft/ready.h"

namespace member {

inline constexpr const char* kErrorNotEnoughStarted =
    "etcdserver: re-configuration failed due to not enough started members";
inline constexpr const char* kErrorUnhealthy = "etcdserver: unhealthy cluster";
inline constexpr const char* kErrorLearnerNotReady =
    "etcdserver: can only promote a learner member which is in sync with leader";
inline constexpr const char* kErrorTooManyLearners = "etcdserver: too many learner members in cluster";

inline constexpr const char* kErrorNoMemberId = "etcdserver: member id is not provided";

inline constexpr size_t kLearnersMax = 1;      // etcd's
inline constexpr double kLearnerInSync = 0.9;  // of the leader's log, before it may be promoted (etcd's)

// The leader's view. `progress` is empty when there is nothing to know yet.
struct ReconfigView {
  const std::vector<apply::Member>& members;
  const std::vector<raft::MemberProgress>& progress;
  uint64_t self = 0;
  uint64_t last_index = 0;
  bool strict = true;
};

Status check_reconfig(const conclavepb::MembershipChange& change, const ReconfigView& view);

}  // namespace member
