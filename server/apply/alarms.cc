#include "apply/alarms.h"

#include <algorithm>

namespace apply {

using etcdserverpb::AlarmMember;
using etcdserverpb::AlarmRequest;
using etcdserverpb::AlarmResponse;
using etcdserverpb::AlarmType;

Result<Alarms> Alarms::parse(const Bytes& stored) {
  AlarmResponse list;
  if (!list.ParseFromString(stored)) return fail(Code::kDataLoss, "the stored alarms cannot be read");
  Alarms alarms;
  for (const AlarmMember& alarm : list.alarms()) alarms.set_.emplace(alarm.memberid(), alarm.alarm());
  return alarms;
}

Bytes Alarms::serialize() const {
  AlarmResponse list;
  for (const AlarmMember& alarm : this->list()) *list.add_alarms() = alarm;
  return list.SerializeAsString();
}

Result<AlarmResponse> Alarms::apply(const AlarmRequest& request) {
  AlarmResponse response;
  const std::pair<uint64_t, int> alarm(request.memberid(), request.alarm());
  auto answer = [&] {
    response.add_alarms()->set_memberid(alarm.first);
    response.mutable_alarms(0)->set_alarm(request.alarm());
  };
  switch (request.action()) {
    case AlarmRequest::GET:
      for (const AlarmMember& set : list()) {
        if (request.alarm() == etcdserverpb::NONE || set.alarm() == request.alarm()) *response.add_alarms() = set;
      }
      break;
    case AlarmRequest::ACTIVATE:
      if (request.alarm() == etcdserverpb::NONE) break;
      if (!set_.contains(alarm) && set_.size() >= kAlarmsMax)
        return fail(Code::kResourceExhausted, kErrorTooManyAlarms);
      set_.insert(alarm);
      answer();
      break;
    case AlarmRequest::DEACTIVATE:
      if (set_.erase(alarm) > 0) answer();
      break;
    default:
      break;  // an action without a name does nothing, as in etcd
  }
  return response;
}

std::vector<AlarmMember> Alarms::list() const {
  std::vector<AlarmMember> all;
  for (const auto& [member, kind] : set_) {
    AlarmMember& alarm = all.emplace_back();
    alarm.set_memberid(member);
    alarm.set_alarm(static_cast<AlarmType>(kind));
  }
  return all;
}

bool Alarms::has(int kind) const {
  return std::any_of(set_.begin(), set_.end(), [kind](const auto& alarm) { return alarm.second == kind; });
}

}  // namespace apply
