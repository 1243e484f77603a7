#include "peer/wire.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/check.h"
#include "peer/dial.h"

namespace peer {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

namespace {

bool is_control(Network::Lane lane) { return lane == Network::Lane::kControl; }

uint64_t token_of(TimePoint now) { return static_cast<uint64_t>(now.time_since_epoch().count()); }

}  // namespace

Wire::Wire(const Timing& timing, Tcp::socket socket, Network::Lane lane, Owner& owner)
    : socket_(std::move(socket)),
      lane_(lane),
      ping_period_(is_control(lane) ? timing.control_ping : timing.bulk_ping),
      dead_after_(is_control(lane) ? timing.control_dead : timing.bulk_dead),
      owner_(&owner),
      parser_(lane, 0),
      last_ping_(SteadyClock::now()),
      last_sign_(last_ping_) {
  set_options(socket_, dead_after_);
  ErrorCode ignored;
  socket_.non_blocking(true, ignored);  // for the last write of close()
}

void Wire::start() { read(); }

// --- Writing

void Wire::write() {
  if (owner_ == nullptr || writing_ || !fill()) return;
  writing_ = true;
  write_some();
}

bool Wire::fill() {
  batch_.clear();
  heads_.clear();
  buffers_.clear();
  next_buffer_ = 0;
  batch_bytes_ = 0;
  if (!owner_->take(batch_) && !ping_due_) return false;
  CHECK(batch_.size() <= kWriteBatchFrames, batch_.size());
  // Reserved, because the buffers point into it.
  heads_.reserve((batch_.size() + 1) * kFrameHeaderBytes + kPingBytes);
  if (ping_due_) {
    ping_due_ = false;
    pong_awaited_ = true;
    last_ping_ = SteadyClock::now();
    Bytes token;
    append_integer(token, token_of(last_ping_));
    append_header(heads_, FrameType::kPing, lane_, as_bytes(token));
    heads_ += token;
    buffers_.push_back(asio::buffer(heads_));
  }
  for (const Bytes& frame : batch_) {
    const size_t at = heads_.size();
    append_header(heads_, FrameType::kData, lane_, as_bytes(frame));
    buffers_.push_back(asio::buffer(heads_.data() + at, kFrameHeaderBytes));
    if (!frame.empty()) buffers_.push_back(asio::buffer(frame));
    batch_bytes_ += kFrameHeaderBytes + frame.size();
  }
  return true;
}

void Wire::write_some() {
  const asio::const_buffer* all = buffers_.data();
  socket_.async_write_some(Range{all + next_buffer_, all + buffers_.size()},
                           [self = shared_from_this()](const ErrorCode& error, size_t bytes) {
                             if (self->owner_ == nullptr) return;
                             if (error) return self->broken(error.message());
                             self->advance(bytes);
                           });
}

void Wire::advance(size_t bytes) {
  written_ += bytes;
  while (next_buffer_ < buffers_.size() && bytes >= buffers_[next_buffer_].size()) {
    bytes -= buffers_[next_buffer_++].size();
  }
  if (next_buffer_ < buffers_.size()) {
    buffers_[next_buffer_] += bytes;
    return write_some();
  }
  writing_ = false;
  owner_->written(batch_, batch_bytes_);
  write();
}

// --- Signs of life

void Wire::read() {
  socket_.async_read_some(asio::buffer(in_), [self = shared_from_this()](const ErrorCode& error, size_t bytes) {
    if (self->owner_ == nullptr) return;
    if (error) return self->broken(error == asio::error::eof ? "the peer closed it" : error.message());
    if (auto fed = self->parser_.feed(as_bytes({self->in_.data(), bytes}), *self); !fed) {
      return self->broken(fed.error().message);
    }
    if (self->owner_ != nullptr) self->read();
  });
}

void Wire::on_pong(uint64_t token) {
  const TimePoint now = SteadyClock::now();
  last_sign_ = now;
  const uint64_t current = token_of(now);
  if (token > current) return;  // none of ours
  pong_awaited_ = false;
  owner_->on_round_trip(SteadyClock::duration(static_cast<int64_t>(current - token)));
}

// The other side's kernel acknowledged more. That says nothing of the process behind it, which the control lane
// watches; but a connection that bulk data flows through is no dead one, however late the pong behind the data.
bool Wire::progressed() {
  int unacknowledged = 0;
  if (::ioctl(socket_.native_handle(), SIOCOUTQ, &unacknowledged) != 0) return false;
  const uint64_t acknowledged = written_ - std::min<uint64_t>(written_, static_cast<uint64_t>(unacknowledged));
  const bool more = acknowledged > acknowledged_;
  acknowledged_ = std::max(acknowledged_, acknowledged);
  return more;
}

void Wire::tick(TimePoint now) {
  if (owner_ == nullptr) return;
  if (!is_control(lane_) && progressed()) last_sign_ = now;
  if (now - last_sign_ > dead_after_) {
    return broken("no sign of life for " + std::to_string(dead_after_.count()) + " ms", /*silent=*/true);
  }
  // One at a time: otherwise the pings' own acknowledgements would look like progress for ever.
  if (!ping_due_ && !pong_awaited_ && now - last_ping_ >= ping_period_) {
    ping_due_ = true;
    write();
  }
}

// --- The end

void Wire::broken(const std::string& why, bool silent) {
  Owner* const owner = owner_;
  close();
  owner->on_broken(why, silent);
}

void Wire::close(bool flush) {
  if (owner_ == nullptr) return;
  // Only between batches: half a frame is under way otherwise, and the other side throws the rest away anyhow.
  if (flush && !writing_ && fill()) {
    ErrorCode ignored;
    (void)socket_.write_some(buffers_, ignored);
  }
  owner_ = nullptr;
  ErrorCode ignored;
  socket_.close(ignored);
}

}  // namespace peer
