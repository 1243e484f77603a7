#include "member/snapshot_receive.h"

#include "base/check.h"
#include "base/log.h"
#include "member/snapshot_files.h"

namespace member {
namespace {

constexpr size_t kEventsMax = 32;  // a few frames are on their way at a time
constexpr Time kRestAfterFailure = std::chrono::seconds(2);

}  // namespace

SnapshotReceiver::SnapshotReceiver(Parts parts) : parts_(std::move(parts)), inbox_(*this, kEventsMax) {}

void SnapshotReceiver::offer(uint64_t from, const Generation& snapshot) {
  // A full inbox drops it, as the network could have: the leader repeats it.
  (void)inbox_.push({.kind = Event::Kind::kOffer, .peer = from, .snapshot = snapshot});
}
void SnapshotReceiver::take(uint64_t from, Bytes frame) {
  (void)inbox_.push({.kind = Event::Kind::kFrame, .peer = from, .frame = std::move(frame)});
}
void SnapshotReceiver::unreachable(uint64_t peer) {
  (void)inbox_.push({.kind = Event::Kind::kUnreachable, .peer = peer});
}
void SnapshotReceiver::discard() { (void)inbox_.push({.kind = Event::Kind::kDiscard}); }

Time SnapshotReceiver::step() {
  if (parts_.failure.failed()) return kWhenWoken;
  inbox_.drain(drained_);
  for (Event& event : drained_) handle(event);
  if (install_) return build();
  if (built_) return kWhenWoken;
  if (offered_) {
    if (const Time wait = begin(); wait != kNow) return wait;
  }
  return fetch_ ? fetch() : kWhenWoken;
}

void SnapshotReceiver::handle(Event& event) {
  const Time now = parts_.clock.monotonic();
  switch (event.kind) {
    case Event::Kind::kOffer:
      if (!install_ && !built_) offered_ = std::move(event);
      break;
    case Event::Kind::kFrame:
      if (fetch_) fetch_->take(event.peer, as_bytes(event.frame), now);
      break;
    case Event::Kind::kUnreachable:
      if (fetch_) fetch_->unreachable(event.peer, now);
      break;
    case Event::Kind::kDiscard:
      drop_all();
      break;
  }
}

void SnapshotReceiver::drop_all() {
  offered_.reset();
  std::optional<Generation> unfinished = std::exchange(built_, std::nullopt);
  if (install_) unfinished = install_->generation();
  install_.reset();
  if (unfinished) SnapshotInstall::remove_unfinished(parts_.disk, parts_.options, *unfinished);
  if (fetch_) file_ = fetch_->path();
  fetch_.reset();
  remove_file();
}

void SnapshotReceiver::remove_file() {
  const std::string file = std::exchange(file_, {});
  if (file.empty()) return;
  if (const auto there = parts_.disk.exists(file); there && *there) (void)parts_.disk.remove(file);
}

// What was fetched of the same snapshot is gone on from, whoever it came from.
Time SnapshotReceiver::begin() {
  if (const Time now = parts_.clock.monotonic(); now < not_before_) return not_before_;
  const Event offer = *std::exchange(offered_, std::nullopt);
  if (fetch_ && fetch_->options().from == offer.peer && fetch_->options().snapshot == offer.snapshot) return kNow;
  log_info("fetching a snapshot", {{"snapshot", offer.snapshot.name()}, {"from", offer.peer}});
  fetch_ = std::make_unique<SnapshotFetch>(parts_.disk, SnapshotFetch::Options{.data_dir = parts_.options.data_dir,
                                                                               .cluster_id = parts_.cluster_id,
                                                                               .from = offer.peer,
                                                                               .snapshot = offer.snapshot,
                                                                               .piece_bytes = parts_.piece_bytes});
  return kNow;
}

Time SnapshotReceiver::fetch() {
  out_.clear();
  const Time next = fetch_->step(parts_.clock.monotonic(), out_);
  for (SnapshotFetch::Outgoing& outgoing : out_) (void)parts_.send(outgoing.to, std::move(outgoing.frame));
  if (fetch_->state() == SnapshotFetch::State::kFailed) {
    fail(fetch_->error());
    return kNow;
  }
  if (fetch_->state() != SnapshotFetch::State::kDone) return next;
  file_ = fetch_->path();
  auto begun = SnapshotInstall::begin(parts_.disk, parts_.options, file_, parts_.cluster_id);
  if (!begun) {
    fail(begun.error());
    return kNow;
  }
  install_ = std::move(*begun);
  return kNow;
}

Time SnapshotReceiver::build() {
  const auto more = install_->step();
  if (!more) {
    fail(more.error());
    return kNow;
  }
  if (*more) return kNow;
  Built built{install_->generation(), install_->manifest().membership};
  built_ = built.at;
  install_.reset();
  fetch_.reset();
  log_info("a store was built from a snapshot", {{"snapshot", built.at.name()}});
  parts_.built(std::move(built));
  return kWhenWoken;
}

// The file stays unless it is of no use: it may be fetched on, or built from again when there is space.
void SnapshotReceiver::fail(Error error) {
  const Generation snapshot = fetch_->options().snapshot;
  log_warn("a snapshot could not be fetched or built", {{"snapshot", snapshot.name()}, {"error", error.message}});
  install_.reset();
  SnapshotInstall::remove_unfinished(parts_.disk, parts_.options, snapshot);
  const bool of_no_use = error.code == Code::kDataLoss || error.code == Code::kFailedPrecondition;
  file_ = of_no_use ? fetch_->path() : std::string();
  fetch_.reset();
  remove_file();
  not_before_ = parts_.clock.monotonic() + kRestAfterFailure;
  parts_.failed(snapshot, std::move(error));
}

}  // namespace member
