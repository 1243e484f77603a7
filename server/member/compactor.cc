#include "member/compactor.h"

#include <algorithm>

namespace member {
namespace {

constexpr Time kHour = std::chrono::hours(1);
constexpr Time kRevisionModeEvery = std::chrono::minutes(5);

}  // namespace

std::optional<int64_t> Compactor::tick(Time now, int64_t revision) {
  if (options_.mode == AutoCompaction::Mode::kOff) return std::nullopt;
  if (!next_look_) {  // the first look begins the history
    next_look_ = now + (options_.mode == AutoCompaction::Mode::kRevision ? kRevisionModeEvery : Time{0});
  }
  if (now < *next_look_) return std::nullopt;
  std::optional<int64_t> target;
  if (options_.mode == AutoCompaction::Mode::kRevision) {
    next_look_ = now + kRevisionModeEvery;
    target = revision - options_.revisions;
  } else {
    next_look_ = now + std::min<Time>(options_.period, kHour) / 10;
    target = periodic(now, revision);
  }
  if (!target || *target <= compacted_) return std::nullopt;
  compacted_ = *target;
  return target;
}

std::optional<int64_t> Compactor::periodic(Time now, int64_t revision) {
  samples_.push_back({now, revision});
  if (!next_compaction_) next_compaction_ = now + options_.period;
  // Keep the newest sample that is a whole period old, and what is younger.
  while (samples_.size() > 1 && samples_[1].at <= now - options_.period) samples_.pop_front();
  if (now < *next_compaction_) return std::nullopt;
  next_compaction_ = now + std::min<Time>(options_.period, kHour);
  return samples_.front().revision;
}

}  // namespace member
