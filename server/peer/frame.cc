#include "peer/frame.h"

#include <algorithm>

#include "base/check.h"
#include "base/crc32c.h"
#include "peer/limits.h"

namespace peer {
namespace {

constexpr size_t kBodyCrcOffset = 8;
constexpr size_t kHeaderCrcOffset = 12;

}  // namespace

void append_header(Bytes& out, FrameType type, Network::Lane lane, BytesView body) {
  CHECK(body.size() <= Network::kFrameBytesMax, body.size());
  const size_t begin = out.size();
  append_integer(out, static_cast<uint32_t>(body.size()));
  append_integer(out, static_cast<uint8_t>(type));
  append_integer(out, static_cast<uint8_t>(lane));
  append_integer(out, uint16_t{0});
  append_integer(out, crc32c(body));
  append_integer(out, crc32c(as_bytes(out).subspan(begin, kHeaderCrcOffset)));
  CHECK(out.size() - begin == kFrameHeaderBytes);
}

Status FrameParser::feed(BytesView bytes, Sink& sink) {
  while (!bytes.empty()) {
    if (header_.size() < kFrameHeaderBytes) {
      const size_t take = std::min(bytes.size(), kFrameHeaderBytes - header_.size());
      header_.append(as_text(bytes.first(take)));
      bytes = bytes.subspan(take);
      if (header_.size() < kFrameHeaderBytes) return {};
      TRY(begin());
    }
    const size_t take = std::min(bytes.size(), body_bytes_ - body_.size());
    const BytesView piece = bytes.first(take);
    crc_ = crc32c(piece, crc_);
    body_.append(as_text(piece));
    bytes = bytes.subspan(take);
    if (body_.size() == body_bytes_) TRY(end(sink));
  }
  return {};
}

Status FrameParser::begin() {
  const BytesView header = as_bytes(header_);
  if (crc32c(header.first(kHeaderCrcOffset)) != load_integer<uint32_t>(header, kHeaderCrcOffset)) {
    return fail(Code::kDataLoss, "the checksum of a frame's header does not match");
  }
  body_bytes_ = load_integer<uint32_t>(header);
  const auto type = load_integer<uint8_t>(header, 4);
  const auto lane = load_integer<uint8_t>(header, 5);
  if (type > static_cast<uint8_t>(FrameType::kPong)) return fail(Code::kDataLoss, "a frame of an unknown type");
  type_ = static_cast<FrameType>(type);
  if (lane != static_cast<uint8_t>(lane_)) return fail(Code::kDataLoss, "a frame of another lane");
  if (type_ == FrameType::kData ? body_bytes_ > data_bytes_max_ || data_bytes_max_ == 0 : body_bytes_ != kPingBytes) {
    return fail(Code::kDataLoss, "a frame of " + std::to_string(body_bytes_) + " bytes is not allowed here");
  }
  crc_ = 0;
  body_.reserve(std::min(body_bytes_, kBodyReserveBytes));
  return {};
}

Status FrameParser::end(Sink& sink) {
  if (crc_ != load_integer<uint32_t>(as_bytes(header_), kBodyCrcOffset)) {
    return fail(Code::kDataLoss, "the checksum of a frame does not match");
  }
  header_.clear();
  Bytes body = std::move(body_);
  body_.clear();
  switch (type_) {
    case FrameType::kData:
      sink.on_data(std::move(body));
      break;
    case FrameType::kPing:
      sink.on_ping(load_integer<uint64_t>(as_bytes(body)));
      break;
    case FrameType::kPong:
      sink.on_pong(load_integer<uint64_t>(as_bytes(body)));
      break;
  }
  return {};
}

}  // namespace peer
