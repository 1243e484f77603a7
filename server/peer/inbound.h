// An accepted connection: finds out who speaks, answers its hello, then reads the frames of one lane of one peer.
// Network thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "peer/core.h"
#include "peer/frame.h"
#include "peer/hello.h"

namespace peer {

class Door;

class Inbound : public std::enable_shared_from_this<Inbound>, private FrameParser::Sink {
 public:
  Inbound(Core& core, Door& door, Tcp::socket socket);
  void start();
  void tick(TimePoint now);
  void close();

  // Of one that was let in.
  uint64_t peer() const { return hello_.sender; }
  Network::Lane lane() const { return hello_.lane; }
  uint64_t folder() const { return hello_.folder_id; }

 private:
  using ErrorCode = boost::system::error_code;
  enum class Phase : uint8_t {
    kHello,    // nobody knows who it is
    kAsked,    // it asked who the cluster is, which is being found out
    kGoodbye,  // it is being told something, and then closed
    kFrames,
    kClosed,
  };

  template <class Next>
  auto step(Next next);
  void peek();
  void sort_out(uint8_t first_byte);
  void answer_tool();
  void read_hello();
  void judge();
  Answer judge(const Hello& hello) const;
  void describe_cluster();
  void say_cluster(Bytes description);
  void say(Bytes words, bool and_close);
  void read_until_closed();
  void read_frames();
  void drop(const std::string& why);  // a stranger
  void broken(const std::string& why);
  void write_pong();
  void on_data(Bytes frame) override;
  void on_ping(uint64_t token) override;
  void on_pong(uint64_t) override {}

  Core& core_;
  Door& door_;
  Tcp::socket socket_;
  const std::string remote_;
  Phase phase_ = Phase::kHello;
  TimePoint since_;  // of the phase; of the last bytes in kFrames
  Bytes preamble_;
  Bytes body_;
  Bytes out_;
  Hello hello_;
  std::optional<FrameParser> parser_;
  Bytes in_;
  size_t thrown_away_ = 0;
  PeerMeters* meters_ = nullptr;
  std::optional<uint64_t> pong_;  // to be answered; a newer ping takes its place
  bool writing_pong_ = false;
};

}  // namespace peer
