#include "member/apply_stage.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "member/options.h"

namespace member {
namespace {

// Slices of compaction touch many pages: left alone they fill the -wal faster than a checkpoint beside them empties it,
// and the rest of it would be copied in one long pause. So they wait while a checkpoint is due.
constexpr Time kSliceRetry = std::chrono::milliseconds(5);
constexpr size_t kRunsMax = 100'000;  // raft hands out far less before it hears that something is applied

}  // namespace

ApplyStage::ApplyStage(Parts parts) : parts_(std::move(parts)), inbox_(*this, kRunsMax) {}

void ApplyStage::push(std::vector<LogEntry> committed) { CHECK(inbox_.push(std::move(committed)), "committed"); }

Time ApplyStage::step() {
  if (parts_.failure.failed()) return kWhenWoken;
  inbox_.drain(drained_);
  for (auto& run : drained_) std::move(run.begin(), run.end(), std::back_inserter(waiting_));
  if (parts_.gate.parked()) return kWhenWoken;
  if (parts_.gate.asked() || parts_.store.pause_needed()) {
    parts_.gate.ask();
    parts_.gate.park();
    parts_.checkpoint_needed();
    return kWhenWoken;
  }
  if (slices_again_.exchange(false)) more_slices_ = true;
  if (!waiting_.empty()) {
    if (const Time retry = apply_batch(); retry != kNow) return retry;
  }
  if (more_slices_ && !checkpoint_is_behind()) return slice();
  if (!waiting_.empty()) return kNow;
  return more_slices_ ? parts_.clock.monotonic() + kSliceRetry : kWhenWoken;
}

Time ApplyStage::apply_batch() {
  if (batch_.empty()) {  // else: one that is tried again
    size_t bytes = 0;
    while (!waiting_.empty() && batch_.size() < kEntriesPerBatchMax && bytes < kBytesPerBatchMax) {
      bytes += waiting_.front().data->size();
      batch_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }
  const Time begin = parts_.clock.monotonic();
  auto applied = parts_.applier.apply(batch_);
  if (!applied) {
    for (auto it = batch_.rbegin(); it != batch_.rend(); ++it) waiting_.push_front(std::move(*it));
    batch_.clear();
    if (applied.error().code != Code::kResourceExhausted) {
      parts_.failure.report(applied.error());
      return kWhenWoken;
    }
    if (!std::exchange(full_told_, true)) {
      parts_.failure.out_of_space(true);
      log_error("the disk of the store is full: writes wait until there is space",
                {{"error", applied.error().message}});
    }
    return parts_.clock.monotonic() + kSpaceRetry;
  }
  if (std::exchange(full_told_, false)) {
    parts_.failure.out_of_space(false);
    log_info("the disk of the store has space again: writes go on");
  }
  parts_.commit_seconds.observe(std::chrono::duration<double>(parts_.clock.monotonic() - begin).count());
  // The loop hears first: a client that was answered may ask for its new lease at once.
  const auto change = std::find_if(batch_.rbegin(), batch_.rend(),
                                   [](const LogEntry& entry) { return entry.type == EntryType::kMembership; });
  parts_.applied({batch_.back().index, batch_.back().term, change == batch_.rend() ? 0 : change->index,
                  std::move(applied->leases), std::move(applied->revocations_refused), applied->attributes});
  batch_.clear();
  more_slices_ = true;  // an entry may have begun a compaction
  answer(std::move(applied->outcomes));
  return kNow;
}

Time ApplyStage::slice() {
  auto slice = parts_.applier.step();
  if (!slice) {
    const bool full = slice.error().code == Code::kResourceExhausted;
    if (full) return waiting_.empty() ? parts_.clock.monotonic() + kSpaceRetry : kNow;
    parts_.failure.report(slice.error());
    return kWhenWoken;
  }
  more_slices_ = slice->more;
  answer(std::move(slice->outcomes));
  return more_slices_ || !waiting_.empty() ? kNow : kWhenWoken;
}

void ApplyStage::answer(std::vector<apply::Outcome> outcomes) {
  for (apply::Outcome& outcome : outcomes) {
    if (outcome.request_id != 0 && outcome.proposer == parts_.member_id) {
      parts_.waiters.complete(outcome.request_id, std::move(outcome.response));
    }
  }
}

}  // namespace member
