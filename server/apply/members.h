// The members of the cluster as apply knows them: who belongs to it (membership entries, which Raft reads, too) and
// what they tell of themselves (MemberAttributes entries, at each start).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/entry.pb.h"
#include "api/rpc.pb.h"
#include "base/bytes.h"
#include "base/result.h"

namespace apply {

inline constexpr const char* kErrorMemberExists = "etcdserver: member ID already exist";
inline constexpr const char* kErrorPeerUrlExists = "etcdserver: Peer URLs already exists";
inline constexpr const char* kErrorMemberNotFound = "etcdserver: member not found";
inline constexpr const char* kErrorMemberRemoved = "etcdserver: member was removed and its id cannot be used again";
inline constexpr const char* kErrorMemberNotLearner = "etcdserver: can only promote a learner member";
inline constexpr const char* kErrorLastMember = "etcdserver: the last voting member cannot be removed";

struct Member {
  uint64_t id = 0;
  std::string name;  // empty: it has not started yet
  std::vector<std::string> peer_urls;
  std::vector<std::string> client_urls;
  bool is_learner = false;
  // Drawn when its data folder was made: one that comes with another has forgotten what it promised. 0: not known.
  uint64_t folder_id = 0;
  friend bool operator==(const Member&, const Member&) = default;
};

// As clients see a member, as it is stored, and as a member tells it to one that joins.
etcdserverpb::Member to_message(const Member& member);
Member from_message(const etcdserverpb::Member& message);

class Members {
 public:
  // Of Members::serialize(); empty: none. kDataLoss: these are no members.
  static Result<Members> parse(const Bytes& stored);
  Bytes serialize() const;  // a conclavepb.StoredMembers

  Status add(Member member);  // kFailedPrecondition: the id or a peer URL is taken
  // kNotFound: no such member.
  Status set_attributes(const conclavepb::MemberAttributes& attributes);
  // The errors of etcd's membership package; what is refused changes nothing.
  Status change(const conclavepb::MembershipChange& change);

  std::vector<Member> list() const;       // by id
  std::vector<uint64_t> removed() const;  // by id
  bool empty() const { return members_.empty(); }
  friend bool operator==(const Members&, const Members&) = default;

 private:
  Status remove(uint64_t id);
  Status check_peer_urls(uint64_t id, const std::vector<std::string>& urls) const;
  std::map<uint64_t, Member> members_;
  std::set<uint64_t> removed_;
};

}  // namespace apply
