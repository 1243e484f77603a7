// One HTTP/1.x connection: requests one after another, each a call, a plain request or a stream. Lives on one io
// thread; only what ReplyTarget and PlainTarget declare may be called from others. It reads ahead while a call is
// handled, which also tells it when the client is gone. One that begins with HTTP/2's preface goes on as that.
//
// http1_connection.cc: its life. http1_request.cc: heads, bodies, calls. http1_stream.cc: streams.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/body.h"
#include "http/connection.h"
#include "http/handler.h"
#include "http/json_parse.h"
#include "http/request.h"
#include "http/response.h"

namespace http {

class Stream;

class Http1Connection final : public Connection, public ReplyTarget, public PlainTarget {
 public:
  using Connection::Connection;
  ~Http1Connection() override;

  // Any thread.
  void answer(uint64_t call, Answer answer) override;
  void answer_now(uint64_t call, const Message& response) override;
  void answer_part(uint64_t call, std::shared_ptr<const Encoded> part, bool last) override;
  bool wanted(uint64_t call) const override { return wanted_call_.load(std::memory_order_acquire) == call; }
  void answer_plain(uint64_t call, PlainResponse response) override;

  void start() override;
  void receive(Letter& letter) override;
  void run_calls() override;
  void pump(uint64_t stream) override;
  void sweep(IoThread::Clock::time_point now) override;
  void begin_stop() override;

 private:
  enum class Phase {
    kHead,    // between requests, or within a head
    kBody,    // reading a body whole
    kCall,    // a handler has it
    kStream,  // a stream, whether or not its body has ended
    kLinger,  // the last answer is out; the client gets time to read it
    kClosed,
  };
  class StreamSink;

  // http1_connection.cc
  bool wants_input() const override;
  void on_input(std::string_view data) override;
  void on_eof() override;
  void before_write() override;
  void after_write() override;
  void on_abort() override;
  void on_written_all() override { parts_wait_ = in_parts_; }
  size_t write_progress_bytes_min() const override { return parts_wait_ ? kPartsProgressBytes : 1; }
  std::shared_ptr<Http1Connection> self() { return std::static_pointer_cast<Http1Connection>(shared_from_this()); }
  bool account() { return Connection::account(in_.size() + body_.size() + stream_in_.size() + call_bytes_); }
  void become_http2(std::string_view data);
  void feed(std::string_view data);
  void consume(std::string_view& in);
  void close_after_output(bool linger);
  void finish_request();
  void set_deadline(std::chrono::milliseconds in) { deadline_ = io_.now() + in; }
  void set_call_deadline();
  void on_call_deadline();

  // http1_request.cc
  void begin_request();
  void read_head(std::string_view& in);
  void on_head();
  void on_gateway_head();
  bool read_timeout(std::string_view text);
  void read_body(std::string_view& in);
  void complete_body(std::string_view body);
  void complete_message(std::string_view body);
  bool decide_keep_alive(bool discards_body);
  void refuse(std::string_view answer);
  void refuse_text(int status, std::string_view body, std::string_view headers = {});
  void refuse_error(const Error& error);
  void refuse_crowded();
  void fail_connection(int status);
  HeadOptions head_options() const;
  CallInfo call_info();
  bool pending(uint64_t call) const { return phase_ == Phase::kCall && call == call_; }
  void begin_call();
  void respond(const Answer& answer);
  void respond_json(std::string& body);  // may take it
  void respond_part(const Part& part);
  void respond_plain(const PlainResponse& response);
  bool head_only() const { return head_.method == "HEAD"; }
  Error too_large(size_t size) const;

  // http1_stream.cc
  void open_stream();
  void read_stream(std::string_view& in);
  void deliver();
  void half_close();
  void send_on_stream(std::string_view bytes, const std::shared_ptr<const Encoded>* shared);
  void add_chunk(std::string_view bytes, const std::shared_ptr<const Encoded>* shared);
  void stream_head(int status, std::string_view type, std::string_view more);
  void end_stream(const Status& outcome);
  std::unique_ptr<StreamHandler> close_stream();
  bool output_full() const { return out_.size() >= kStreamOutputBytesMax; }

  Phase phase_ = Phase::kHead;
  bool first_bytes_ = true;    // of the connection, which tell the protocol
  bool closing_ = false;       // after the output
  bool linger_ = false;        // not before the client has closed, or some time
  bool input_paused_ = false;  // requests wait in in_ until the output has drained
  IoThread::Clock::time_point deadline_ = IoThread::Clock::time_point::max();
  bool parts_wait_ = false;  // in out_, of an answer in parts
  std::string in_;           // received, not yet consumed

  // The request at hand.
  RequestHead head_;
  std::optional<RequestParser> parser_;
  const Router::Endpoint* endpoint_ = nullptr;
  bool http_1_1_ = true;
  bool keep_alive_ = true;
  std::string body_;
  BodyReader body_reader_;
  size_t body_seen_ = 0;         // of it, also when it is not kept
  size_t body_seen_before_ = 0;  // at the last sweep that found progress
  bool draining_ = false;        // it was refused: its body is dropped
  std::string query_;
  std::string path_;
  uint64_t call_ = 0;
  std::atomic<uint64_t> wanted_call_{0};  // call_ while it is being handled, for other threads
  size_t call_bytes_ = 0;                 // of the body whose message is being handled
  bool in_parts_ = false;                 // a part of its answer is on its way
  MessagePtr request_;
  std::optional<IoThread::Clock::time_point> call_deadline_;
  std::unique_ptr<boost::asio::steady_timer> call_timer_;

  // The stream at hand.
  std::shared_ptr<Stream> stream_;
  std::unique_ptr<StreamHandler> handler_;
  json::Scanner scanner_;
  std::string stream_in_;
  bool stream_headed_ = false;  // the head of the answer is out
  bool half_closed_ = false;    // told to the handler
  bool skip_body_ = false;      // the rest of the body cannot be understood
  bool framing_lost_ = false;   // its chunks make no sense
  bool held_back_ = false;      // messages wait for the handler or the output
  bool pull_again_ = false;     // when the output has drained
};

}  // namespace http
