#include "sim/service.h"

#include "base/check.h"

namespace sim {

void Service::Inbox::answer_now(uint64_t call, const http::Message& response) {
  std::unique_ptr<http::Message> copy(response.New());
  copy->CopyFrom(response);
  answers.emplace(call, std::unique_ptr<const http::Message>(std::move(copy)));
}

Service::Service(Simulation& simulation)
    : simulation_(simulation),
      header_(simulation.member()),
      context_{simulation.member(), header_, readers_, counters_, {}} {
  readers_.serve(simulation.member());
  rpc::add_kv(router_, context_);
  rpc::add_lease(router_, context_);
  rpc::add_maintenance(router_, context_);
  rpc::add_health(router_, context_);
}

uint64_t Service::send(const std::string& path, const google::protobuf::Message& request) {
  const auto* endpoint = router_.find_path(path);
  CHECK(endpoint != nullptr && endpoint->unary != nullptr, path);
  http::MessagePtr message(request.New());
  message->CopyFrom(request);
  const uint64_t call = ++calls_;
  const http::BatchHooks hooks = readers_.hooks();
  hooks.begin(0);
  endpoint->unary->handler({.request = std::move(message),
                            .info = {.token = "", .peer = std::make_shared<http::Peer>(), .deadline = {}},
                            .reply = http::Reply(inbox_, call)});
  hooks.end(0);
  return call;
}

std::optional<Status> Service::answer(uint64_t call) const {
  const auto found = inbox_->answers.find(call);
  if (found == inbox_->answers.end()) return std::nullopt;
  return found->second ? Status() : Status(::fail(found->second.error()));
}

Status Service::call(const std::string& path, const google::protobuf::Message& request) {
  const uint64_t number = send(path, request);
  simulation_.run_until([&] { return answer(number).has_value(); }, std::chrono::seconds(20));
  return answer(number).value_or(::fail(Code::kUnknown, "the member failed, or never answered"));
}

http::PlainResponse Service::get(const std::string& path, const std::string& query) {
  const auto* endpoint = router_.find_path(path);
  CHECK(endpoint != nullptr && endpoint->plain != nullptr, path);
  const uint64_t call = ++calls_;
  endpoint->plain->handler({.method = "GET", .path = path, .query = query}, http::PlainReply(inbox_, call));
  return inbox_->plain.at(call);
}

}  // namespace sim
