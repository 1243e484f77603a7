// Maintenance: status and alarms.
#include "config/version.h"
#include "rpc/context.h"

namespace rpc {
namespace {

using etcdserverpb::AlarmRequest;
using etcdserverpb::AlarmResponse;
using etcdserverpb::StatusRequest;
using etcdserverpb::StatusResponse;

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

}  // namespace

void add_maintenance(http::Router& router, Context& context) {
  router.unary({.name = "/etcdserverpb.Maintenance/Status",
                .paths = {"/v3/maintenance/status"},
                .request = &StatusRequest::default_instance(),
                .handler = [&context](http::UnaryCall call) { status(context, std::move(call)); }});
  router.unary({.name = "/etcdserverpb.Maintenance/Alarm",
                .paths = {"/v3/maintenance/alarm"},
                .request = &AlarmRequest::default_instance(),
                .handler = [&context](http::UnaryCall call) { alarm(context, std::move(call)); }});
}

}  // namespace rpc
