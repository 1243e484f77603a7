// One gRPC call on one stream of an HTTP/2 connection: from headers and bytes to request messages, from answers to
// bytes and trailers. A unary call is a ReplyTarget, a streaming one the front end's side of a StreamHandler.
//
// Io thread only, but for what ReplyTarget declares.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/handler.h"
#include "http/http2_connection.h"

namespace http {

class Stream;

class GrpcCall final : public ReplyTarget, public std::enable_shared_from_this<GrpcCall> {
 public:
  GrpcCall(Http2Connection& connection, int32_t id);
  ~GrpcCall() override;

  // Any thread.
  void answer(uint64_t call, Answer answer) override;
  void answer_now(uint64_t call, const Message& response) override;
  void answer_part(uint64_t call, std::shared_ptr<const Encoded> part, bool last) override;
  bool wanted(uint64_t) const override { return wanted_.load(std::memory_order_acquire); }
  Codec codec() const override { return Codec::kGrpc; }

  // What the client sends.
  bool add_header(std::string_view name, std::string_view value);  // false: too many of them
  void on_headers();                                               // all are there
  void on_data(std::string_view data);
  void on_end();     // the client will send no more
  void on_closed();  // the stream is over, whoever ended it; the connection may be gone after it

  void run();  // its handler, if it is unary
  void take(Letter& letter);
  void pump();
  void stop();  // the server stops

  // The body of the answer.
  size_t body_bytes() const { return body_bytes_; }
  bool body_ends() const { return outcome_.has_value(); }
  void take_body(std::string& to, size_t bytes);  // moves its next bytes
  void submit_trailers(nghttp2_session* session);
  int32_t id() const { return id_; }
  bool is_stream() const { return stream_ != nullptr; }

 private:
  class CallSink;
  struct Piece {
    std::string own;
    std::shared_ptr<const Encoded> shared;
    std::string_view view() const { return shared ? std::string_view(shared->bytes) : std::string_view(own); }
  };

  bool over() const { return outcome_.has_value() || connection_ == nullptr; }
  void open_stream();
  bool keep(size_t bytes_more_of_request);
  void read_unary();
  void deliver();
  Result<MessagePtr> next_message(size_t& end);
  void set_deadline();
  void on_deadline();
  void send(std::string bytes);
  void send(std::shared_ptr<const Encoded> encoded);
  void add_body(Piece piece);
  void end(Status outcome);
  void refuse(int status);  // not gRPC at all
  std::unique_ptr<StreamHandler> close_stream();
  bool output_full() const { return body_bytes_ >= kStreamOutputBytesMax; }
  Error too_large(size_t size) const;
  Letter letter();

  Http2Connection* connection_;
  const std::shared_ptr<Http2Connection> owner_;  // for letters, which may come when the connection is closed
  IoThread* const io_;
  const int32_t id_;
  std::atomic<bool> wanted_{false};

  // The head of the request.
  size_t head_bytes_ = 0;
  std::string path_;
  std::string token_;
  bool post_ = false;
  bool grpc_ = false;  // its content type
  bool gzip_ = false;
  std::string foreign_encoding_;
  std::optional<std::string> timeout_;
  const Router::Endpoint* endpoint_ = nullptr;
  std::optional<IoThread::Clock::time_point> deadline_;
  std::unique_ptr<boost::asio::steady_timer> timer_;

  // The messages of the request.
  std::string in_;            // received, no whole message or one that is held back
  size_t unconsumed_ = 0;     // of the stream's window
  size_t kept_ = 0;           // counted at the connection
  bool ended_ = false;        // by the client
  bool half_closed_ = false;  // told to the handler
  MessagePtr request_;

  std::shared_ptr<Stream> stream_;
  std::unique_ptr<StreamHandler> handler_;
  bool pull_again_ = false;

  // The answer.
  bool headed_ = false;
  std::vector<Piece> body_;
  size_t body_first_ = 0;   // pieces before it are taken
  size_t body_offset_ = 0;  // taken of body_[body_first_]
  size_t body_bytes_ = 0;
  std::optional<Status> outcome_;
};

}  // namespace http
