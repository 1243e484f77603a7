// /health, /livez, /readyz: for load balancers and probes; texts and statuses are etcd's.
#include <algorithm>
#include <functional>
#include <memory>
#include <span>

#include "rpc/context.h"

namespace rpc {
namespace {

using Verdict = std::function<void(std::string failure)>;  // empty: well

// Calls back once, on this thread or on one that may read the disk.
struct Check {
  const char* name;
  void (*run)(Context&, Verdict);
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

void serializable_read(Context& context, Verdict verdict) { verdict(read_failure(context)); }

// Through the leader, whatever this member believes of it: one that was cut off is not answered.
void linearizable_read(Context& context, Verdict verdict) {
  const auto state = context.member.state();
  if (state.raft.leader == raft::kNobody) return verdict(member::kErrorNoLeader);
  if (state.out_of_space) return verdict("the disk is full: writes wait for space");
  if (!state.ready) return verdict(member::kErrorTimeout);
  context.member.linearize([&context, verdict = std::move(verdict)](const Status& status) {
    verdict(status ? read_failure(context) : status.error().message);
  });
}

void data_corruption(Context& context, Verdict verdict) {
  for (const auto& alarm : context.member.alarms()) {
    if (alarm.alarm() == etcdserverpb::CORRUPT) return verdict("alarm activated: CORRUPT");
  }
  verdict("");
}

void non_learner(Context& context, Verdict verdict) {
  for (const apply::Member& member : context.member.members()) {
    if (member.id == context.member.member_id() && member.is_learner) return verdict("not supported for learner");
  }
  verdict("");
}

constexpr Check kLivez[] = {{"serializable_read", serializable_read}};
constexpr Check kReadyz[] = {{"data_corruption", data_corruption},
                             {"serializable_read", serializable_read},
                             {"linearizable_read", linearizable_read},
                             {"non_learner", non_learner}};

// One request for some checks, which run one after another.
class Run : public std::enable_shared_from_this<Run> {
 public:
  Run(Context& context, std::vector<Check> checks, bool verbose, http::PlainReply reply)
      : context_(context), checks_(std::move(checks)), verbose_(verbose), reply_(std::move(reply)) {}

  void go_on() {
    if (next_ == checks_.size()) return answer();
    checks_[next_].run(context_, [self = shared_from_this()](const std::string& failure) { self->note(failure); });
  }

 private:
  void note(const std::string& failure) {
    const std::string name = checks_[next_++].name;
    well_ = well_ && failure.empty();
    text_ += failure.empty() ? "[+]" + name + " ok\n" : "[-]" + name + " failed: " + failure + "\n";
    go_on();
  }

  void answer() {
    http::PlainResponse response;
    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
    if (!well_) {
      response.status = 503;
      response.body = text_ + "\n";
    } else {
      response.body = (verbose_ ? text_ : "") + "ok\n";
    }
    reply_.send(std::move(response));
  }

  Context& context_;
  const std::vector<Check> checks_;
  const bool verbose_;
  http::PlainReply reply_;
  size_t next_ = 0;
  bool well_ = true;
  std::string text_;
};

void run(Context& context, std::vector<Check> checks, const http::PlainRequest& request, http::PlainReply reply) {
  const bool verbose = http::query_value(request.query, "verbose").has_value();
  std::make_shared<Run>(context, std::move(checks), verbose, std::move(reply))->go_on();
}

void add_checks(http::Router& router, Context& context, const std::string& path, std::span<const Check> checks) {
  router.plain({.path = path, .handler = [&context, checks](const http::PlainRequest& request, http::PlainReply reply) {
                  const auto excluded = http::query_values(request.query, "exclude");
                  std::vector<Check> wanted;
                  for (const Check& check : checks) {
                    if (std::find(excluded.begin(), excluded.end(), check.name) == excluded.end()) {
                      wanted.push_back(check);
                    }
                  }
                  run(context, std::move(wanted), request, std::move(reply));
                }});
  for (const Check& check : checks) {
    router.plain({.path = path + "/" + check.name,
                  .handler = [&context, check](const http::PlainRequest& request, http::PlainReply reply) {
                    run(context, {check}, request, std::move(reply));
                  }});
  }
}

void answer_health(http::PlainReply& reply, const std::string& reason) {
  http::PlainResponse response;
  response.body =
      std::string(R"({"health":")") + (reason.empty() ? "true" : "false") + R"(","reason":")" + reason + R"("})";
  if (!reason.empty()) {
    response.status = 503;
    response.body += "\n";
    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  }
  reply.send(std::move(response));
}

void health(Context& context, const http::PlainRequest& request, http::PlainReply reply) {
  const auto excluded = http::query_values(request.query, "exclude");
  for (const auto& alarm : context.member.alarms()) {
    const std::string name = etcdserverpb::AlarmType_Name(alarm.alarm());
    if (std::find(excluded.begin(), excluded.end(), name) == excluded.end()) {
      return answer_health(reply, "ALARM " + name);
    }
  }
  const bool serializable = http::query_value(request.query, "serializable") == "true";
  if (!serializable && context.member.state().raft.leader == raft::kNobody) {
    return answer_health(reply, "RAFT NO LEADER");
  }
  const auto shared = std::make_shared<http::PlainReply>(std::move(reply));
  const auto verdict = [shared](const std::string& failure) {
    answer_health(*shared, failure.empty() ? "" : "RANGE ERROR:" + failure);
  };
  serializable ? serializable_read(context, verdict) : linearizable_read(context, verdict);
}

}  // namespace

void add_health(http::Router& router, Context& context) {
  router.plain({.path = "/health", .handler = [&context](const http::PlainRequest& request, http::PlainReply reply) {
                  health(context, request, std::move(reply));
                }});
  add_checks(router, context, "/livez", kLivez);
  add_checks(router, context, "/readyz", kReadyz);
}

}  // namespace rpc
