// Maintenance: status, alarms, moving the leadership. Hashes are in hash_read.cc.
#include <algorithm>

#include "config/version.h"
#include "rpc/context.h"
#include "rpc/hash_read.h"

namespace rpc {
namespace {

using etcdserverpb::AlarmRequest;
using etcdserverpb::AlarmResponse;
using etcdserverpb::HashKVRequest;
using etcdserverpb::HashRequest;
using etcdserverpb::MoveLeaderRequest;
using etcdserverpb::MoveLeaderResponse;
using etcdserverpb::StatusRequest;
using etcdserverpb::StatusResponse;

constexpr const char* kErrorNotLeader = "etcdserver: not leader";
constexpr const char* kErrorBadTransferee = "etcdserver: bad leader transferee";

// As Go prints the message, which is what clients of etcd see.
std::string text_of(const etcdserverpb::AlarmMember& alarm) {
  return "memberID:" + std::to_string(alarm.memberid()) + " alarm:" + etcdserverpb::AlarmType_Name(alarm.alarm()) + " ";
}

void status(Context& context, http::UnaryCall call) {
  const member::Member::State state = context.member.state();
  StatusResponse response;
  context.header.fill(response.mutable_header());
  response.mutable_header()->set_revision(state.published.revision);
  response.set_version(std::string(config::kEtcdVersion));
  response.set_storageversion(std::string(config::kClusterVersion));
  response.set_dbsize(state.store.size_bytes);
  response.set_dbsizeinuse(state.store.size_in_use_bytes);
  response.set_dbsizequota(context.member.options().quota_bytes);
  response.set_leader(state.raft.leader);
  response.set_raftindex(state.raft.commit_index);
  response.set_raftterm(state.raft.term);
  response.set_raftappliedindex(state.published.applied_index);
  response.set_islearner(state.is_learner);
  response.mutable_downgradeinfo();
  if (state.raft.leader == raft::kNobody) response.add_errors(member::kErrorNoLeader);
  for (const auto& alarm : context.member.alarms()) response.add_errors(text_of(alarm));
  call.reply.send_now(response);
}

// Asking goes through the log too, as in etcd: the answer is as new as the call.
void alarm(Context& context, http::UnaryCall call) {
  conclavepb::Entry command;
  command.set_allocated_alarm(call.take<AlarmRequest>().release());
  propose<AlarmResponse>(context, std::move(command), std::move(call.reply));
}

// Only the leader is asked, as in etcd. The answer has no header.
void move_leader(Context& context, http::UnaryCall call) {
  const uint64_t to = call.take<MoveLeaderRequest>()->targetid();
  if (context.member.state().raft.leader != context.member.member_id()) {
    return call.reply.fail(Code::kFailedPrecondition, kErrorNotLeader);
  }
  const auto members = context.member.members();
  const bool may_lead =
      std::any_of(members.begin(), members.end(), [to](const apply::Member& m) { return m.id == to && !m.is_learner; });
  if (!may_lead) return call.reply.fail(Code::kFailedPrecondition, kErrorBadTransferee);
  auto shared = std::make_shared<http::Reply>(std::move(call.reply));
  context.member.transfer_leadership(to, [shared](Status done) {
    if (!done) return shared->send(::fail(std::move(done.error())));
    shared->send(std::make_unique<const MoveLeaderResponse>());
  });
}

template <class Request>
void add(http::Router& router, Context& context, const char* name, const char* path,
         void (*handler)(Context&, http::UnaryCall)) {
  router.unary({.name = std::string("/etcdserverpb.Maintenance/") + name,
                .paths = {std::string("/v3/maintenance/") + path},
                .request = &Request::default_instance(),
                .handler = [&context, handler](http::UnaryCall call) { handler(context, std::move(call)); }});
}

}  // namespace

void add_maintenance(http::Router& router, Context& context) {
  add<StatusRequest>(router, context, "Status", "status", status);
  add<AlarmRequest>(router, context, "Alarm", "alarm", alarm);
  add<HashRequest>(router, context, "Hash", "hash", hash);
  add<HashKVRequest>(router, context, "HashKV", "hashkv", hash_kv);
  add<MoveLeaderRequest>(router, context, "MoveLeader", "transfer-leadership", move_leader);
}

}  // namespace rpc
