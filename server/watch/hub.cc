// Streams' requests, and the places of watchers. Handing out, progress and catch-up have files of their own.
#include "watch/hub.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "watch/hub_impl.h"

namespace watch {
namespace {

// etcd's reading of key and range_end: no key means the smallest one, "\0" as end means no end.
KeyRange range_of(const etcdserverpb::WatchCreateRequest& request) {
  KeyRange range;
  range.key = request.key().empty() ? Bytes(1, '\0') : request.key();
  if (request.range_end().empty()) return range;
  if (request.range_end() == std::string_view("\0", 1)) {
    range.kind = KeyRange::Kind::kFromKey;
  } else {
    range.kind = KeyRange::Kind::kRange;
    range.end = request.range_end();
  }
  return range;
}

Shape shape_of(const etcdserverpb::WatchCreateRequest& request, int64_t id) {
  Shape shape{
      .id = id, .no_put = false, .no_delete = false, .prev_kv = request.prev_kv(), .fragment = request.fragment()};
  for (int filter : request.filters()) {
    if (filter == etcdserverpb::WatchCreateRequest::NOPUT) shape.no_put = true;
    if (filter == etcdserverpb::WatchCreateRequest::NODELETE) shape.no_delete = true;
  }
  return shape;
}

}  // namespace

std::unique_ptr<Hub> Hub::make(mvcc::Mvcc& mvcc, const Options& options) {
  return std::make_unique<HubImpl>(mvcc, options);
}

HubImpl::HubImpl(mvcc::Mvcc& mvcc, const Options& options)
    : mvcc_(mvcc),
      options_(options),
      builder_(mvcc, options.response_bytes),
      revision_(mvcc.published().revision),
      compacted_(mvcc.published().compacted) {}

HubImpl::~HubImpl() {
  MutexLock lock(mutex_);
  CHECK(stats_.streams == 0, stats_.streams);
}

// What was decided under the mutex and calls out of the hub. The mutex is free here.
void HubImpl::run(Effects& effects) {
  for (auto& stream : effects.wake) stream->call_wake();
  if (effects.work && on_work_) on_work_();
}

std::shared_ptr<Stream> HubImpl::open(std::function<void()> wake) {
  MutexLock lock(mutex_);
  stats_.streams++;
  return std::make_shared<StreamImpl>(*this, ++streams_made_, std::move(wake));
}

void HubImpl::create(StreamImpl& stream, const etcdserverpb::WatchCreateRequest& request) {
  // "From now" means after all that a reader could have seen, also what has not come to us yet.
  mvcc::Published published = mvcc_.published();
  Effects effects;
  {
    MutexLock lock(mutex_);
    int64_t now = std::max(revision_, published.revision);
    compacted_ = std::max(compacted_, published.compacted);
    StreamImpl::Notes& notes = stream.notes;
    KeyRange range = range_of(request);
    int64_t start = request.start_revision();
    int64_t id = request.watch_id();
    const char* refused = nullptr;
    if (start < 0) {
      refused = mvcc::kErrorCompacted;
    } else if (range.kind == KeyRange::Kind::kRange && range.key >= range.end) {
      refused = kErrorEmptyRange;
    } else if (notes.watchers.size() >= options_.watchers_per_stream_max) {
      refused = kErrorTooMany;
    } else if (id == 0) {
      while (notes.watchers.contains(notes.next_id)) notes.next_id++;
      id = notes.next_id++;
    } else if (notes.watchers.contains(id)) {
      refused = kErrorDuplicateId;
    }
    auto answer = builder_.answer(now, refused != nullptr ? kNoWatchId : id, [&](auto* message) {
      message->set_created(true);
      if (refused != nullptr) {
        message->set_canceled(true);
        message->set_cancel_reason(refused);
      }
    });
    stream.push_answer(std::move(answer), effects);
    if (refused == nullptr) {
      Watcher& watcher = notes.watchers[id];
      watcher.stream = &stream;
      watcher.shape = shape_of(request, id);
      watcher.group = index_.enter(range);
      watcher.progress_notify = request.progress_notify();
      stats_.watchers++;
      if (watcher.progress_notify && notes.progress_notify++ == 0) schedule_progress(stream);
      if (start == 0) {
        to_tip(watcher, now + 1);
      } else if (start > revision_) {
        notes.latest_start = std::max(notes.latest_start, start);
        to_tip(watcher, start);
      } else if (start < compacted_) {
        end(watcher, "", effects);
      } else {
        to_behind(watcher, start, effects);
      }
    }
  }
  run(effects);
}

void HubImpl::cancel(StreamImpl& stream, int64_t watch_id) {
  int64_t published = mvcc_.published().revision;
  Effects effects;
  {
    MutexLock lock(mutex_);
    StreamImpl::Notes& notes = stream.notes;
    auto found = notes.watchers.find(watch_id);
    if (found == notes.watchers.end()) return;
    Watcher& watcher = found->second;
    leave(watcher);
    if (stream.drop(watcher)) want_progress(stream, 0);
    bool was_latest = watcher.next >= notes.latest_start;
    notes.watchers.erase(found);
    if (was_latest && notes.latest_start > revision_) {
      notes.latest_start = 0;
      for (const auto& [id, other] : notes.watchers) notes.latest_start = std::max(notes.latest_start, other.next);
    }
    stream.push_answer(
        builder_.answer(std::max(revision_, published), watch_id, [](auto* message) { message->set_canceled(true); }),
        effects);
    resume_blocked(stream, effects);
    check_progress(stream, effects);
  }
  run(effects);
}

void HubImpl::close(StreamImpl& stream) {
  StreamImpl::Notes& notes = stream.notes;
  bool more = true;
  while (more) {
    MutexLock lock(mutex_);
    stream.drop_all();  // each time: a publish may have come between
    for (size_t i = 0; i < kChunkWatchers && !notes.watchers.empty(); i++) {
      auto last = std::prev(notes.watchers.end());
      leave(last->second);
      notes.watchers.erase(last);
    }
    more = !notes.watchers.empty();
    if (more) continue;
    stats_.streams--;
    if (std::exchange(notes.progress_wanted, false)) std::erase(waiting_, &stream);
  }
}

void HubImpl::unblock(StreamImpl& stream) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    resume_blocked(stream, effects);
  }
  run(effects);
}

void HubImpl::resume_blocked(StreamImpl& stream, Effects& effects) {
  // Backwards, because those that may resume are taken out of the list.
  auto& blocked = stream.notes.blocked;
  for (size_t i = blocked.size(); i-- > 0;) {
    Watcher& watcher = *blocked[i];
    if (stream.may_resume(watcher)) to_behind(watcher, watcher.next, effects);
  }
}

void HubImpl::put_in(std::vector<Watcher*>& list, Watcher& watcher, uint32_t Watcher::*slot) {
  watcher.*slot = static_cast<uint32_t>(list.size());
  list.push_back(&watcher);
}

void HubImpl::take_out(std::vector<Watcher*>& list, Watcher& watcher, uint32_t Watcher::*slot) {
  CHECK(watcher.*slot < list.size(), watcher.*slot, list.size());
  CHECK(list[watcher.*slot] == &watcher, watcher.shape.id);
  list[watcher.*slot] = list.back();
  list[watcher.*slot]->*slot = watcher.*slot;
  list.pop_back();
  if (list.empty() && list.capacity() > kChunkWatchers) list.shrink_to_fit();
}

void HubImpl::to_tip(Watcher& watcher, int64_t next) {
  CHECK(next > revision_, next, revision_);
  leave_place(watcher);
  watcher.place = Place::kTip;
  watcher.next = next;
  put_in(watcher.group->tip, watcher, &Watcher::group_slot);
}

void HubImpl::to_behind(Watcher& watcher, int64_t next, Effects& effects) {
  leave_place(watcher);
  watcher.place = Place::kBehind;
  watcher.next = next;
  watcher.stream->notes.behind++;
  stats_.behind++;
  put_in(watcher.group->behind, watcher, &Watcher::group_slot);
  auto at = cohorts_.find(next);
  if (at == cohorts_.end()) {
    at = cohorts_.emplace(next, std::make_unique<Cohort>());
    at->second->next = next;
  }
  watcher.cohort = at->second.get();
  put_in(watcher.cohort->watchers, watcher, &Watcher::cohort_slot);
  if (!std::exchange(work_told_, true)) effects.work = true;
}

void HubImpl::to_blocked(Watcher& watcher, int64_t next) {
  leave_place(watcher);
  watcher.place = Place::kBlocked;
  watcher.next = next;
  watcher.stream->notes.behind++;
  stats_.behind++;
  put_in(watcher.stream->notes.blocked, watcher, &Watcher::group_slot);
}

void HubImpl::leave_place(Watcher& watcher) {
  StreamImpl::Notes& notes = watcher.stream->notes;
  switch (watcher.place) {
    case Place::kTip:
      take_out(watcher.group->tip, watcher, &Watcher::group_slot);
      break;
    case Place::kBehind: {
      take_out(watcher.group->behind, watcher, &Watcher::group_slot);
      Cohort* cohort = std::exchange(watcher.cohort, nullptr);
      take_out(cohort->watchers, watcher, &Watcher::cohort_slot);
      if (cohort->watchers.empty() && !cohort->in_slice) {
        auto at = cohorts_.equal_range(cohort->next);
        auto found = std::find_if(at.first, at.second, [&](const auto& entry) { return entry.second.get() == cohort; });
        CHECK(found != at.second, cohort->next);
        cohorts_.erase(found);
      }
      break;
    }
    case Place::kBlocked:
      take_out(notes.blocked, watcher, &Watcher::group_slot);
      break;
    case Place::kEnded:
      return;
  }
  if (watcher.place != Place::kTip) {
    notes.behind--;
    stats_.behind--;
  }
  watcher.place = Place::kEnded;
}

void HubImpl::leave(Watcher& watcher) {
  leave_place(watcher);
  if (watcher.group == nullptr) return;  // ended before
  index_.leave(std::exchange(watcher.group, nullptr));
  stats_.watchers--;
  if (watcher.progress_notify && --watcher.stream->notes.progress_notify == 0) unschedule_progress(*watcher.stream);
}

void HubImpl::end(Watcher& watcher, const std::string& reason, Effects& effects) {
  leave(watcher);
  // As etcd's for a compacted cursor: no revision in the header, no reason.
  int64_t compacted = compacted_;
  auto answer = builder_.answer(0, watcher.shape.id, [&](auto* message) {
    message->set_canceled(true);
    if (reason.empty()) {
      message->set_compact_revision(compacted);
    } else {
      message->set_cancel_reason(reason);
    }
  });
  watcher.stream->push_answer(std::move(answer), effects);
  check_progress(*watcher.stream, effects);
}

HubImpl::Stats HubImpl::stats() const {
  MutexLock lock(mutex_);
  Stats stats = stats_;
  stats.buffered_bytes = buffered_bytes_.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace watch
