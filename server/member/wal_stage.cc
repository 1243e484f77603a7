#include "member/wal_stage.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "member/options.h"

namespace member {
namespace {

// More than raft's limit of uncommitted bytes lets through is a fault of ours.
constexpr size_t kJobsMax = 1'000'000;

size_t bytes_of(const std::vector<LogEntry>& entries) {
  size_t bytes = 0;
  for (const LogEntry& entry : entries) bytes += entry.data->size();
  return bytes;
}

}  // namespace

WalStage::WalStage(std::unique_ptr<wal::Wal> wal, Clock& clock, Failure& failure, metrics::Histogram& sync_seconds,
                   std::function<void(raft::BatchNumber)> persisted, std::function<void(const raft::Message&)> send)
    : wal_(std::move(wal)),
      clock_(clock),
      failure_(failure),
      sync_seconds_(sync_seconds),
      persisted_(std::move(persisted)),
      send_(std::move(send)),
      inbox_(*this, kJobsMax) {}

void WalStage::push(Job job) { CHECK(inbox_.push(std::move(job)), "jobs", kJobsMax); }

Time WalStage::step() {
  if (failure_.failed()) return kWhenWoken;
  collect();
  const bool something = last_.has_value() || batch_.mark.has_value();
  if (something) {
    if (const Time retry = append(); retry != kNow) return retry;
  }
  if (drop_before_ > 0) {
    if (auto dropped = wal_->drop_before(drop_before_); !dropped) {
      if (dropped.error().code == Code::kResourceExhausted) return clock_.monotonic() + kSpaceRetry;
      failure_.report(dropped.error());
      return kWhenWoken;
    }
    drop_before_ = 0;
  }
  if (something || !waiting_.empty()) return kNow;
  auto more = wal_->prepare();
  if (more) return *more ? kNow : kWhenWoken;
  if (more.error().code == Code::kResourceExhausted) return clock_.monotonic() + kSpaceRetry;
  failure_.report(more.error());
  return kWhenWoken;
}

// Joins what is waiting into one batch, unless a full disk left one that is still to be written.
void WalStage::collect() {
  inbox_.drain(drained_);
  for (Job& job : drained_) waiting_.push_back(std::move(job));
  if (last_.has_value() || batch_.mark.has_value()) return;
  size_t bytes = 0;
  while (!waiting_.empty() && bytes < kWalBytesPerSyncMax) {
    Job& job = waiting_.front();
    bytes += bytes_of(job.entries);
    if (job.batch) last_ = job.batch;
    if (job.hard_state) batch_.hard_state = job.hard_state;
    std::move(job.entries.begin(), job.entries.end(), std::back_inserter(batch_.entries));
    std::move(job.messages.begin(), job.messages.end(), std::back_inserter(messages_));
    if (job.mark) batch_.mark = job.mark;
    if (job.durable) durable_.push_back(std::move(job.durable));
    drop_before_ = std::max(drop_before_, job.drop_before);
    waiting_.pop_front();
  }
}

Time WalStage::append() {
  const Time begin = clock_.monotonic();
  if (!batch_.hard_state && batch_.entries.empty() && !batch_.mark) {  // only messages that had to keep their place
    finish();
    return kNow;
  }
  if (auto appended = wal_->append(batch_); !appended) {
    if (appended.error().code != Code::kResourceExhausted) {
      failure_.report(appended.error());
      return kWhenWoken;
    }
    if (!std::exchange(full_told_, true)) {
      failure_.out_of_space(true);
      log_error("the Raft log finds no room on its disk, or no free descriptor: writes wait until there is",
                {{"error", appended.error().message}});
    }
    return clock_.monotonic() + kSpaceRetry;
  }
  if (std::exchange(full_told_, false)) {
    failure_.out_of_space(false);
    log_info("the Raft log has room again: writes go on");
  }
  const Time took = clock_.monotonic() - begin;
  sync_seconds_.observe(std::chrono::duration<double>(took).count());
  if (took > std::chrono::seconds(1)) {
    log_warn("slow disk: writing and syncing the Raft log took long",
             {{"took_ms", std::chrono::duration_cast<std::chrono::milliseconds>(took).count()}});
  }
  finish();
  return kNow;
}

void WalStage::finish() {
  batch_ = {};
  const auto durable = std::exchange(durable_, {});
  for (const auto& call : durable) call();
  for (const raft::Message& message : std::exchange(messages_, {})) send_(message);
  if (const auto last = std::exchange(last_, std::nullopt)) persisted_(*last);
}

void WalStage::seal() {
  if (failure_.failed()) return;
  if (auto sealed = wal_->seal(); !sealed) log_warn("could not seal the Raft log", {{"error", sealed.error().message}});
}

}  // namespace member
