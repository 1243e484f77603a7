// One attempt to reach a peer at one URL: resolve, connect to each address in turn, say hello, read the answer.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "peer/address.h"
#include "peer/hello.h"
#include "peer/resolver.h"

namespace peer {

struct DialOptions {
  std::string url;
  Hello hello;
  std::chrono::milliseconds timeout;  // for each address, from connecting to the whole answer
};

struct Dialed {
  Tcp::socket socket;
  Answer answer;
  std::string remote;  // address, for the log
};

// Lives on the thread that runs `io`.
class Dial : public std::enable_shared_from_this<Dial> {
 public:
  // An answer of any verdict is a success here. kUnimplemented: the other side is too new, or the URL is TLS.
  using Done = std::function<void(Result<Dialed>)>;

  // `done` comes later, once, unless cancelled. `resolver` outlives the attempt.
  static std::shared_ptr<Dial> start(boost::asio::io_context& io, Resolver& resolver, DialOptions options, Done done);
  Dial(boost::asio::io_context& io, Resolver& resolver, DialOptions options, Done done);
  void cancel();

 private:
  using ErrorCode = boost::system::error_code;

  void begin();
  void resolved(const Result<Resolver::Endpoints>& endpoints);
  void connect_next(Error last);
  void connected();
  void read_body();
  void answered();
  // Runs `next` if `attempt` is still the one at work and there was no error; an error leads to the next address.
  template <class Next>
  auto step(const char* what, Next next);
  void arm(std::chrono::milliseconds timeout, const char* what);
  void finish(Result<Dialed> result);

  boost::asio::io_context& io_;
  Resolver& resolver_;
  const DialOptions options_;
  Done done_;  // empty: over
  boost::asio::steady_timer timer_;
  Resolver::Endpoints endpoints_;
  size_t next_ = 0;
  uint64_t attempt_ = 0;  // names the address at work: what completes late for another is not heard
  std::optional<Tcp::socket> socket_;
  Bytes out_;
  Bytes preamble_;
  Bytes body_;
};

// No delay, keepalive, and the kernel gives up on unacknowledged data after `timeout`.
void set_options(Tcp::socket& socket, std::chrono::milliseconds timeout);

}  // namespace peer
