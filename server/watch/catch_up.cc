// Behind watchers, a slice a step: one read (of the ring, or of history) serves all cohorts that it passes, which merge
// on the way. At its end a cohort that has everything joins the tip under the hub's mutex, where no publish can come
// between.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "watch/hub_impl.h"

namespace watch {

// The cohorts are taken out of the hub's map meanwhile; their watchers may still leave them (cancelled, blocked).
struct HubImpl::Slice {
  int64_t from = 0;
  int64_t to = 0;       // inclusive; below `from` when there is nothing to read
  bool loaded = false;  // from the ring
  std::vector<BatchPtr> batches;
  size_t next_batch = 0;
  std::vector<std::unique_ptr<Cohort>> cohorts;  // by cursor; [0] is the one that is being served
  int64_t position = 0;                          // everything before it was handed out
};

bool HubImpl::step() {
  Slice slice;
  Effects effects;
  bool planned = false;
  {
    MutexLock lock(mutex_);
    bool ended = end_compacted(effects);
    planned = !ended && plan(slice);
  }
  run(effects);
  if (planned) {
    Status read_status = read(slice);
    if (read_status) {
      serve(slice);
      join(slice);
    } else {
      give_up(slice, read_status.error());
    }
  }
  MutexLock lock(mutex_);
  finish(slice);
  if (!cohorts_.empty()) return true;
  work_told_ = false;
  return false;
}

// True: some were ended, which is enough for one slice.
bool HubImpl::end_compacted(Effects& effects) {
  size_t ended = 0;
  while (!cohorts_.empty() && cohorts_.begin()->first < compacted_ && ended < kChunkWatchers) {
    end(*cohorts_.begin()->second->watchers.back(), "", effects);  // the last one takes the cohort with it
    ended++;
  }
  return ended > 0;
}

bool HubImpl::plan(Slice& slice) {
  if (cohorts_.empty()) return false;
  auto at = cohorts_.lower_bound(hand_);
  if (at == cohorts_.end()) at = cohorts_.begin();
  slice.from = slice.position = at->first;
  slice.to = std::min(revision_, slice.from + kSliceRevisions - 1);
  while (at != cohorts_.end() && at->first <= std::max(slice.from, slice.to)) {
    at->second->in_slice = true;
    slice.cohorts.push_back(std::move(at->second));
    at = cohorts_.erase(at);
  }
  if (slice.to >= slice.from && !ring_.empty() && ring_.front()->revision <= slice.from) {
    auto first = static_cast<size_t>(slice.from - ring_.front()->revision);
    auto count = static_cast<size_t>(slice.to - slice.from + 1);
    CHECK(first + count <= ring_.size(), first, count, ring_.size());
    for (size_t i = first; i < first + count; i++) slice.batches.push_back(ring_[i]);
    slice.loaded = true;
  }
  return true;
}

Status HubImpl::read(Slice& slice) {
  if (slice.loaded || slice.to < slice.from) return {};
  auto reader = mvcc_.reader();
  CHECK(reader->at().revision >= slice.to, reader->at().revision, slice.to);
  auto wanted = [this](std::string_view key) {
    bool hit = false;
    MutexLock lock(mutex_);
    index_.match(key, [&](Group& group) {
      hit = !group.behind.empty();
      return !hit;
    });
    return hit;
  };
  size_t rows = 0;
  size_t bytes = 0;
  auto visit = [&](mvcc::EventBatch batch) {
    rows += batch.events.size();
    for (const auto& event : batch.events) bytes += event_bytes(event);
    int64_t revision = batch.revision;
    slice.batches.push_back(std::make_shared<const mvcc::EventBatch>(std::move(batch)));
    if (rows < kSliceRowsMax && bytes < kSliceBytesMax) return true;
    slice.to = revision;
    return false;
  };
  Status status = reader->history(slice.from, slice.to, wanted, visit);
  if (!status && status.error().code == Code::kOutOfRange) {
    MutexLock lock(mutex_);
    compacted_ = std::max({compacted_, reader->at().compacted, mvcc_.published().compacted});
  }
  return status;
}

void HubImpl::serve(Slice& slice) {
  while (slice.position <= slice.to) {
    Effects effects;
    {
      MutexLock lock(mutex_);
      serve_chunk(slice, effects);
    }
    run(effects);
  }
}

// Revisions from the position to the next cohort's cursor, at most kChunkRevisions: for the served cohort only, whose
// watchers all want all of it, so they share deliveries.
void HubImpl::serve_chunk(Slice& slice, Effects& effects) {
  auto& cohorts = slice.cohorts;
  CHECK(!cohorts.empty(), slice.position);
  // Those whose cursor was reached merge into the served one.
  size_t reached = 1;
  for (; reached < cohorts.size() && cohorts[reached]->next <= slice.position; reached++) {
    for (Watcher* watcher : cohorts[reached]->watchers) {
      watcher->cohort = cohorts[0].get();
      put_in(cohorts[0]->watchers, *watcher, &Watcher::cohort_slot);
    }
  }
  cohorts.erase(cohorts.begin() + 1, cohorts.begin() + static_cast<ptrdiff_t>(reached));

  int64_t end = std::min(slice.to, slice.position + kChunkRevisions - 1);
  if (cohorts.size() > 1) end = std::min(end, cohorts[1]->next - 1);
  std::vector<Group*> touched;
  for (; slice.next_batch < slice.batches.size() && slice.batches[slice.next_batch]->revision <= end;
       slice.next_batch++) {
    collect(*slice.batches[slice.next_batch], &Group::behind, touched);
  }
  hand_out(touched, &Group::behind, cohorts[0].get(), effects);
  slice.position = cohorts[0]->next = end + 1;
}

void HubImpl::join(Slice& slice) {
  bool more = true;
  while (more) {
    Effects effects;
    {
      MutexLock lock(mutex_);
      Cohort& cohort = *slice.cohorts[0];
      for (size_t i = 0; i < kChunkWatchers && !cohort.watchers.empty() && cohort.next > revision_; i++) {
        Watcher& watcher = *cohort.watchers.back();
        to_tip(watcher, cohort.next);
        check_progress(*watcher.stream, effects);
      }
      more = !cohort.watchers.empty() && cohort.next > revision_;
    }
    run(effects);
  }
}

// A compacted cursor is ended by the next step, which knows the compacted revision now.
void HubImpl::give_up(Slice& slice, const Error& error) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    Cohort& cohort = *slice.cohorts[0];
    if (error.code != Code::kOutOfRange || cohort.next >= compacted_) {
      log_error("the history that a watch asks for cannot be read",
                {{"revision", cohort.next}, {"error", error.message}});
      while (!cohort.watchers.empty()) end(*cohort.watchers.back(), error.message, effects);
    }
  }
  run(effects);
}

void HubImpl::finish(Slice& slice) {
  if (!slice.cohorts.empty()) hand_ = slice.cohorts[0]->next + 1;
  for (auto& cohort : slice.cohorts) {
    if (cohort->watchers.empty()) continue;
    cohort->in_slice = false;
    int64_t next = cohort->next;
    cohorts_.emplace(next, std::move(cohort));
  }
}

}  // namespace watch
