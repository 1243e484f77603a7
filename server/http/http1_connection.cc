#include "http/http1_connection.h"

#include <sys/socket.h>

#include "base/check.h"
#include "http/http2_connection.h"
#include "http/json_write.h"
#include "http/stream.h"

namespace http {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

}  // namespace

Http1Connection::~Http1Connection() { CHECK(phase_ == Phase::kClosed); }

void Http1Connection::start() {
  set_deadline(io_.limits().idle_timeout);
  wait_read();
}

// --- Answers from wherever they come

void Http1Connection::answer(uint64_t call, Answer answer) {
  if (IoThread::current() == &io_) {
    if (pending(call)) respond(answer);
    return;
  }
  Letter letter;
  letter.connection = self();
  letter.call = call;
  letter.content = std::move(answer);
  inbox_->put(std::move(letter));
}

void Http1Connection::answer_now(uint64_t call, const Message& response) {
  if (IoThread::current() == &io_) {
    if (!pending(call)) return;
    std::string& body = io_.scratch();
    body.clear();
    json::append(body, response);
    respond_json(body);
    return;
  }
  Letter letter;
  letter.connection = self();
  letter.call = call;
  json::append(letter.content.emplace<std::string>(), response);
  inbox_->put(std::move(letter));
}

void Http1Connection::answer_part(uint64_t call, std::shared_ptr<const Encoded> part, bool last) {
  if (IoThread::current() == &io_) {
    if (pending(call)) respond_part({std::move(part), last});
    return;
  }
  Letter letter;
  letter.connection = self();
  letter.call = call;
  letter.content = Part{std::move(part), last};
  inbox_->put(std::move(letter));
}

void Http1Connection::answer_plain(uint64_t call, PlainResponse response) {
  if (IoThread::current() == &io_) {
    if (pending(call)) respond_plain(response);
    return;
  }
  Letter letter;
  letter.connection = self();
  letter.call = call;
  letter.content = std::make_unique<PlainResponse>(std::move(response));
  inbox_->put(std::move(letter));
}

void Http1Connection::receive(Letter& letter) {
  if (!pending(letter.call)) return;
  if (auto* answer = std::get_if<Answer>(&letter.content)) {
    respond(*answer);
  } else if (auto* encoded = std::get_if<std::string>(&letter.content)) {
    respond_json(*encoded);
  } else if (auto* part = std::get_if<Part>(&letter.content)) {
    respond_part(*part);
  } else if (auto* plain = std::get_if<std::unique_ptr<PlainResponse>>(&letter.content)) {
    respond_plain(**plain);
  }
}

// --- Reading

bool Http1Connection::wants_input() const {
  switch (phase_) {
    case Phase::kHead:
      return !closing_ && !awaits_pass_ && out_.size() < kUnaryOutputBytesMax;
    case Phase::kBody:
      return !closing_;
    case Phase::kCall:
      // Reading ahead is a courtesy that costs memory.
      return in_.size() < kReadAheadBytesMax && (in_.empty() || !io_.shared().crowded());
    case Phase::kStream:
      return !held_back_ && in_.size() < kReadAheadBytesMax;
    case Phase::kLinger:
      return true;
    case Phase::kClosed:
      return false;
  }
  return false;
}

// The client will send no more. A call in flight is still answered, as it may only have closed its sending side; a
// stream is over, as there is no other sign of a watcher that is gone.
void Http1Connection::on_eof() {
  switch (phase_) {
    case Phase::kHead:
    case Phase::kBody:
      return closing_ || !out_.empty() ? close_after_output(false) : abort();
    case Phase::kCall:
      keep_alive_ = false;
      return;
    default:
      return abort();
  }
}

void Http1Connection::on_input(std::string_view data) {
  if (!first_bytes_) return feed(data);
  const std::string all = in_ + std::string(data.substr(0, kHttp2Preface.size()));
  const size_t common = std::min(all.size(), kHttp2Preface.size());
  if (all.compare(0, common, kHttp2Preface, 0, common) == 0) {
    in_.append(data);
    if (common == kHttp2Preface.size()) return become_http2(in_);
    return set_deadline(io_.limits().head_timeout);
  }
  first_bytes_ = false;
  feed(data);
}

void Http1Connection::become_http2(std::string_view data) {
  phase_ = Phase::kClosed;
  const auto next = std::make_shared<Http2Connection>(io_, release(), peer_, tcp_);
  io_.replace(*this, next);
  next->begin(data);
}

void Http1Connection::feed(std::string_view data) {
  if (phase_ == Phase::kLinger) return;
  if (in_.empty()) {
    consume(data);
    if (phase_ != Phase::kClosed) in_.assign(data);
  } else {
    in_.append(data);
    std::string_view rest = in_;
    consume(rest);
    in_.erase(0, in_.size() - rest.size());
  }
  if (in_.empty()) shrink(in_);
  // Of a head not much can wait, but of many heads.
  if (!account() && phase_ == Phase::kHead && parser_ && !closing_) fail_connection(503);
}

// Eats requests until one is being handled or more input is needed. Touches neither in_ nor the socket.
void Http1Connection::consume(std::string_view& in) {
  while (!closing_) {
    switch (phase_) {
      case Phase::kHead:
        if (in.empty()) return;
        input_paused_ = out_.size() >= kUnaryOutputBytesMax;
        if (input_paused_) return;
        // The answers of this pass: when they are large, others come first.
        if (pass_bytes_left_to_make() == 0) return wait_pass();
        read_head(in);
        if (phase_ == Phase::kHead && parser_) return;  // incomplete
        break;
      case Phase::kBody:
        read_body(in);
        if (phase_ == Phase::kBody) return;
        break;
      case Phase::kStream:
        return read_stream(in);
      default:
        return;
    }
  }
}

// --- Writing

void Http1Connection::before_write() {
  if (!in_.empty() && !first_bytes_ && !held_back_ && !closing_ && phase_ != Phase::kCall) feed({});
}

void Http1Connection::after_write() {
  account();
  if (out_.empty() && closing_ && phase_ != Phase::kLinger) {
    if (!linger_ || read_eof_) return abort();
    // Closing with unread input would reset the connection and could destroy the answer on its way.
    phase_ = Phase::kLinger;
    shrink(in_);
    ::shutdown(native_socket(), SHUT_WR);
    set_deadline(kLingerTimeout);
  }
  if (input_paused_ && out_.size() < kUnaryOutputBytesMax) {
    input_paused_ = false;
    unsettle();  // for the requests that wait in in_
  }
  if (pull_again_ && !output_full()) {
    pull_again_ = false;
    stream_->wake();
  }
}

// --- Ends

void Http1Connection::finish_request() {
  io_.shared().requests.fetch_add(1, std::memory_order_relaxed);
  const bool body_left = !body_reader_.done();  // it would be taken for the next request
  parser_.reset();
  endpoint_ = nullptr;
  request_.reset();
  shrink(body_);
  wanted_call_.store(0, std::memory_order_release);
  call_bytes_ = 0;
  in_parts_ = false;
  if (call_timer_ != nullptr) call_timer_.reset();
  phase_ = Phase::kHead;
  set_deadline(io_.limits().idle_timeout);
  unsettle();
  if (!keep_alive_ || body_left || io_.stopping()) close_after_output(body_left || !in_.empty());
}

void Http1Connection::close_after_output(bool linger) {
  closing_ = true;
  linger_ = linger_ || linger;
  unsettle();
}

void Http1Connection::on_abort() {
  phase_ = Phase::kClosed;
  if (auto handler = close_stream()) handler->on_cancel();
  call_timer_.reset();
  request_.reset();
  wanted_call_.store(0, std::memory_order_release);
}

void Http1Connection::begin_stop() {
  switch (phase_) {
    case Phase::kHead:
      return out_.empty() ? abort() : close_after_output(false);
    case Phase::kStream:
      keep_alive_ = false;
      if (handler_) handler_->on_cancel();
      end_stream(fail(Code::kUnavailable, "etcdserver: server stopped"));
      return unsettle();
    default:
      keep_alive_ = false;
  }
}

void Http1Connection::sweep(IoThread::Clock::time_point now) {
  if (now >= write_deadline_ && phase_ != Phase::kStream) return abort();
  if (now < deadline_) return;
  switch (phase_) {
    case Phase::kHead:
      return parser_ && !closing_ ? fail_connection(408) : abort();
    case Phase::kBody:
      if (body_seen_ < body_seen_before_ + io_.limits().body_progress_bytes) return fail_connection(408);
      body_seen_before_ = body_seen_;
      deadline_ = now + io_.limits().body_progress_period;
      return;
    case Phase::kLinger:
      return abort();
    default:
      return;
  }
}

// --- Deadlines of calls (Grpc-Timeout)

void Http1Connection::set_call_deadline() {
  if (!call_deadline_) return;
  call_timer_ = std::make_unique<boost::asio::steady_timer>(io_.context(), *call_deadline_);
  call_timer_->async_wait([self = self(), call = call_](const boost::system::error_code& error) {
    if (!error && call == self->call_) self->on_call_deadline();
  });
}

void Http1Connection::on_call_deadline() {
  const auto late = fail(Code::kDeadlineExceeded, "context deadline exceeded");
  if (phase_ == Phase::kCall) {
    respond(late);
  } else if (phase_ == Phase::kStream) {
    if (handler_) handler_->on_cancel();
    end_stream(late);
  }
}

}  // namespace http
