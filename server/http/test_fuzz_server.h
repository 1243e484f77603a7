// A server for fuzzing: one io thread that is run by hand, with one call, one stream and one plain route. Test code
// only.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "api/rpc.pb.h"
#include "base/check.h"
#include "http/io_thread.h"

namespace http::test {

// Echoes ids; ends with the body.
class Echo final : public StreamHandler {
 public:
  explicit Echo(std::shared_ptr<ServerStream> stream) : stream_(std::move(stream)) {}
  bool may_receive() override { return waiting_ < 3; }
  void on_message(MessagePtr) override { ++waiting_; }
  void on_half_close() override { stream_->finish({}); }
  void pull(Sink& sink) override {
    for (; waiting_ > 0 && !sink.full(); --waiting_)
      sink.send(etcdserverpb::LeaseKeepAliveResponse::default_instance());
  }

 private:
  const std::shared_ptr<ServerStream> stream_;
  int waiting_ = 0;
};

class FuzzServer {
 public:
  FuzzServer() {
    router.unary(
        {"/etcdserverpb.KV/Put", {"/v3/kv/put"}, &etcdserverpb::PutRequest::default_instance(), [](UnaryCall call) {
           if (call.take<etcdserverpb::PutRequest>()->prev_kv()) return;  // dropped
           call.reply.send_now(etcdserverpb::PutResponse::default_instance());
         }});
    router.stream({"/etcdserverpb.Lease/LeaseKeepAlive",
                   {"/v3/lease/keepalive"},
                   &etcdserverpb::LeaseKeepAliveRequest::default_instance(),
                   [](StreamStart start) -> Result<std::unique_ptr<StreamHandler>> {
                     return std::make_unique<Echo>(start.stream);
                   }});
    router.plain({"/health", [](PlainRequest request, PlainReply reply) {
                    query_value(request.query, "serializable");
                    reply.send({.body = request.path});
                  }});
  }
  // What one connection that sends `input`, in pieces of `piece` bytes, is answered until it ends.
  std::string run(std::string_view input, size_t piece) {
    int sockets[2];
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) == 0);
    shared.connections_open.fetch_add(1);
    io.adopt(sockets[1], std::make_shared<Peer>(), /*tcp=*/false);
    std::string output;
    char buffer[16 * 1024];
    for (int rounds = 0; shared.connections_open.load() > 0; ++rounds) {
      CHECK(rounds < 100'000, "the connection does not end");
      if (!input.empty()) {
        const ssize_t sent = ::send(sockets[0], input.data(), std::min(piece, input.size()), MSG_NOSIGNAL);
        if (sent > 0) input.remove_prefix(static_cast<size_t>(sent));
        if (sent < 0 && errno == EPIPE) input = {};
      }
      if (input.empty()) ::shutdown(sockets[0], SHUT_WR);
      io.run_pass(/*wait=*/false);
      for (ssize_t got; (got = ::recv(sockets[0], buffer, sizeof(buffer), 0)) > 0;) {
        output.append(buffer, static_cast<size_t>(got));
      }
    }
    ::close(sockets[0]);
    return output;
  }

 private:
  Router router;
  Shared shared{router, {.limits = {.request_bytes_max = 4096, .request_overhead_bytes = 512}}};
  IoThread io{shared, 0};
};

}  // namespace http::test
