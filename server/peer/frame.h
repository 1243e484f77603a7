// Frames on an accepted connection: a header of 16 bytes and a body. docs/format-peer.md has the layout. Pure.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/network.h"
#include "base/result.h"

namespace peer {

enum class FrameType : uint8_t {
  kData = 0,
  kPing = 1,  // 8 bytes that come back in a pong
  kPong = 2,
};
inline constexpr size_t kFrameHeaderBytes = 16;

void append_header(Bytes& out, FrameType type, Network::Lane lane, BytesView body);

// Puts frames together from the bytes as they arrive. After an error the connection is of no use any more.
class FrameParser {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void on_data(Bytes frame) = 0;
    virtual void on_ping(uint64_t token) = 0;
    virtual void on_pong(uint64_t token) = 0;
  };

  // What a frame may be here: data up to `data_bytes_max` in `lane`. 0: none, only pings and pongs.
  FrameParser(Network::Lane lane, size_t data_bytes_max) : lane_(lane), data_bytes_max_(data_bytes_max) {}

  // kDataLoss: a checksum, a length or a type that cannot be. `sink` must not destroy the parser.
  Status feed(BytesView bytes, Sink& sink);
  // In the middle of a frame.
  bool inside() const { return header_.size() > 0; }

 private:
  Status begin();
  Status end(Sink& sink);

  const Network::Lane lane_;
  const size_t data_bytes_max_;
  Bytes header_;  // as far as it is there; whole while a body is read
  FrameType type_ = FrameType::kData;
  size_t body_bytes_ = 0;
  uint32_t crc_ = 0;  // of the body so far: summed while the bytes are warm
  Bytes body_;
};

}  // namespace peer
