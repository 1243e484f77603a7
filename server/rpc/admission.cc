#include "rpc/context.h"

namespace rpc {

constexpr const char* kErrorNotForLearners = "etcdserver: rpc not supported for learner";

http::Admission admission(const member::Member& member) {
  return [&member](const std::string& method, const http::Message* request) -> Status {
    if (!member.is_learner()) return {};
    if (method == "/etcdserverpb.Maintenance/Status" || method == "/etcdserverpb.Maintenance/Snapshot") return {};
    if (method == "/etcdserverpb.KV/Range" && static_cast<const etcdserverpb::RangeRequest*>(request)->serializable()) {
      return {};
    }
    return ::fail(Code::kFailedPrecondition, kErrorNotForLearners);
  };
}

}  // namespace rpc
