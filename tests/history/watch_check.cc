#include "history/watch_check.h"

#include <algorithm>

namespace history {
namespace {

std::string text_of(const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events) text += "  " + describe(event) + "\n";
  return text;
}

void sort_by_key(std::vector<Event>& events) {
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.kv.key < b.kv.key; });
}

class Checker {
 public:
  Checker(const WatchRecord& watch, const Events& events) : watch_(watch), events_(events) {
    if (!watch.previous) return;
    for (const auto& [revision, all] : events) {
      for (const Event& event : all) by_key_[event.kv.key].emplace(revision, &event);
    }
  }

  Verdict run(int64_t through) {
    for (const WatchItem& item : watch_.items) {
      now_ = item.at;
      if (Verdict verdict = hear(item); !verdict.ok()) return verdict;
    }
    return through == 0 ? Verdict{} : nothing_until(through + 1, "at the end");
  }

 private:
  Verdict fault(const std::string& what, const std::string& lines = "") const {
    return violation("watch " + watch_.name + " at " + describe(now_) + ", next revision " + std::to_string(next_) +
                     ": " + what + "\n" + lines);
  }

  bool wants(const Event& event) const {
    return (event.is_delete ? watch_.deletes : watch_.puts) && in_range(event.kv.key, watch_.key, watch_.end);
  }
  std::vector<Event> wanted(const std::vector<Event>& events) const {
    std::vector<Event> out;
    std::copy_if(events.begin(), events.end(), std::back_inserter(out),
                 [this](const Event& event) { return wants(event); });
    return out;
  }

  // No event that is wanted lies in [next_, end).
  Verdict nothing_until(int64_t end, const std::string& why) const {
    for (auto it = events_.lower_bound(next_); it != events_.end() && it->first < end; ++it) {
      const auto missed = wanted(it->second);
      if (!missed.empty()) return fault("events are missing (" + why + ")", text_of(missed));
    }
    return {};
  }

  Verdict hear(const WatchItem& item) {
    switch (item.kind) {
      case WatchItem::Kind::kStarted:
        if (started_ && item.revision > next_ && !compacted_) {
          return fault("resumed at " + std::to_string(item.revision) + ", which leaves a gap");
        }
        started_ = true;
        compacted_ = false;
        next_ = item.revision;
        return {};
      case WatchItem::Kind::kEvents:
        return hear_events(item);
      case WatchItem::Kind::kProgress: {
        if (Verdict verdict = nothing_until(item.revision + 1, "progress " + std::to_string(item.revision));
            !verdict.ok()) {
          return verdict;
        }
        next_ = std::max(next_, item.revision + 1);
        return {};
      }
      case WatchItem::Kind::kCompacted:
        if (item.revision <= next_) {
          return fault("ended as compacted, but everything from " + std::to_string(item.revision) + " on is there");
        }
        compacted_ = true;
        return {};
    }
    return {};
  }

  Verdict hear_events(const WatchItem& item) {
    if (item.events.empty()) return fault("a response without events");
    if (compacted_ || !started_) return fault("events after the end", text_of(item.events));
    size_t i = 0;
    while (i < item.events.size()) {
      const int64_t revision = item.events[i].kv.mod_revision;
      const size_t first = i;
      std::vector<Event> heard;
      for (; i < item.events.size() && item.events[i].kv.mod_revision == revision; ++i) heard.push_back(item.events[i]);
      if (revision < next_) return fault("a repeat, or out of order", text_of(heard));
      if (Verdict verdict = nothing_until(revision, "before " + std::to_string(revision)); !verdict.ok()) {
        return verdict;
      }
      if (Verdict verdict = check_revision(revision, heard); !verdict.ok()) return verdict;
      if (watch_.previous) {
        for (size_t k = first; k < i; ++k) {
          if (Verdict verdict = check_previous(item, k); !verdict.ok()) return verdict;
        }
      }
      next_ = revision + 1;
    }
    if (item.revision != 0 && item.revision < next_ - 1) {
      return fault("the header's revision " + std::to_string(item.revision) + " is below its events'",
                   text_of(item.events));
    }
    return {};
  }

  Verdict check_revision(int64_t revision, std::vector<Event> heard) const {
    const auto found = events_.find(revision);
    auto expected = found == events_.end() ? std::vector<Event>{} : wanted(found->second);
    sort_by_key(heard);
    sort_by_key(expected);
    if (heard == expected) return {};
    return fault("revision " + std::to_string(revision) + " arrived as\n" + text_of(heard) + " and is",
                 text_of(expected));
  }

  Verdict check_previous(const WatchItem& item, size_t at) const {
    const Event& event = item.events[at];
    std::optional<KeyValue> expected;
    if (const auto all = by_key_.find(event.kv.key); all != by_key_.end()) {
      auto before = all->second.lower_bound(event.kv.mod_revision);
      if (before != all->second.begin() && !(--before)->second->is_delete) expected = before->second->kv;
    }
    const auto told = at < item.previous.size() ? item.previous[at] : std::nullopt;
    if (told == expected) return {};
    return fault("the value before " + describe(event) + " is told as",
                 "  " + (told ? describe(*told) : "absent") +
                     "\n  expected: " + (expected ? describe(*expected) : "absent") + "\n");
  }

  const WatchRecord& watch_;
  const Events& events_;
  std::map<std::string, std::map<int64_t, const Event*>> by_key_;
  int64_t next_ = 0;
  bool started_ = false;
  bool compacted_ = false;
  Time now_{};
};

}  // namespace

Verdict check_watch(const WatchRecord& watch, const Events& events, int64_t through) {
  return Checker(watch, events).run(through);
}

Verdict check_watch_hears(const WatchRecord& watch, const std::vector<Operation>& operations) {
  std::map<std::pair<int64_t, std::string>, const Event*> heard;
  std::vector<std::pair<int64_t, int64_t>> spans;  // of revisions that were to be heard, both ends included
  bool compacted = true;
  for (const WatchItem& item : watch.items) {
    int64_t to = 0;
    if (item.kind == WatchItem::Kind::kStarted && compacted) spans.emplace_back(item.revision, 0);
    if (item.kind == WatchItem::Kind::kProgress) to = item.revision;
    for (const Event& event : item.events) {
      heard[{event.kv.mod_revision, event.kv.key}] = &event;
      to = std::max(to, event.kv.mod_revision);
    }
    compacted = item.kind == WatchItem::Kind::kCompacted;
    if (!spans.empty()) spans.back().second = std::max(spans.back().second, to);
  }
  for (const Operation& operation : operations) {
    if (!watch.puts || !wrote(operation)) continue;
    const bool wanted = std::any_of(spans.begin(), spans.end(), [&operation](const auto& span) {
      return operation.revision >= span.first && operation.revision <= span.second;
    });
    for (const Request& request : operation.taken()) {
      if (!wanted || request.kind != Request::Kind::kPut || !in_range(request.key, watch.key, watch.end)) continue;
      const auto event = heard.find({operation.revision, request.key});
      if (event == heard.end() || event->second->kv.value != request.value) {
        return violation("watch " + watch.name + " did not hear an acknowledged write:\n  " + describe(operation) +
                         "\n");
      }
    }
  }
  return {};
}

Verdict merge_watches(const std::vector<WatchRecord>& watches, Events& events) {
  std::map<std::pair<int64_t, std::string>, std::pair<const Event*, const WatchRecord*>> merged;
  for (const WatchRecord& watch : watches) {
    for (const WatchItem& item : watch.items) {
      for (const Event& event : item.events) {
        const auto [at, is_new] = merged.try_emplace({event.kv.mod_revision, event.kv.key}, &event, &watch);
        if (!is_new && !(*at->second.first == event)) {
          return violation("two watches tell revision " + std::to_string(event.kv.mod_revision) + " differently:\n  " +
                           at->second.second->name + ": " + describe(*at->second.first) + "\n  " + watch.name + ": " +
                           describe(event) + "\n");
        }
      }
    }
  }
  for (const auto& [at, event] : merged) events[at.first].push_back(*event.first);
  return {};
}

}  // namespace history
