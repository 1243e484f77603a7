// /health, /livez, /readyz: for load balancers and probes; texts and statuses are etcd's.
#include <algorithm>

#include "rpc/context.h"

namespace rpc {
namespace {

struct Check {
  const char* name;
  std::string (*failure)(Context&);  // empty: well
};

std::string read_failure(Context& context) {
  etcdserverpb::RangeRequest request;
  request.set_key(std::string(1, '\0'));
  request.set_limit(1);
  request.set_keys_only(true);
  etcdserverpb::RangeResponse response;
  auto read = context.member.reader()->range(request, &response);
  return read ? "" : read.error().message;
}

std::string serializable_read(Context& context) { return read_failure(context); }

std::string linearizable_read(Context& context) {
  const auto state = context.member.state();
  if (state.raft.leader == raft::kNobody) return member::kErrorNoLeader;
  if (state.out_of_space) return "the disk is full: writes wait for space";
  if (!state.ready) return member::kErrorTimeout;
  return read_failure(context);
}

std::string data_corruption(Context& context) {
  for (const auto& alarm : context.member.alarms()) {
    if (alarm.alarm() == etcdserverpb::CORRUPT) return "alarm activated: CORRUPT";
  }
  return "";
}

std::string non_learner(Context& context) {
  for (const auto& member : context.member.members()) {
    if (member.id == context.member.member_id() && member.is_learner) return "member is learner";
  }
  return "";
}

http::PlainResponse run(Context& context, const std::vector<Check>& checks, const http::PlainRequest& request,
                        bool may_exclude) {
  const std::vector<std::string> excluded =
      may_exclude ? http::query_values(request.query, "exclude") : std::vector<std::string>{};
  std::string text;
  bool well = true;
  for (const Check& check : checks) {
    if (std::find(excluded.begin(), excluded.end(), check.name) != excluded.end()) continue;
    const std::string failure = check.failure(context);
    well = well && failure.empty();
    text += failure.empty() ? std::string("[+]") + check.name + " ok\n"
                            : std::string("[-]") + check.name + " failed: " + failure + "\n";
  }
  http::PlainResponse response;
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  if (!well) {
    response.status = 503;
    response.body = text + "\n";
    return response;
  }
  if (http::query_value(request.query, "verbose")) response.body = text;
  response.body += "ok\n";
  return response;
}

void add_checks(http::Router& router, Context& context, const std::string& path, const std::vector<Check>& checks) {
  router.plain({.path = path, .handler = [&context, checks](http::PlainRequest request, http::PlainReply reply) {
                  reply.send(run(context, checks, request, true));
                }});
  for (const Check& check : checks) {
    router.plain({.path = path + "/" + check.name,
                  .handler = [&context, check](http::PlainRequest request, http::PlainReply reply) {
                    reply.send(run(context, {check}, request, false));
                  }});
  }
}

// "" when well.
std::string unhealthy_because(Context& context, const http::PlainRequest& request) {
  const auto excluded = http::query_values(request.query, "exclude");
  for (const auto& alarm : context.member.alarms()) {
    const std::string name = etcdserverpb::AlarmType_Name(alarm.alarm());
    if (std::find(excluded.begin(), excluded.end(), name) == excluded.end()) return "ALARM " + name;
  }
  const bool serializable = http::query_value(request.query, "serializable") == "true";
  if (!serializable && context.member.state().raft.leader == raft::kNobody) return "RAFT NO LEADER";
  const std::string failure = serializable ? serializable_read(context) : linearizable_read(context);
  return failure.empty() ? "" : "RANGE ERROR:" + failure;
}

}  // namespace

void add_health(http::Router& router, Context& context) {
  router.plain({.path = "/health", .handler = [&context](http::PlainRequest request, http::PlainReply reply) {
                  const std::string reason = unhealthy_because(context, request);
                  http::PlainResponse response;
                  response.body = std::string(R"({"health":")") + (reason.empty() ? "true" : "false") +
                                  R"(","reason":")" + reason + R"("})";
                  if (!reason.empty()) {
                    response.status = 503;
                    response.body += "\n";
                    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
                  }
                  reply.send(std::move(response));
                }});
  add_checks(router, context, "/livez", {{"serializable_read", serializable_read}});
  add_checks(router, context, "/readyz",
             {{"data_corruption", data_corruption},
              {"serializable_read", serializable_read},
              {"linearizable_read", linearizable_read},
              {"non_learner", non_learner}});
}

}  // namespace rpc
