// One HTTP/2 connection with gRPC calls, by nghttp2's client side, and raw frames for what no client sends. Test code
// only.
#pragma once

#include <nghttp2/nghttp2.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/test_client.h"

namespace google::protobuf {
class Message;
}

namespace http::test {

std::string framed(const google::protobuf::Message& message);  // with gRPC's prefix
std::string framed(std::string_view bytes, bool compressed = false);
// An HTTP/2 frame; its length as it is.
std::string frame(uint8_t type, uint8_t flags, int32_t stream, std::string_view payload);
inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct GrpcAnswer {
  std::map<std::string, std::string> headers;  // trailers among them
  std::string body;                            // with prefixes
  bool closed = false;
  uint32_t error = 0;  // of RST_STREAM

  std::string header(const std::string& name) const;  // "" when it is not there
  std::string status() const { return header("grpc-status"); }
  std::string message() const { return header("grpc-message"); }
  std::vector<std::string> messages() const;
};

class GrpcClient {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;
  // `reads`: it opens the windows again for what it receives.
  explicit GrpcClient(const std::string& url, bool reads = true);
  ~GrpcClient();
  GrpcClient(const GrpcClient&) = delete;
  GrpcClient& operator=(const GrpcClient&) = delete;

  // Begins a call; `more` replaces what it would send by itself, or comes on top. `body` goes out as the windows allow.
  int32_t begin(std::string_view path, std::string body, bool end = true, Headers more = {});
  void send(int32_t call, std::string_view body, bool end = false);
  void reset(int32_t call);
  void raw(std::string_view bytes);  // behind what was sent so far
  size_t unsent(int32_t call) const { return out_.at(call).bytes.size(); }

  // All wait ten seconds at most; a test that waits so long has failed.
  const GrpcAnswer& finish(int32_t call);  // until it is over
  const GrpcAnswer& answer(int32_t call) const { return answers_.at(call); }
  bool has_messages(int32_t call, size_t count);
  GrpcAnswer unary(std::string_view path, const google::protobuf::Message& request, Headers more = {});
  bool closed();  // the connection, by the server
  bool going_away() const { return going_away_; }
  bool wait_until(const std::function<bool()>& done);
  void pass(std::chrono::milliseconds time);  // reads and writes so long

 private:
  struct Out {
    std::string bytes;
    bool end = false;
  };
  void flush();
  bool exchange(std::chrono::milliseconds wait);

  Client socket_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, GrpcAnswer> answers_;
  std::map<int32_t, Out> out_;
  bool going_away_ = false;
  bool ended_ = false;
};

}  // namespace http::test
