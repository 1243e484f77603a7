#include "member/checkpoint_stage.h"

#include <algorithm>

#include "base/log.h"
#include "member/options.h"

namespace member {
namespace {

constexpr int kPassesBesideTraffic = 4;
constexpr Time kLookAgain = std::chrono::milliseconds(250);

}  // namespace

CheckpointStage::CheckpointStage(Parts parts) : parts_(std::move(parts)) {}

bool CheckpointStage::wanted() const {
  return parts_.gate.parked() || parts_.store.stats().wal_bytes >= parts_.from_bytes;
}

Time CheckpointStage::step() {
  if (parts_.failure.failed()) return kWhenWoken;
  switch (at_) {
    case At::kIdle:
      if (parts_.gate.asked() && !parts_.gate.parked())
        return kLookAgain + parts_.clock.monotonic();  // apply is coming
      return wanted() ? begin() : parts_.clock.monotonic() + kLookAgain;
    case At::kWaitsForMark:
      return mark_durable_.exchange(false) ? copy() : kWhenWoken;
    case At::kWaitsForDone:
      return mark_durable_.exchange(false) ? end() : kWhenWoken;
  }
  return kWhenWoken;
}

Time CheckpointStage::begin() {
  paused_pass_ = parts_.gate.parked();
  if (paused_pass_) paused_at_ = parts_.clock.monotonic();
  auto mark = parts_.store.begin_checkpoint();
  if (!mark) {
    fail(mark.error());
    return kWhenWoken;
  }
  if (!*mark) {  // everything is copied already
    parts_.store.end_checkpoint();
    passes_ = 0;
    if (paused_pass_) resume();
    return parts_.clock.monotonic() + kLookAgain;
  }
  bytes_at_pin_ = parts_.store.stats().wal_bytes;
  at_ = At::kWaitsForMark;
  log_mark(**mark);
  return kWhenWoken;
}

Time CheckpointStage::copy() {
  auto done = parts_.store.run_checkpoint();
  if (!done) {
    if (done.error().code == Code::kResourceExhausted) {  // no room for the database to grow: later
      parts_.store.end_checkpoint();
      at_ = At::kIdle;
      return parts_.clock.monotonic() + kSpaceRetry;
    }
    fail(done.error());
    return kWhenWoken;
  }
  at_ = At::kWaitsForDone;
  log_mark(*done);
  return kWhenWoken;
}

Time CheckpointStage::end() {
  parts_.store.end_checkpoint();
  at_ = At::kIdle;
  if (mark_.applied > parts_.entries_kept) {
    WalStage::Job job;
    job.drop_before = mark_.applied - parts_.entries_kept;
    parts_.log(std::move(job));
  }
  if (paused_pass_) {
    passes_ = 0;
    resume();
    return parts_.clock.monotonic() + kLookAgain;
  }
  const uint64_t wal_bytes = parts_.store.stats().wal_bytes;
  const uint64_t left = wal_bytes - std::min(wal_bytes, bytes_at_pin_);
  if (left <= parts_.pause_below_bytes || ++passes_ >= kPassesBesideTraffic) {
    parts_.gate.ask();
    parts_.wake_apply();
    // Apply parks and wakes this stage, unless it did so while the pass was running.
    return parts_.gate.parked() ? kNow : kWhenWoken;
  }
  return kNow;
}

void CheckpointStage::resume() {
  parts_.pause_seconds.observe(std::chrono::duration<double>(parts_.clock.monotonic() - paused_at_).count());
  parts_.gate.release();
  parts_.wake_apply();
}

void CheckpointStage::log_mark(const store::Mark& mark) {
  mark_ = mark;
  WalStage::Job job;
  job.mark = wal::StoreMark{mark.applied, mark.salt1, mark.salt2, mark.frames, mark.done};
  job.durable = [this] {
    mark_durable_.store(true);
    wake();
  };
  parts_.log(std::move(job));
}

void CheckpointStage::fail(const Error& error) { parts_.failure.report(error); }

}  // namespace member
