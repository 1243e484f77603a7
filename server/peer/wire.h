// An outgoing connection that was accepted: writes the frames of its link, pings, and knows when the other side is
// dead. Network thread only.
#pragma once

#include <boost/asio/buffer.hpp>
#include <memory>
#include <string>
#include <vector>

#include "peer/core.h"
#include "peer/frame.h"

namespace peer {

class Wire : public std::enable_shared_from_this<Wire>, private FrameParser::Sink {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The next frames to write, within the batch limits. False: none; then write() is called when there are.
    virtual bool take(std::vector<Bytes>& frames) = 0;
    // All of the last batch is in the kernel's hands; `bytes` with their headers.
    virtual void written(const std::vector<Bytes>& frames, size_t bytes) = 0;
    virtual void on_round_trip(SteadyClock::duration took) = 0;
    // Not called by close(). `silent`: by a missing sign of life.
    virtual void on_broken(const std::string& why, bool silent) = 0;
  };

  Wire(const Timing& timing, Tcp::socket socket, Network::Lane lane, Owner& owner);
  void start();
  void write();
  void tick(TimePoint now);
  // This process itself stood still: silence until now proves nothing.
  void forgive(TimePoint now) { last_sign_ = now; }
  // The owner hears nothing any more. A last attempt to pass on what is at hand when `flush`.
  void close(bool flush = false);

 private:
  struct Range {  // what asio takes for a sequence of buffers
    const boost::asio::const_buffer* first;
    const boost::asio::const_buffer* last;
    const boost::asio::const_buffer* begin() const { return first; }
    const boost::asio::const_buffer* end() const { return last; }
  };

  void read();
  bool fill();  // the next batch into `buffers_`
  void write_some();
  void advance(size_t bytes);
  void broken(const std::string& why, bool silent = false);
  bool progressed();
  void on_data(Bytes) override {}
  void on_ping(uint64_t) override {}
  void on_pong(uint64_t token) override;

  Tcp::socket socket_;
  const Network::Lane lane_;
  const Milliseconds ping_period_;
  const Milliseconds dead_after_;
  Owner* owner_;  // null: closed
  FrameParser parser_;
  std::array<char, 256> in_;  // pongs
  bool writing_ = false;
  bool ping_due_ = false;
  bool pong_awaited_ = false;
  std::vector<Bytes> batch_;
  Bytes heads_;  // of the batch, a ping before it
  std::vector<boost::asio::const_buffer> buffers_;
  size_t next_buffer_ = 0;
  size_t batch_bytes_ = 0;
  uint64_t written_ = 0;  // bytes, ever
  uint64_t acknowledged_ = 0;
  TimePoint last_ping_;
  TimePoint last_sign_;
};

}  // namespace peer
