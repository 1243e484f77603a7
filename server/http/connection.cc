#include "http/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/check.h"
#include "http/json_write.h"
#include "http/stream.h"

namespace http {
namespace {

namespace asio = boost::asio;
using Wait = asio::posix::stream_descriptor;
using std::chrono::milliseconds;

void set_option(int socket, int level, int name, int value) {
  // A socket that refuses an option works without it.
  (void)::setsockopt(socket, level, name, &value, sizeof(value));
}

// A client that is gone without a word (cable, power) is noticed after a minute and a half.
void set_tcp_options(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

}  // namespace

void shrink(std::string& text) {
  text.clear();
  if (text.capacity() > kIdleBufferBytes) std::string().swap(text);
}

Connection::Connection(IoThread& io, int socket, std::shared_ptr<const Peer> peer, bool tcp)
    : io_(io), inbox_(io.inbox()), peer_(std::move(peer)), tcp_(tcp), socket_(std::in_place, io.context(), socket) {
  if (tcp_) set_tcp_options(socket);
}

Connection::~Connection() { CHECK(phase_ == Phase::kClosed); }

void Connection::start() {
  set_deadline(io_.limits().idle_timeout);
  wait_read();
}

// --- Answers from wherever they come

void Connection::answer(uint64_t call, Answer answer) {
  if (IoThread::current() == &io_) {
    if (pending(call)) respond(answer);
    return;
  }
  Letter letter;
  letter.connection = shared_from_this();
  letter.call = call;
  letter.content = std::move(answer);
  inbox_->put(std::move(letter));
}

void Connection::answer_now(uint64_t call, const Message& response) {
  if (IoThread::current() == &io_) {
    if (!pending(call)) return;
    std::string& body = io_.scratch();
    body.clear();
    json::append(body, response);
    respond_json(body);
    return;
  }
  Letter letter;
  letter.connection = shared_from_this();
  letter.call = call;
  json::append(letter.content.emplace<std::string>(), response);
  inbox_->put(std::move(letter));
}

void Connection::answer_part(uint64_t call, std::shared_ptr<const Encoded> part, bool last) {
  if (IoThread::current() == &io_) {
    if (pending(call)) respond_part({std::move(part), last});
    return;
  }
  Letter letter;
  letter.connection = shared_from_this();
  letter.call = call;
  letter.content = Part{std::move(part), last};
  inbox_->put(std::move(letter));
}

void Connection::answer_plain(uint64_t call, PlainResponse response) {
  if (IoThread::current() == &io_) {
    if (pending(call)) respond_plain(response);
    return;
  }
  Letter letter;
  letter.connection = shared_from_this();
  letter.call = call;
  letter.content = std::make_unique<PlainResponse>(std::move(response));
  inbox_->put(std::move(letter));
}

void Connection::receive(Letter& letter) {
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

// Whatever changes the connection within a round ends here; settle() then brings socket and state together once.
void Connection::unsettle() {
  if (unsettled_ || phase_ == Phase::kClosed) return;
  unsettled_ = true;
  io_.unsettled(shared_from_this());
}

bool Connection::wants_input() const {
  if (read_eof_) return false;
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

void Connection::wait_read() {
  if (reading_ || !wants_input()) return;
  reading_ = true;
  socket_->async_wait(Wait::wait_read, [self = shared_from_this()](const boost::system::error_code& error) {
    self->reading_ = false;
    if (!error) self->on_readable();
  });
}

void Connection::on_readable() {
  if (phase_ == Phase::kClosed) return;
  unsettle();
  const ssize_t size = ::recv(socket_->native_handle(), io_.read_buffer(), kReadBytes, MSG_DONTWAIT);
  if (size < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) abort();
    return;
  }
  if (size == 0) return on_eof();
  io_.shared().bytes_received.fetch_add(static_cast<uint64_t>(size), std::memory_order_relaxed);
  feed({io_.read_buffer(), static_cast<size_t>(size)});
}

// The client will send no more. A call in flight is still answered, as it may only have closed its sending side; a
// stream is over, as there is no other sign of a watcher that is gone.
void Connection::on_eof() {
  read_eof_ = true;
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

void Connection::feed(std::string_view data) {
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

// What is kept of this connection's requests goes into the sum of all; false: that is over the limit, and this
// connection has a part in it.
bool Connection::account() {
  const size_t kept = in_.size() + body_.size() + stream_in_.size() + call_bytes_;
  const size_t counted = phase_ != Phase::kClosed && kept > kRequestBytesFree ? kept - kRequestBytesFree : 0;
  if (counted != accounted_) {
    io_.shared().requests_bytes.fetch_add(counted - accounted_, std::memory_order_relaxed);  // modulo 2^64
    accounted_ = counted;
  }
  return counted == 0 || !io_.shared().crowded();
}

// Eats requests until one is being handled or more input is needed. Touches neither in_ nor the socket.
void Connection::consume(std::string_view& in) {
  while (!closing_) {
    switch (phase_) {
      case Phase::kHead:
        if (in.empty()) return;
        input_paused_ = out_.size() >= kUnaryOutputBytesMax;
        if (input_paused_) return;
        // The answers of this pass: when they are large, others come first.
        if (pass_bytes_left(sent_ + out_.size() - pass_made_) == 0) return wait_pass();
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

// Of what a connection may do in a pass, `done` of which is done.
size_t Connection::pass_bytes_left(size_t done) {
  if (pass_ != io_.pass()) {
    pass_ = io_.pass();
    pass_sent_ = sent_;
    pass_made_ = sent_ + out_.size();
    done = 0;
  }
  return done < kPassBytesMax ? kPassBytesMax - done : 0;
}

void Connection::wait_pass() {
  if (awaits_pass_) return;
  awaits_pass_ = true;
  io_.next_pass(shared_from_this());
}

void Connection::begin_pass() {
  awaits_pass_ = false;
  unsettle();
}

void Connection::settle() {
  unsettled_ = false;
  if (phase_ == Phase::kClosed) return;
  if (!in_.empty() && !held_back_ && !closing_ && phase_ != Phase::kCall) {
    feed({});
    if (phase_ == Phase::kClosed) return;
  }
  if (!writing_) write();
  if (phase_ == Phase::kClosed) return;
  account();
  if (out_.empty() && closing_ && phase_ != Phase::kLinger) {
    if (!linger_ || read_eof_) return abort();
    // Closing with unread input would reset the connection and could destroy the answer on its way.
    phase_ = Phase::kLinger;
    shrink(in_);
    ::shutdown(socket_->native_handle(), SHUT_WR);
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
  wait_read();
}

void Connection::write() {
  uint64_t sent = 0;
  const Output::Written written = out_.write_to(socket_->native_handle(), pass_bytes_left(sent_ - pass_sent_), sent);
  sent_ += sent;
  io_.shared().bytes_sent.fetch_add(sent, std::memory_order_relaxed);
  switch (written) {
    case Output::Written::kFailed:
      return abort();
    case Output::Written::kBlocked:
      note_blocked(sent);
      return wait_write();
    case Output::Written::kMore:
      write_deadline_ = IoThread::Clock::time_point::max();
      return wait_pass();
    case Output::Written::kAll:
      write_deadline_ = IoThread::Clock::time_point::max();
      parts_wait_ = in_parts_;
  }
}

// A client that takes nothing of its answer is cut. One that is answered in parts keeps others from theirs, so a few
// bytes now and then are not enough.
void Connection::note_blocked(size_t written) {
  write_progress_ += written;
  const bool waits = write_deadline_ != IoThread::Clock::time_point::max();
  if (waits && write_progress_ < (parts_wait_ ? kPartsProgressBytes : 1)) return;
  write_deadline_ = io_.now() + io_.limits().write_timeout;
  write_progress_ = 0;
}

void Connection::wait_write() {
  writing_ = true;
  socket_->async_wait(Wait::wait_write, [self = shared_from_this()](const boost::system::error_code& error) {
    self->writing_ = false;
    if (!error) self->unsettle();
  });
}

// --- Ends

void Connection::finish_request() {
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

void Connection::close_after_output(bool linger) {
  closing_ = true;
  linger_ = linger_ || linger;
  unsettle();
}

void Connection::abort() {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();  // forget() may drop the last other one
  phase_ = Phase::kClosed;
  if (auto handler = close_stream()) handler->on_cancel();
  call_timer_.reset();
  request_.reset();
  wanted_call_.store(0, std::memory_order_release);
  account();
  out_.clear();
  socket_.reset();  // closes it; waits end with an error
  io_.forget(*this);
}

void Connection::begin_stop() {
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

void Connection::sweep(IoThread::Clock::time_point now) {
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

void Connection::set_call_deadline() {
  if (!call_deadline_) return;
  call_timer_ = std::make_unique<asio::steady_timer>(io_.context(), *call_deadline_);
  call_timer_->async_wait([self = shared_from_this(), call = call_](const boost::system::error_code& error) {
    if (!error && call == self->call_) self->on_call_deadline();
  });
}

void Connection::on_call_deadline() {
  const auto late = fail(Code::kDeadlineExceeded, "context deadline exceeded");
  if (phase_ == Phase::kCall) {
    respond(late);
  } else if (phase_ == Phase::kStream) {
    if (handler_) handler_->on_cancel();
    end_stream(late);
  }
}

}  // namespace http
