// Progress answers: "nothing at or below this revision is missing". They travel in the stream's own queue, so they come
// after every event they speak of.
#include <algorithm>
#include <utility>

#include "watch/hub_impl.h"

namespace watch {
namespace {

constexpr std::chrono::nanoseconds kIntervalMin = std::chrono::milliseconds(100);  // as etcd's

// Up to a tenth more, so that clients that came together are not all told at the same time.
std::chrono::nanoseconds interval_of(const Options& options, uint64_t serial) {
  auto interval = std::max<std::chrono::nanoseconds>(options.progress_interval, kIntervalMin);
  return interval + interval / 10 * static_cast<int64_t>(serial * 2654435761U % 64) / 64;
}

// A watcher that waits for a future revision has no progress before it.
bool waits_for_future(int64_t next, int64_t revision) { return next > revision + 1; }

}  // namespace

void HubImpl::progress(StreamImpl& stream) {
  // Not older than what the asker may have read elsewhere.
  int64_t published = mvcc_.published().revision;
  Effects effects;
  {
    MutexLock lock(mutex_);
    want_progress(stream, published);
    check_progress(stream, effects);
  }
  run(effects);
}

void HubImpl::want_progress(StreamImpl& stream, int64_t floor) {
  stream.notes.progress_floor = std::max(stream.notes.progress_floor, floor);
  if (!std::exchange(stream.notes.progress_wanted, true)) waiting_.push_back(&stream);
}

bool HubImpl::answer_progress(StreamImpl& stream, Effects& effects) {
  StreamImpl::Notes& notes = stream.notes;
  if (notes.behind > 0 || revision_ < notes.progress_floor) return false;
  if (waits_for_future(notes.latest_start, revision_)) return false;
  notes.progress_wanted = false;
  notes.progress_floor = 0;
  // As etcd: a stream without watchers is not answered.
  if (notes.watchers.empty()) return true;
  stream.push_answer(builder_.answer(revision_, kNoWatchId, [](auto*) {}), effects);
  return true;
}

void HubImpl::check_progress(StreamImpl& stream, Effects& effects) {
  if (stream.notes.progress_wanted && answer_progress(stream, effects)) std::erase(waiting_, &stream);
}

void HubImpl::check_all_progress(Effects& effects) {
  if (waiting_.empty()) return;
  std::vector<StreamImpl*> still;
  for (StreamImpl* stream : waiting_) {
    if (!answer_progress(*stream, effects)) still.push_back(stream);
  }
  waiting_ = std::move(still);
}

void HubImpl::schedule_progress(StreamImpl& stream) {
  StreamImpl::Notes& notes = stream.notes;
  // Before the first tick there is no time to count from; tick() moves those entries.
  notes.progress_due = now_.value_or(std::chrono::nanoseconds(0)) + interval_of(options_, notes.serial);
  due_.emplace(std::pair(notes.progress_due, notes.serial), &stream);
}

void HubImpl::unschedule_progress(StreamImpl& stream) {
  due_.erase(std::pair(stream.notes.progress_due, stream.notes.serial));
}

void HubImpl::tick(std::chrono::nanoseconds now) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    if (!now_) {
      auto undated = std::exchange(due_, {});
      for (auto& [key, stream] : undated) {
        stream->notes.progress_due += now;
        due_.emplace(std::pair(stream->notes.progress_due, key.second), stream);
      }
    }
    now_ = now;
    while (!due_.empty() && due_.begin()->first.first <= now) {
      StreamImpl& stream = *due_.begin()->second;
      due_.erase(due_.begin());
      send_periodic(stream, effects);
      schedule_progress(stream);
    }
  }
  run(effects);
}

void HubImpl::send_periodic(StreamImpl& stream, Effects& effects) {
  // Who does not read is not told again and again.
  bool crowded = stream.crowded();
  for (auto& [id, watcher] : stream.notes.watchers) {
    if (!watcher.progress_notify) continue;
    bool due = watcher.quiet && !crowded && watcher.place == Place::kTip && !waits_for_future(watcher.next, revision_);
    if (due) stream.push_answer(builder_.answer(revision_, id, [](auto*) {}), effects);
    watcher.quiet = true;
  }
}

}  // namespace watch
