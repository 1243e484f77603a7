// Events to watchers: each range's events are collected once, and every watcher of the range gets a reference.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "watch/hub_impl.h"

namespace watch {

void HubImpl::publish(std::vector<mvcc::EventBatch> batches, int64_t revision) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    CHECK(revision >= revision_, revision, revision_);
    int64_t last = revision_;
    bool gap = false;
    for (const auto& batch : batches) {
      CHECK(batch.revision > last, batch.revision, last);
      gap = gap || batch.revision != last + 1;
      last = batch.revision;
    }
    CHECK(last <= revision, last, revision);
    if (gap || last != revision) {
      // The store was replaced by a snapshot: nobody has heard of what is between.
      all_fall_behind(revision, effects);
    } else {
      std::vector<Group*> touched;
      for (auto& batch : batches) {
        auto shared = std::make_shared<const mvcc::EventBatch>(std::move(batch));
        collect(*shared, &Group::tip, touched);
        remember(std::move(shared));
      }
      // Before the hand-out: a watcher that it blocks is behind this revision.
      revision_ = revision;
      hand_out(touched, &Group::tip, nullptr, effects);
    }
    revision_ = revision;
    check_all_progress(effects);
  }
  run(effects);
}

void HubImpl::collect(const mvcc::EventBatch& batch, List list, std::vector<Group*>& touched) {
  for (const auto& event : batch.events) {
    CHECK(event.kv->mod_revision == batch.revision, event.kv->mod_revision, batch.revision);
    index_.match(event.kv->key, [&](Group& group) {
      if ((group.*list).empty()) return true;
      if (group.pending.empty()) {
        touched.push_back(&group);
        group.pending.push_back(std::make_shared<Delivery>());
      } else if (group.pending.back()->last < batch.revision &&
                 group.pending.back()->bytes + event_bytes(event) > options_.response_bytes) {
        group.pending.push_back(std::make_shared<Delivery>());
      }
      group.pending.back()->add(event);
      return true;
    });
  }
}

// To all at the tip, or to those of one cohort.
void HubImpl::hand_out(std::vector<Group*>& touched, List list, const Cohort* cohort, Effects& effects) {
  for (Group* group : touched) {
    auto deliveries = std::exchange(group->pending, {});
    auto& watchers = group->*list;
    for (size_t i = 0; i < watchers.size();) {
      Watcher& watcher = *watchers[i];
      // A refused one has left the list, and another one is in its slot.
      if (watcher.cohort != cohort || offer(watcher, deliveries, effects)) i++;
    }
  }
  touched.clear();
}

bool HubImpl::offer(Watcher& watcher, const std::vector<DeliveryPtr>& deliveries, Effects& effects) {
  int64_t next = watcher.cohort != nullptr ? watcher.cohort->next : watcher.next;
  for (const auto& whole : deliveries) {
    if (whole->last < next) continue;
    DeliveryPtr part = whole->first >= next ? whole : whole->from(next);
    if (!part->wanted_by(watcher.shape)) continue;
    if (!watcher.stream->push(watcher, part, effects)) {
      to_blocked(watcher, part->first);
      return false;
    }
    watcher.quiet = false;
    stats_.events += part->events.size();
  }
  return true;
}

void HubImpl::remember(BatchPtr batch) {
  auto bytes_of = [](const mvcc::EventBatch& b) {
    size_t bytes = sizeof(mvcc::EventBatch);
    for (const auto& event : b.events) bytes += event_bytes(event);
    return bytes;
  };
  ring_bytes_ += bytes_of(*batch);
  ring_.push_back(std::move(batch));
  while (!ring_.empty() && (ring_bytes_ > options_.ring_bytes || ring_.size() > options_.ring_revisions)) {
    ring_bytes_ -= bytes_of(*ring_.front());
    ring_.pop_front();
  }
}

void HubImpl::all_fall_behind(int64_t revision, Effects& effects) {
  std::vector<Watcher*> behind;
  index_.each([&](Group& group) {
    for (Watcher* watcher : group.tip) {
      if (watcher->next <= revision) behind.push_back(watcher);
    }
  });
  for (Watcher* watcher : behind) to_behind(*watcher, std::max(watcher->next, revision_ + 1), effects);
  ring_.clear();
  ring_bytes_ = 0;
}

void HubImpl::compacted(int64_t revision) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    compacted_ = std::max(compacted_, revision);
    if (!cohorts_.empty() && !std::exchange(work_told_, true)) effects.work = true;
  }
  run(effects);
}

}  // namespace watch
