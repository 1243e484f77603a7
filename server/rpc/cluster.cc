// Cluster: who the members are, and changes of that. Whether a change is wise the leader judges (member/reconfig.h);
// here is only what can be told from the request.
#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "config/url.h"
#include "rpc/context.h"

namespace rpc {
namespace {

using conclavepb::MembershipChange;
using etcdserverpb::MemberAddRequest;
using etcdserverpb::MemberAddResponse;
using etcdserverpb::MemberListRequest;
using etcdserverpb::MemberListResponse;
using etcdserverpb::MemberPromoteRequest;
using etcdserverpb::MemberPromoteResponse;
using etcdserverpb::MemberRemoveRequest;
using etcdserverpb::MemberRemoveResponse;
using etcdserverpb::MemberUpdateRequest;
using etcdserverpb::MemberUpdateResponse;

constexpr const char* kErrorBadUrls = "etcdserver: given member URLs are invalid";
constexpr int kUrlsMax = 64;  // of one member

template <class Response>
void fill_members(Context& context, Response& response) {
  context.header.fill(response.mutable_header());
  for (const apply::Member& member : context.member.members()) {
    *response.add_members() = apply::to_message(member);
  }
}

// Sorted, as etcd keeps them.
template <class Urls>
Result<std::vector<std::string>> peer_urls(const Urls& given) {
  std::vector<std::string> urls;
  if (given.empty() || given.size() > kUrlsMax) return ::fail(Code::kInvalidArgument, kErrorBadUrls);
  for (const std::string& text : given) {
    const auto url = config::parse_url(text);
    if (!url) return ::fail(Code::kInvalidArgument, kErrorBadUrls);
    if (url->scheme != config::Url::Scheme::kHttp) {
      return ::fail(Code::kInvalidArgument,
                    std::string(kErrorBadUrls) + ": members talk over http only in this version (" + url->text + ")");
    }
    if (url->host.empty()) return ::fail(Code::kInvalidArgument, kErrorBadUrls);
    urls.push_back(url->text);
  }
  std::sort(urls.begin(), urls.end());
  return urls;
}

// etcd hashes the URLs and the second of the day into an id. Here the last part is random: a member that is removed and
// added again within a second is a new one, too.
uint64_t new_member_id(Context& context, const std::vector<std::string>& urls) {
  std::string text;
  for (const std::string& url : urls) text += url;
  text += context.member.options().cluster_token + std::to_string(context.member.new_lease_id());
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  uint64_t id = 0;
  for (size_t i = 0; i < sizeof id; ++i) id = id << 8 | digest[i];
  return id != 0 ? id : 1;
}

// Answers with the members once the change is applied; `finish` adds what else belongs into the response.
template <class Response>
void change(
    Context& context, MembershipChange change, http::Reply reply,
    std::function<void(Response&)> finish = [](Response&) {}) {
  auto shared = std::make_shared<http::Reply>(std::move(reply));
  context.member.change_membership(
      std::move(change), [&context, shared, finish = std::move(finish)](Result<apply::Message> done) {
        if (!done) return shared->send(::fail(std::move(done.error())));
        auto response = std::make_unique<Response>();
        fill_members(context, *response);
        finish(*response);
        shared->send(std::unique_ptr<const google::protobuf::Message>(std::move(response)));
      });
}

void member_list(Context& context, http::UnaryCall call) {
  const auto request = call.take<MemberListRequest>();
  with_reader(context, call.info.io_thread, !request->linearizable(), std::move(call.reply),
              [&context](mvcc::Reader&, http::Reply reply) {
                MemberListResponse response;
                fill_members(context, response);
                reply.send_now(response);
              });
}

void member_add(Context& context, http::UnaryCall call) {
  const auto request = call.take<MemberAddRequest>();
  auto urls = peer_urls(request->peerurls());
  if (!urls) return call.reply.send(::fail(urls.error()));
  apply::Member added{.id = new_member_id(context, *urls),
                      .name = {},
                      .peer_urls = std::move(*urls),
                      .client_urls = {},
                      .is_learner = request->islearner()};
  MembershipChange to;
  to.set_kind(MembershipChange::ADD);
  to.set_id(added.id);
  for (const std::string& url : added.peer_urls) to.add_peer_urls(url);
  to.set_is_learner(added.is_learner);
  change<MemberAddResponse>(context, std::move(to), std::move(call.reply),
                            [added = std::move(added)](MemberAddResponse& response) {
                              *response.mutable_member() = apply::to_message(added);
                            });
}

void member_remove(Context& context, http::UnaryCall call) {
  MembershipChange to;
  to.set_kind(MembershipChange::REMOVE);
  to.set_id(call.take<MemberRemoveRequest>()->id());
  change<MemberRemoveResponse>(context, std::move(to), std::move(call.reply));
}

// etcd takes any text for a URL here. A member whose URLs nobody can reach is lost to the cluster, so this one looks.
void member_update(Context& context, http::UnaryCall call) {
  const auto request = call.take<MemberUpdateRequest>();
  const auto urls = peer_urls(request->peerurls());
  if (!urls) {
    const auto members = context.member.members();
    const bool known =
        std::any_of(members.begin(), members.end(), [&](const apply::Member& m) { return m.id == request->id(); });
    if (!known) return call.reply.fail(Code::kNotFound, apply::kErrorMemberNotFound);
    return call.reply.send(::fail(urls.error()));
  }
  MembershipChange to;
  to.set_kind(MembershipChange::UPDATE);
  to.set_id(request->id());
  for (const std::string& url : *urls) to.add_peer_urls(url);
  change<MemberUpdateResponse>(context, std::move(to), std::move(call.reply));
}

void member_promote(Context& context, http::UnaryCall call) {
  MembershipChange to;
  to.set_kind(MembershipChange::PROMOTE);
  to.set_id(call.take<MemberPromoteRequest>()->id());
  change<MemberPromoteResponse>(context, std::move(to), std::move(call.reply));
}

template <class Request>
void add(http::Router& router, Context& context, const char* name, const char* path,
         void (*handler)(Context&, http::UnaryCall)) {
  router.unary({.name = std::string("/etcdserverpb.Cluster/") + name,
                .paths = {std::string("/v3/cluster/member/") + path},
                .request = &Request::default_instance(),
                .handler = [&context, handler](http::UnaryCall call) { handler(context, std::move(call)); }});
}

}  // namespace

void add_cluster(http::Router& router, Context& context) {
  add<MemberListRequest>(router, context, "MemberList", "list", member_list);
  add<MemberAddRequest>(router, context, "MemberAdd", "add", member_add);
  add<MemberRemoveRequest>(router, context, "MemberRemove", "remove", member_remove);
  add<MemberUpdateRequest>(router, context, "MemberUpdate", "update", member_update);
  add<MemberPromoteRequest>(router, context, "MemberPromote", "promote", member_promote);
}

}  // namespace rpc
