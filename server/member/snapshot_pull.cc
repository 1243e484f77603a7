#include "member/snapshot_pull.h"

#include "base/log.h"

namespace member {
namespace {

constexpr size_t kItemsMax = 1'000;

}  // namespace

SnapshotPull::SnapshotPull(Parts parts) : parts_(std::move(parts)), inbox_(*this, kItemsMax) {}

Time SnapshotPull::step() {
  if (parts_.failure.failed()) return kWhenWoken;
  const Time now = parts_.clock.monotonic();
  inbox_.drain(drained_);
  for (Item& item : drained_) take(item, now);
  if (waits_for_verdict_) return kWhenWoken;
  if (install_) return install();
  return fetch_ ? fetch(now) : kWhenWoken;
}

void SnapshotPull::take(Item& item, Time now) {
  if (item.offer) {
    const Generation wanted{item.offer->point.term, item.offer->point.index};
    if (install_ || (fetch_ && fetch_->options().snapshot == wanted && fetch_->options().from == item.offer->from)) {
      return;
    }
    log_info("this member is too far behind for the log: it fetches a snapshot",
             {{"from", item.offer->from}, {"index", wanted.index}, {"term", wanted.term}});
    fetch_.reset();
    fetch_.emplace(parts_.disk, SnapshotFetch::Options{.data_dir = parts_.options.data_dir,
                                                       .cluster_id = parts_.cluster_id,
                                                       .from = item.offer->from,
                                                       .snapshot = wanted});
  } else if (item.frame) {
    if (fetch_) fetch_->take(item.from, as_bytes(*item.frame), now);
  } else if (item.wanted) {
    if (!install_ || !waits_for_verdict_) return;
    const Generation generation = install_->generation();
    install_.reset();
    fetch_.reset();
    if (*item.wanted) return parts_.replace(generation);  // and goes on waiting for the end
    waits_for_verdict_ = false;
    SnapshotInstall::remove_unfinished(parts_.disk, parts_.options, generation);
  } else if (fetch_) {
    fetch_->unreachable(item.from, now);
  }
}

Time SnapshotPull::fetch(Time now) {
  out_.clear();
  const Time next = fetch_->step(now, out_);
  for (SnapshotFetch::Outgoing& frame : out_) (void)parts_.send(frame.to, std::move(frame.frame));
  if (fetch_->state() == SnapshotFetch::State::kFailed) {
    give_up("a snapshot could not be fetched; the leader offers one again", fetch_->error());
    return kWhenWoken;
  }
  if (fetch_->state() != SnapshotFetch::State::kDone) return next;
  auto begun = SnapshotInstall::begin(parts_.disk, parts_.options, fetch_->path(), parts_.cluster_id);
  if (!begun) {
    give_up("a snapshot cannot be installed", begun.error());
    return kWhenWoken;
  }
  install_ = std::move(*begun);
  return kNow;
}

Time SnapshotPull::install() {
  auto more = install_->step();
  if (!more) {
    const Generation generation = install_->generation();
    give_up("a snapshot cannot be installed", more.error());
    SnapshotInstall::remove_unfinished(parts_.disk, parts_.options, generation);
    return kWhenWoken;
  }
  if (*more) return kNow;
  waits_for_verdict_ = true;
  parts_.built(install_->generation(), install_->manifest());
  return kWhenWoken;
}

void SnapshotPull::give_up(const char* what, const Error& error) {
  log_warn(what, {{"error", error.message}});
  install_.reset();
  fetch_.reset();
  parts_.fetch_failed();
}

}  // namespace member
