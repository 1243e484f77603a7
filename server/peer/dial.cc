#include "peer/dial.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "peer/limits.h"

namespace peer {

namespace asio = boost::asio;

void set_options(Tcp::socket& socket, std::chrono::milliseconds timeout) {
  // A socket that refuses an option works without it.
  const auto set = [&](int level, int name, int value) {
    (void)::setsockopt(socket.native_handle(), level, name, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(timeout.count()));
}

std::shared_ptr<Dial> Dial::start(asio::io_context& io, Resolver& resolver, DialOptions options, Done done) {
  auto dial = std::make_shared<Dial>(io, resolver, std::move(options), std::move(done));
  asio::post(io, [dial] { dial->begin(); });
  return dial;
}

Dial::Dial(asio::io_context& io, Resolver& resolver, DialOptions options, Done done)
    : io_(io), resolver_(resolver), options_(std::move(options)), done_(std::move(done)), timer_(io) {}

template <class Next>
auto Dial::step(const char* what, Next next) {
  return [self = shared_from_this(), attempt = attempt_, what, next](const ErrorCode& error, size_t = 0) {
    if (!self->done_ || self->attempt_ != attempt) return;
    if (error) {
      self->connect_next({Code::kUnavailable, std::string(what) + ": " + error.message()});
    } else {
      next(*self);
    }
  };
}

void Dial::begin() {
  if (!done_) return;
  auto address = parse_url(options_.url);
  if (!address) return finish(fail(std::move(address.error())));
  ErrorCode error;
  const auto numeric = asio::ip::make_address(address->host, error);
  if (!error) {
    const auto port = static_cast<uint16_t>(std::stoul(address->port));
    return resolved(Resolver::Endpoints{Tcp::endpoint(numeric, port)});
  }
  arm(kResolveTimeout, "the name is not resolved");
  resolver_.resolve(*address, [self = shared_from_this(), attempt = attempt_](const auto& endpoints) {
    if (self->done_ && self->attempt_ == attempt) self->resolved(endpoints);
  });
}

void Dial::resolved(const Result<Resolver::Endpoints>& endpoints) {
  if (!endpoints) return finish(fail(endpoints.error()));
  endpoints_ = *endpoints;
  connect_next({Code::kUnavailable, "the name has no address"});
}

void Dial::connect_next(Error last) {
  ++attempt_;
  socket_.reset();
  if (next_ == endpoints_.size()) return finish(fail(std::move(last)));
  arm(options_.timeout, "no answer in time");
  socket_.emplace(io_);
  socket_->async_connect(endpoints_[next_++], step("cannot connect", [](Dial& self) { self.connected(); }));
}

void Dial::connected() {
  set_options(*socket_, options_.timeout);
  out_ = encode(options_.hello);
  // A hello fits into any socket's buffer: the answer may as well be waited for at once.
  asio::async_write(*socket_, asio::buffer(out_),
                    [self = shared_from_this()](const ErrorCode&, size_t) { /* the reading end hears of it */ });
  preamble_.resize(kPreambleBytes);
  asio::async_read(*socket_, asio::buffer(preamble_), step("no answer", [](Dial& self) { self.read_body(); }));
}

void Dial::read_body() {
  const auto preamble = parse_preamble(as_bytes(preamble_), Side::kAnswer);
  if (!preamble) return connect_next(preamble.error());
  body_.resize(preamble->body_bytes);
  asio::async_read(*socket_, asio::buffer(body_), step("half an answer", [](Dial& self) { self.answered(); }));
}

void Dial::answered() {
  auto answer = parse_answer(as_bytes(preamble_), as_bytes(body_));
  if (!answer) return connect_next(std::move(answer.error()));
  const std::string remote = remote_text(*socket_);
  finish(Dialed{.socket = std::move(*socket_), .answer = std::move(*answer), .remote = remote});
}

void Dial::arm(std::chrono::milliseconds timeout, const char* what) {
  timer_.expires_after(timeout);
  timer_.async_wait([self = shared_from_this(), attempt = attempt_, what](const ErrorCode& error) {
    if (error || !self->done_ || self->attempt_ != attempt) return;
    self->connect_next({Code::kUnavailable, what});
  });
}

void Dial::finish(Result<Dialed> result) {
  timer_.cancel();
  socket_.reset();
  const Done done = std::exchange(done_, nullptr);
  done(std::move(result));
}

void Dial::cancel() {
  done_ = nullptr;
  timer_.cancel();
  socket_.reset();
}

}  // namespace peer
