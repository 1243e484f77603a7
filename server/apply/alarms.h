// Alarms of the cluster: a set of (member, kind), changed by entries only. Space and damage are watched outside of
// apply, which raises and clears them by an entry, so that every member refuses from the same entry on.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "api/rpc.pb.h"
#include "base/bytes.h"
#include "base/result.h"

namespace apply {

inline constexpr const char* kErrorNoSpace = "etcdserver: mvcc: database space exceeded";
inline constexpr const char* kErrorCorrupt = "etcdserver: corrupt cluster";
inline constexpr const char* kErrorTooManyAlarms = "etcdserver: too many alarms";

inline constexpr size_t kAlarmsMax = 1024;  // members that do not exist may be named, as in etcd

class Alarms {
 public:
  // Of Alarms::serialize(); empty: none. kDataLoss: these are no alarms.
  static Result<Alarms> parse(const Bytes& stored);
  Bytes serialize() const;  // an AlarmResponse without header

  // As etcd's: ACTIVATE answers the alarm, also when it was set before; DEACTIVATE only one that was set; GET those of
  // the kind, NONE: all. Sorted by member, then kind.
  Result<etcdserverpb::AlarmResponse> apply(const etcdserverpb::AlarmRequest& request);

  bool no_space() const { return has(etcdserverpb::NOSPACE); }
  bool corrupt() const { return has(etcdserverpb::CORRUPT); }
  std::vector<etcdserverpb::AlarmMember> list() const;

  friend bool operator==(const Alarms&, const Alarms&) = default;

 private:
  bool has(int kind) const;
  std::set<std::pair<uint64_t, int>> set_;  // member, kind (a number that has no name yet is kept, too)
};

}  // namespace apply
