// A client of a simulated member that goes through the same handlers as one over the wire.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "http/handler.h"
#include "rpc/context.h"
#include "sim/simulation.h"

namespace sim {

// Of the member that is open now: to be gone before it is killed or closed.
class Service {
 public:
  explicit Service(Simulation& simulation);

  // Sends, and gives the number of the call. There is an answer now or after some steps.
  uint64_t send(const std::string& path, const google::protobuf::Message& request);
  // nullopt: not yet.
  std::optional<Status> answer(uint64_t call) const;
  // The response of a call that went well.
  template <class Response>
  const Response& response(uint64_t call) const {
    return static_cast<const Response&>(*inbox_->answers.at(call).value());
  }
  // Sends, and steps until the answer is there.
  Status call(const std::string& path, const google::protobuf::Message& request);

  // GET. Answered at once.
  http::PlainResponse get(const std::string& path, const std::string& query = "");

 private:
  struct Inbox final : http::ReplyTarget, http::PlainTarget {
    std::map<uint64_t, http::Answer> answers;
    std::map<uint64_t, http::PlainResponse> plain;
    void answer(uint64_t call, http::Answer answer) override { answers.emplace(call, std::move(answer)); }
    void answer_now(uint64_t call, const http::Message& response) override;
    void answer_plain(uint64_t call, http::PlainResponse response) override {
      plain.emplace(call, std::move(response));
    }
  };

  Simulation& simulation_;
  metrics::Registry metrics_;
  rpc::Readers readers_{1};
  const rpc::MemberHeader header_;
  rpc::Counters counters_{metrics_};
  rpc::Context context_;
  http::Router router_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  uint64_t calls_ = 0;
};

}  // namespace sim
