#include "peer/link.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "base/check.h"
#include "base/log.h"

namespace peer {

namespace asio = boost::asio;

Link::Link(Core& core, uint64_t peer, Network::Lane lane)
    : core_(core), peer_(peer), lane_(lane), meters_(core.meters.of(peer)), timer_(core.io) {}

Link::~Link() {
  if (dial_) dial_->cancel();
  if (wire_) wire_->close();
}

// --- The queue

bool Link::push(Bytes frame) {
  const LaneLimits& limits = core_.limits(lane_);
  const size_t bytes = frame.size();
  bool taken = false;
  bool wake = false;
  {
    MutexLock lock(mutex_);
    const bool fits = frames_ == 0 || (frames_ < limits.queue_frames_max && bytes_ + bytes <= limits.queue_bytes_max);
    taken = up_ && fits && bytes <= limits.frame_bytes_max;
    if (taken) {
      queue_.push_back(std::move(frame));
      ++frames_;
      bytes_ += bytes;
      wake = !std::exchange(busy_, true);
    }
  }
  if (!taken) meters_.sent_failures.add();
  if (wake) {
    asio::post(core_.io, [self = shared_from_this()] {
      if (self->wire_) self->wire_->write();
    });
  }
  return taken;
}

bool Link::take(std::vector<Bytes>& frames) {
  MutexLock lock(mutex_);
  size_t bytes = 0;
  while (!queue_.empty() && frames.size() < kWriteBatchFrames && bytes < kWriteBatchBytes) {
    bytes += queue_.front().size();
    frames.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  busy_ = !frames.empty();
  return busy_;
}

void Link::written(const std::vector<Bytes>& frames, size_t bytes) {
  meters_.sent_bytes.add(static_cast<double>(bytes));
  MutexLock lock(mutex_);
  for (const Bytes& frame : frames) bytes_ -= frame.size();
  frames_ -= frames.size();
}

// --- The connection

void Link::set_urls(std::vector<std::string> urls) {
  set_ = std::move(urls);
  choose_urls();
}

void Link::set_told(std::vector<std::string> urls) {
  if (told_ == urls) return;
  told_ = std::move(urls);
  choose_urls();
}

void Link::choose_urls() {
  if (state_ == State::kClosed) return;
  std::vector<std::string> usable;
  std::vector<std::string> all = set_;
  all.insert(all.end(), told_.begin(), told_.end());
  for (const std::string& url : all) {
    if (std::find(usable.begin(), usable.end(), url) != usable.end()) continue;
    if (const auto address = parse_url(url); !address) {
      if (log_due("url " + url)) {
        log_error("a peer URL cannot be used; correct it with `member update`",
                  {{"peer", id_text(peer_)}, {"error", address.error().message}});
      }
    } else if (usable.size() < kUrlsMax) {
      usable.push_back(url);
    }
  }
  if (usable == urls_) return;
  urls_ = std::move(usable);
  next_url_ = 0;
  failures_ = 0;
  if (state_ == State::kUp) return;  // good enough; the new ones serve when it breaks
  if (dial_) dial_->cancel();
  dial_.reset();
  timer_.cancel();
  state_ = State::kIdle;
  if (!urls_.empty()) dial();
}

void Link::dial_now() {
  if (state_ != State::kWaiting) return;
  timer_.cancel();
  dial();
}

void Link::dial() {
  CHECK(state_ == State::kIdle || state_ == State::kWaiting);
  CHECK(!urls_.empty());
  state_ = State::kDialing;
  const Hello hello{.lane = lane_,
                    .cluster = core_.options.cluster_id,
                    .sender = core_.options.member_id,
                    .addressee = peer_,
                    .urls = core_.options.own_urls,
                    .folder_id = core_.options.folder_id};
  dial_ = Dial::start(core_.io, core_.resolver, {.url = url(), .hello = hello, .timeout = core_.timing.dial},
                      [self = shared_from_this()](Result<Dialed> result) {
                        if (self->state_ == State::kDialing) self->dialed(std::move(result));
                      });
}

void Link::dialed(Result<Dialed> result) {
  dial_.reset();
  if (!result) {
    failed(result.error());
    return retry();
  }
  Answer& answer = result->answer;
  const bool accepted = answer.verdict == Verdict::kAccepted;
  if (accepted && answer.cluster != core_.options.cluster_id) answer.verdict = Verdict::kWrongCluster;
  if (accepted && answer.member != peer_) answer.verdict = Verdict::kWrongMember;
  if (answer.verdict != Verdict::kUnknownSender) unknown_since_ = {};
  if (answer.verdict != Verdict::kAccepted) {
    refused(answer);
    return retry();
  }
  connected(std::move(*result));
}

void Link::connected(Dialed dialed) {
  state_ = State::kUp;
  up_since_ = SteadyClock::now();
  wire_ = std::make_shared<Wire>(core_.timing, std::move(dialed.socket), lane_, static_cast<Wire::Owner&>(*this));
  wire_->start();
  {
    MutexLock lock(mutex_);
    CHECK(queue_.empty());
    up_ = true;
  }
  if (lane_ != Network::Lane::kControl) return;
  meters_.active.set(1);
  log_info("peer became active", {{"peer", id_text(peer_)}, {"address", dialed.remote}});
}

void Link::on_broken(const std::string& why, bool silent) {
  size_t lost = 0;
  {
    MutexLock lock(mutex_);
    up_ = false;
    busy_ = false;
    lost = frames_;
    queue_.clear();
    frames_ = 0;
    bytes_ = 0;
  }
  wire_.reset();
  if (lost > 0) meters_.sent_failures.add(static_cast<double>(lost));
  if (SteadyClock::now() - up_since_ >= kBackOffForgotten) failures_ = 0;
  const bool control = lane_ == Network::Lane::kControl;
  if (control) {
    meters_.active.set(0);
    meters_.disconnected.add();
  }
  if (control || log_due("lane"))
    log_warn(control ? "peer became inactive" : "lost a connection to a peer",
             {{"peer", id_text(peer_)}, {"lane", lane_name(lane_)}, {"frames_lost", lost}, {"reason", why}});
  state_ = State::kWaiting;
  core_.receiver->on_unreachable(peer_);
  if (control && silent) core_.on_silence(peer_);
  if (urls_.empty()) {
    state_ = State::kIdle;
  } else {
    retry();
  }
}

void Link::retry() {
  ++next_url_;
  // Half of the delay is by chance, so that members that lost each other at once do not come back in step.
  const Milliseconds full = std::min(kBackOffMax, kBackOffMin * (1 << std::min(failures_, 10)));
  const auto chance = static_cast<int64_t>(core_.jitter()) % (full.count() / 2 + 1);
  ++failures_;
  state_ = State::kWaiting;
  timer_.expires_after(full / 2 + Milliseconds(chance));
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->state_ == State::kWaiting) self->dial();
  });
}

void Link::on_round_trip(SteadyClock::duration took) {
  if (lane_ == Network::Lane::kControl) meters_.round_trip.observe(std::chrono::duration<double>(took).count());
}

void Link::tick(TimePoint now) {
  if (wire_) std::shared_ptr<Wire>(wire_)->tick(now);
}
void Link::forgive(TimePoint now) {
  if (wire_) wire_->forgive(now);
}

void Link::break_off(const std::string& why) {
  if (state_ != State::kUp) return;
  wire_->close();
  on_broken(why, /*silent=*/false);
}

void Link::close() {
  if (wire_) wire_->close(/*flush=*/true);
  wire_.reset();
  if (dial_) dial_->cancel();
  dial_.reset();
  timer_.cancel();
  if (state_ == State::kUp && lane_ == Network::Lane::kControl) meters_.active.set(0);
  state_ = State::kClosed;
  MutexLock lock(mutex_);
  up_ = false;
  queue_.clear();
}

}  // namespace peer
