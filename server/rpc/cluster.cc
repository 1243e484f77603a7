// Cluster: who the members are. Changing that comes with clusters of several members.
#include "rpc/context.h"

namespace rpc {
namespace {

using etcdserverpb::MemberListRequest;
using etcdserverpb::MemberListResponse;

void member_list(Context& context, http::UnaryCall call) {
  const auto request = call.take<MemberListRequest>();
  with_reader(context, call.info.io_thread, !request->linearizable(), std::move(call.reply),
              [&context](mvcc::Reader&, http::Reply reply) {
                MemberListResponse response;
                context.header.fill(response.mutable_header());
                for (const apply::Member& member : context.member.members()) {
                  auto& out = *response.add_members();
                  out.set_id(member.id);
                  out.set_name(member.name);
                  for (const std::string& url : member.peer_urls) out.add_peerurls(url);
                  for (const std::string& url : member.client_urls) out.add_clienturls(url);
                  out.set_islearner(member.is_learner);
                }
                reply.send_now(response);
              });
}

}  // namespace

void add_cluster(http::Router& router, Context& context) {
  router.unary({.name = "/etcdserverpb.Cluster/MemberList",
                .paths = {"/v3/cluster/member/list"},
                .request = &MemberListRequest::default_instance(),
                .handler = [&context](http::UnaryCall call) { member_list(context, std::move(call)); }});
}

}  // namespace rpc
