// Who a new member is and with whom: from --initial-cluster for a new cluster, from the others for one that joins.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apply/members.h"
#include "base/bytes.h"
#include "base/result.h"
#include "member/options.h"
#include "raft/membership.h"
#include "wal/wal.h"

namespace member {

// A new cluster begins behind this entry, which never was: its store knows the members, and a member that joins later
// and has nothing cannot mistake the log for one that begins with it. So it always gets a snapshot.
inline constexpr uint64_t kFoundingIndex = 1;
inline constexpr uint64_t kFoundingTerm = 1;

// Of a member of a new cluster; ids as etcd makes them.
wal::Identity identity_of(const Options& options);

struct Founding {
  wal::Identity identity;
  std::vector<apply::Member> members;
  bool joins = false;  // an existing cluster
};

// Asks a member at one of `urls` for its describe_cluster().
using AskCluster = std::function<Result<Bytes>(const std::vector<std::string>& urls)>;

// Members that start apart agree: ids follow from URLs and token, as etcd's do. For one that joins: kUnavailable when
// nobody answers, kFailedPrecondition when it was not added before.
Result<Founding> found(const Options& options, const AskCluster& ask);

// What a member tells a stranger that wants to join; `members` from a linearizable read.
Bytes describe(uint64_t cluster_id, const std::vector<apply::Member>& members);

// Why a member that has forgotten what it promised may not take part. Begins as etcd's text.
std::string other_folder(uint64_t member_id);
std::string hex_text(uint64_t number);  // as etcd writes ids

raft::Membership membership_of(const std::vector<apply::Member>& members);

}  // namespace member
