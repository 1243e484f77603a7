#include "peer/inbound.h"

#include <sys/socket.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "base/check.h"
#include "base/log.h"
#include "peer/dial.h"
#include "peer/door.h"

namespace peer {

namespace asio = boost::asio;

Inbound::Inbound(Core& core, Door& door, Tcp::socket socket)
    : core_(core), door_(door), socket_(std::move(socket)), remote_(remote_text(socket_)), since_(SteadyClock::now()) {}

template <class Next>
auto Inbound::step(Next next) {
  return [self = shared_from_this(), next](const ErrorCode& error, size_t bytes = 0) {
    if (self->phase_ == Phase::kClosed) return;
    next(*self, error, bytes);
  };
}

void Inbound::start() {
  set_options(socket_, kSilenceMax);
  peek();
}

// --- Who is there?

// Nothing is read yet, so that a tool's connection can be given away whole.
void Inbound::peek() {
  socket_.async_wait(Tcp::socket::wait_read, step([](Inbound& self, const ErrorCode& error, size_t) {
                       if (error) return self.close();
                       uint8_t first = 0;
                       const auto got = ::recv(self.socket_.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
                       if (got == 1) return self.sort_out(first);
                       if (got < 0 && (errno == EAGAIN || errno == EINTR)) return self.peek();
                       self.close();  // a probe of the port that only connects
                     }));
}

void Inbound::sort_out(uint8_t first_byte) {
  if (first_byte == kMagicFirst) return read_hello();
  const bool letter = first_byte >= 'A' && first_byte <= 'Z';
  if (letter && core_.options.take_http) {
    ErrorCode error;
    const int socket = socket_.release(error);
    close();
    if (!error) core_.options.take_http(socket);
    return;
  }
  if (letter) return answer_tool();
  drop(first_byte == 0x16 ? "it speaks TLS, which is not supported between members yet"
                          : "it speaks no known protocol");
}

void Inbound::answer_tool() {
  constexpr std::string_view kText =
      "404: this port is for the cluster's members; clients use --advertise-client-urls\n";
  Bytes words =
      "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: ";
  words.append(std::to_string(kText.size())).append("\r\n\r\n").append(kText);
  say(std::move(words), /*and_close=*/true);
}

void Inbound::read_hello() {
  preamble_.resize(kPreambleBytes);
  asio::async_read(socket_, asio::buffer(preamble_), step([](Inbound& self, const ErrorCode& error, size_t) {
                     if (error) return self.drop("half a hello");
                     const auto preamble = parse_preamble(as_bytes(self.preamble_), Side::kHello);
                     if (!preamble) return self.drop(preamble.error().message);
                     self.body_.resize(preamble->body_bytes);
                     asio::async_read(self.socket_, asio::buffer(self.body_),
                                      self.step([](Inbound& self, const ErrorCode& error, size_t) {
                                        if (error) return self.drop("half a hello");
                                        self.judge();
                                      }));
                   }));
}

void Inbound::judge() {
  Answer answer{.cluster = core_.options.cluster_id, .member = core_.options.member_id};
  const auto hello = parse_hello(as_bytes(preamble_), as_bytes(body_));
  if (!hello && hello.error().code == Code::kDataLoss) return drop(hello.error().message);
  if (!hello) {
    answer.verdict = hello.error().code == Code::kUnimplemented ? Verdict::kTooNew : Verdict::kNotUnderstood;
    answer.text = hello.error().message;
  } else {
    hello_ = *hello;
    answer = judge(hello_);
  }
  if (answer.verdict == Verdict::kAccepted && hello_.kind == Hello::Kind::kAsk) return describe_cluster();
  if (answer.verdict == Verdict::kAccepted) {
    phase_ = Phase::kFrames;
    since_ = SteadyClock::now();
    meters_ = &core_.meters.of(peer());
    parser_.emplace(lane(), core_.limits(lane()).frame_bytes_max);
    in_.resize(kReadBytes);
    door_.let_in(*this);
    return say(encode(answer), /*and_close=*/false);
  }
  if (answer.verdict != Verdict::kAccepted &&
      core_.log_limit.due("refuse " + std::to_string(static_cast<int>(answer.verdict)), since_)) {
    log_warn("refused a connection to the peer port",
             {{"from", remote_}, {"sender", id_text(hello_.sender)}, {"reason", answer.text}});
  }
  say(encode(answer), /*and_close=*/true);
}

Answer Inbound::judge(const Hello& hello) const {
  Answer answer{.cluster = core_.options.cluster_id, .member = core_.options.member_id};
  const auto refuse = [&](Verdict verdict, std::string why) {
    answer.verdict = verdict;
    answer.text = std::move(why);
    return answer;
  };
  if (hello.kind == Hello::Kind::kAsk) return answer;
  if (hello.cluster != answer.cluster) {
    return refuse(Verdict::kWrongCluster,
                  "it is of cluster " + id_text(hello.cluster) + ", this is cluster " + id_text(answer.cluster));
  }
  if (hello.addressee != answer.member) {
    return refuse(Verdict::kWrongMember,
                  "it looks for member " + id_text(hello.addressee) + ", this is member " + id_text(answer.member));
  }
  switch (core_.roster.of(hello.sender, hello.folder_id)) {
    case Roster::Standing::kPeer:
      core_.on_peer(hello);
      return answer;
    case Roster::Standing::kOtherFolder:
      return refuse(Verdict::kOtherFolder, "the sender is known by another data folder");
    case Roster::Standing::kRemoved:
      return refuse(Verdict::kRemoved, "the sender was removed from the cluster");
    case Roster::Standing::kStranger:
      if (core_.on_stranger(hello)) return answer;
  }
  return refuse(Verdict::kUnknownSender, "the sender is no member that this one knows of (yet)");
}

// The answer may come on another thread, and when this connection or the network is gone.
void Inbound::describe_cluster() {
  phase_ = Phase::kAsked;
  since_ = SteadyClock::now();
  core_.receiver->describe_cluster([&io = core_.io, weak = weak_from_this()](Bytes description) {
    asio::post(io, [weak, description = std::move(description)]() mutable {
      if (const auto self = weak.lock()) self->say_cluster(std::move(description));
    });
  });
}

void Inbound::say_cluster(Bytes description) {
  if (phase_ != Phase::kAsked) return;
  Answer answer{.cluster = core_.options.cluster_id, .member = core_.options.member_id};
  answer.text = std::move(description);
  say(encode(answer), /*and_close=*/true);
}

// --- Words

void Inbound::say(Bytes words, bool and_close) {
  out_ = std::move(words);
  if (and_close) {
    phase_ = Phase::kGoodbye;
    since_ = SteadyClock::now();
    in_.resize(kHelloBodyBytesMax);
  }
  asio::async_write(socket_, asio::buffer(out_), step([and_close](Inbound& self, const ErrorCode& error, size_t) {
                      if (error) return self.close();
                      if (!and_close) return self.read_frames();
                      ErrorCode ignored;
                      self.socket_.shutdown(Tcp::socket::shutdown_send, ignored);
                      self.read_until_closed();
                    }));
}

// Closing with unread bytes at hand would reset the connection, and the words would be lost.
void Inbound::read_until_closed() {
  socket_.async_read_some(asio::buffer(in_), step([](Inbound& self, const ErrorCode& error, size_t bytes) {
                            self.thrown_away_ += bytes;
                            if (error || self.thrown_away_ > kProbeBytesMax) return self.close();
                            self.read_until_closed();
                          }));
}

// --- Frames

void Inbound::read_frames() {
  socket_.async_read_some(asio::buffer(in_), step([](Inbound& self, const ErrorCode& error, size_t bytes) {
                            if (error == asio::error::eof && !self.parser_->inside()) return self.close();
                            if (error) return self.broken(error.message());
                            self.since_ = SteadyClock::now();
                            const auto fed = self.parser_->feed(as_bytes({self.in_.data(), bytes}), self);
                            if (!fed) return self.broken(fed.error().message);
                            self.read_frames();
                          }));
}

void Inbound::on_data(Bytes frame) {
  meters_->received_bytes.add(static_cast<double>(frame.size() + kFrameHeaderBytes));
  core_.receiver->on_frame(peer(), lane(), std::move(frame));
}

void Inbound::on_ping(uint64_t token) {
  pong_ = token;
  if (!writing_pong_) write_pong();
}

void Inbound::write_pong() {
  Bytes body;
  append_integer(body, *pong_);
  pong_.reset();
  out_.clear();
  append_header(out_, FrameType::kPong, lane(), as_bytes(body));
  out_ += body;
  writing_pong_ = true;
  asio::async_write(socket_, asio::buffer(out_), step([](Inbound& self, const ErrorCode& error, size_t) {
                      if (error) return;  // the reading end hears of it
                      self.writing_pong_ = false;
                      if (self.pong_) self.write_pong();
                    }));
}

// --- The end

void Inbound::tick(TimePoint now) {
  const bool stranger = phase_ == Phase::kHello || phase_ == Phase::kAsked;
  const Milliseconds patience = stranger ? core_.options.hello_timeout
                                : phase_ == Phase::kGoodbye
                                    ? kGoodbyeTimeout
                                    : std::max(kSilenceMax, 10 * core_.options.election_timeout);
  if (phase_ == Phase::kClosed || now - since_ < patience) return;
  if (phase_ == Phase::kHello) return drop("it says nothing");
  if (phase_ == Phase::kAsked) return say_cluster({});
  if (phase_ == Phase::kFrames) return broken("nothing came for long, not even a ping");
  close();
}

void Inbound::drop(const std::string& why) {
  if (core_.log_limit.due("stranger " + why, SteadyClock::now())) {
    log_warn("dropped a connection to the peer port", {{"from", remote_}, {"reason", why}});
  }
  close();
}

void Inbound::broken(const std::string& why) {
  meters_->received_failures.add();
  log_warn("a connection from a peer broke",
           {{"peer", id_text(peer())}, {"lane", lane_name(lane())}, {"from", remote_}, {"reason", why}});
  close();
}

void Inbound::close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  ErrorCode ignored;
  socket_.close(ignored);
  door_.forget(*this);
}

}  // namespace peer
