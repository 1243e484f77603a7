// Any bytes on a connection, in pieces cut by the first byte: it must come to an end once the client has closed its
// sending side, and everything it sent must begin as HTTP.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/rpc.pb.h"
#include "base/check.h"
#include "http/io_thread.h"

namespace {

using namespace etcdserverpb;

// Echoes ids; ends with the body.
class Echo final : public http::StreamHandler {
 public:
  explicit Echo(std::shared_ptr<http::ServerStream> stream) : stream_(std::move(stream)) {}
  bool may_receive() override { return waiting_ < 3; }
  void on_message(http::MessagePtr) override { ++waiting_; }
  void on_half_close() override { stream_->finish({}); }
  void pull(http::Sink& sink) override {
    for (; waiting_ > 0 && !sink.full(); --waiting_) sink.send(LeaseKeepAliveResponse::default_instance());
  }

 private:
  const std::shared_ptr<http::ServerStream> stream_;
  int waiting_ = 0;
};

struct Fixture {
  Fixture() {
    router.unary({"/KV/Put", {"/v3/kv/put"}, &PutRequest::default_instance(), [](http::UnaryCall call) {
                    if (call.take<PutRequest>()->prev_kv()) return;  // dropped
                    call.reply.send_now(PutResponse::default_instance());
                  }});
    router.stream({"/Lease/KeepAlive",
                   {"/v3/lease/keepalive"},
                   &LeaseKeepAliveRequest::default_instance(),
                   [](http::StreamStart start) -> Result<std::unique_ptr<http::StreamHandler>> {
                     return std::make_unique<Echo>(start.stream);
                   }});
    router.plain({"/health", [](http::PlainRequest request, http::PlainReply reply) {
                    http::query_value(request.query, "serializable");
                    reply.send({.body = request.path});
                  }});
  }
  http::Router router;
  http::Shared shared{router, {.limits = {.request_bytes_max = 4096, .request_overhead_bytes = 512}}};
  http::IoThread io{shared, 0};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Fixture& fixture = *new Fixture;
  if (size == 0) return 0;
  std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = data[0] == 0 ? input.size() + 1 : data[0];

  int sockets[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) == 0);
  fixture.shared.connections_open.fetch_add(1);
  fixture.io.adopt(sockets[1], std::make_shared<http::Peer>(), /*tcp=*/false);
  std::string output;
  char buffer[16 * 1024];
  for (int rounds = 0; fixture.shared.connections_open.load() > 0; ++rounds) {
    CHECK(rounds < 100'000, "the connection does not end");
    if (!input.empty()) {
      const ssize_t sent = ::send(sockets[0], input.data(), std::min(piece, input.size()), MSG_NOSIGNAL);
      if (sent > 0) input.remove_prefix(static_cast<size_t>(sent));
      if (sent < 0 && errno == EPIPE) input = {};
    }
    if (input.empty()) ::shutdown(sockets[0], SHUT_WR);
    fixture.io.run_pass(/*wait=*/false);
    for (ssize_t got; (got = ::recv(sockets[0], buffer, sizeof(buffer), 0)) > 0;) {
      output.append(buffer, static_cast<size_t>(got));
    }
  }
  ::close(sockets[0]);
  if (!output.empty()) CHECK(output.starts_with("HTTP/1."), output.substr(0, 100));
  return 0;
}
