// Election: who leads. Campaigning over this service comes later; campaigns of etcd's client libraries and of our SDK
// write the keys themselves.
#include "api/election.pb.h"
#include "rpc/context.h"

namespace rpc {
namespace {

using v3electionpb::LeaderRequest;
using v3electionpb::LeaderResponse;

constexpr const char* kErrorNoLeaderElected = "election: no leader";

// The leader owns the oldest key below "<name>/".
void leader(Context& context, http::UnaryCall call) {
  etcdserverpb::RangeRequest range;
  range.set_key(call.take<LeaderRequest>()->name() + "/");
  range.set_range_end(range.key());
  range.mutable_range_end()->back() = '/' + 1;
  range.set_sort_target(etcdserverpb::RangeRequest::CREATE);
  range.set_sort_order(etcdserverpb::RangeRequest::ASCEND);
  range.set_limit(1);
  with_reader(context, call.info.io_thread, false, std::move(call.reply),
              [&context, range](mvcc::Reader& reader, http::Reply reply) {
                etcdserverpb::RangeResponse found;
                if (auto read = reader.range(range, &found); !read) return reply.send(::fail(read.error()));
                if (found.kvs_size() == 0) return reply.fail(Code::kUnknown, kErrorNoLeaderElected);
                LeaderResponse response;
                context.header.fill(response.mutable_header());
                response.mutable_header()->set_revision(reader.at().revision);
                response.mutable_kv()->Swap(found.mutable_kvs(0));
                reply.send_now(response);
              });
}

}  // namespace

void add_election(http::Router& router, Context& context) {
  router.unary({.name = "/v3electionpb.Election/Leader",
                .paths = {"/v3/election/leader"},
                .request = &LeaderRequest::default_instance(),
                .handler = [&context](http::UnaryCall call) { leader(context, std::move(call)); }});
}

}  // namespace rpc
