#include "http/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/check.h"

namespace http {
namespace {

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

Connection::Connection(IoThread& io, Socket socket, std::shared_ptr<const Peer> peer, bool tcp)
    : io_(io), inbox_(io.inbox()), peer_(std::move(peer)), tcp_(tcp), socket_(std::move(socket)) {
  if (tcp_) set_tcp_options(socket_->native_handle());
}

Connection::~Connection() { CHECK(closed()); }

// --- Reading

void Connection::unsettle() {
  if (unsettled_ || closed()) return;
  unsettled_ = true;
  io_.unsettled(shared_from_this());
}

void Connection::wait_read() {
  if (reading_ || read_eof_ || !wants_input()) return;
  reading_ = true;
  socket_->async_wait(Socket::wait_read, [self = shared_from_this()](const boost::system::error_code& error) {
    self->reading_ = false;
    if (!error) self->on_readable();
  });
}

void Connection::on_readable() {
  if (closed()) return;
  unsettle();
  const ssize_t size = ::recv(native_socket(), io_.read_buffer(), kReadBytes, MSG_DONTWAIT);
  if (size < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) abort();
    return;
  }
  if (size == 0) {
    read_eof_ = true;
    return on_eof();
  }
  io_.shared().bytes_received.fetch_add(static_cast<uint64_t>(size), std::memory_order_relaxed);
  on_input({io_.read_buffer(), static_cast<size_t>(size)});
}

bool Connection::account(size_t kept) {
  const size_t counted = !closed() && kept > kRequestBytesFree ? kept - kRequestBytesFree : 0;
  if (counted != accounted_) {
    io_.shared().requests_bytes.fetch_add(counted - accounted_, std::memory_order_relaxed);  // modulo 2^64
    accounted_ = counted;
  }
  return counted == 0 || !io_.shared().crowded();
}

// --- Writing

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
  if (closed()) return;
  before_write();
  if (closed()) return;
  if (!writing_) write();
  if (closed()) return;
  after_write();
  if (closed()) return;
  wait_read();
}

void Connection::write() {
  uint64_t sent = 0;
  const Output::Written written = out_.write_to(native_socket(), pass_bytes_left(sent_ - pass_sent_), sent);
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
      on_written_all();
  }
}

// A client that takes nothing of its answer is cut, by sweep(). One that is answered in parts keeps others from theirs,
// so a few bytes now and then are not enough.
void Connection::note_blocked(size_t written) {
  write_progress_ += written;
  const bool waits = write_deadline_ != IoThread::Clock::time_point::max();
  if (waits && write_progress_ < write_progress_bytes_min()) return;
  write_deadline_ = io_.now() + io_.limits().write_timeout;
  write_progress_ = 0;
}

void Connection::wait_write() {
  writing_ = true;
  socket_->async_wait(Socket::wait_write, [self = shared_from_this()](const boost::system::error_code& error) {
    self->writing_ = false;
    if (!error) self->unsettle();
  });
}

// --- Ends

void Connection::abort() {
  if (closed()) return;
  const auto self = shared_from_this();  // forget() may drop the last other one
  on_abort();
  out_.clear();
  socket_.reset();  // closes it; waits end with an error
  account(0);
  io_.forget(*this);
}

Connection::Socket Connection::release() {
  Socket socket(io_.context(), socket_->release());
  socket_.reset();
  account(0);
  return socket;
}

}  // namespace http
