// One HTTP/2 connection with its gRPC calls. nghttp2 knows the frames, header compression, settings, pings and windows;
// what a call is is in grpc_call.h. Lives on one io thread.
//
// Memory, for each connection: what is written and not yet taken by the socket (kHttp2OutputBytesMax and a frame), of
// unary answers kUnaryOutputBytesMax and one answer before further calls wait, of each stream kStreamOutputBytesMax and
// one message, and of what is received a window for each call, all of which count in limits.requests_bytes_max.
#pragma once

#include <nghttp2/nghttp2.h>

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "http/connection.h"

namespace http {

class GrpcCall;

class Http2Connection final : public Connection {
 public:
  Http2Connection(IoThread& io, Socket socket, std::shared_ptr<const Peer> peer, bool tcp);
  ~Http2Connection() override;

  void begin(std::string_view first);  // instead of start(): with what was read already
  void start() override {}
  void receive(Letter& letter) override;
  void run_calls() override;
  void pump(uint64_t stream) override;
  void sweep(IoThread::Clock::time_point now) override;
  void begin_stop() override;

  // For its calls.
  IoThread& io() { return io_; }
  const std::shared_ptr<const Peer>& peer() const { return peer_; }
  std::shared_ptr<Http2Connection> self() { return std::static_pointer_cast<Http2Connection>(shared_from_this()); }
  void call_ready(std::shared_ptr<GrpcCall> call);
  void begin_streams();      // one is open
  void post(Letter letter);  // any thread
  // The head of the answer, and the call's body after it; or, with `last`, only a head.
  void submit_head(GrpcCall& call, const nghttp2_nv* headers, size_t count, bool last);
  void resume(GrpcCall& call);             // there is more of its body
  void consume(int32_t id, size_t bytes);  // the client may send so much more on the stream
  void keep(size_t before, size_t after);  // of requests; see Connection::account
  bool crowded() const { return kept_ > kRequestBytesFree && io_.shared().crowded(); }
  void queued(size_t before, size_t after) { queued_ += after - before; }  // of unary answers
  using Connection::unsettle;

 private:
  bool wants_input() const override { return !awaits_pass_; }
  void on_input(std::string_view data) override;
  void on_eof() override { abort(); }
  void before_write() override;
  void after_write() override;
  void on_abort() override;

  static nghttp2_session_callbacks* callbacks();
  static Http2Connection& of(void* user) { return *static_cast<Http2Connection*>(user); }
  GrpcCall* find(int32_t id);
  int on_begin(int32_t id);
  int on_header(int32_t id, std::string_view name, std::string_view value);
  void on_frame(const nghttp2_frame& frame);
  void on_data(int32_t id, std::string_view data);
  void on_sent(const nghttp2_frame& frame);
  void on_closed(int32_t id);
  ssize_t read_body(GrpcCall& call, size_t length, uint32_t* flags);
  int send_data(GrpcCall& call, const uint8_t* frame_head, size_t length);
  void tell_ready();
  void linger();

  nghttp2_session* session_ = nullptr;
  std::unordered_map<int32_t, std::shared_ptr<GrpcCall>> calls_;
  std::vector<std::shared_ptr<GrpcCall>> ready_;  // to be run
  bool ready_told_ = false;
  bool has_streams_ = false;
  bool stopping_ = false;   // no new calls; closed after the last one
  bool lingering_ = false;  // all is out; the client gets time to read it
  size_t kept_ = 0;
  size_t queued_ = 0;
  bool progress_ = false;  // some of what is queued went out since the last look
  IoThread::Clock::time_point stall_deadline_ = IoThread::Clock::time_point::max();
  IoThread::Clock::time_point linger_deadline_ = IoThread::Clock::time_point::max();
};

}  // namespace http
