// Checks what one stream hears against everything that was written: each watcher's events are complete, in order,
// without repeats, the events of a revision together (or in fragments that follow each other), and progress is true.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "watch/fake_mvcc_test.h"
#include "watch/hub.h"

namespace watch {

// What was written, for any number of checkers: revision r is at r - 2.
using History = std::vector<mvcc::EventBatch>;

inline std::string text(bool is_delete, const std::string& key, const std::string& value, int64_t revision) {
  return (is_delete ? "-" + key : key + "=" + value) + "@" + std::to_string(revision);
}

class StreamChecker {
 public:
  // Before the request goes to the stream.
  void asked(const etcdserverpb::WatchCreateRequest& request) { asked_.push_back(request); }

  void heard(const etcdserverpb::WatchResponse& response, const History& history) {
    int64_t id = response.watch_id();
    int64_t revision = response.header().revision();
    if (response.created()) {
      ASSERT_FALSE(asked_.empty());
      auto request = asked_.front();
      asked_.erase(asked_.begin());
      if (response.canceled()) return;
      int64_t start = request.start_revision();
      ASSERT_FALSE(watches_.contains(id));
      watches_[id].request = request;
      watches_[id].next = start > 0 ? start : revision + 1;
      return;
    }
    if (id == -1) {
      for (auto& [other, watch] : watches_) check_nothing_missing(watch, revision, history);
      return;
    }
    // A watch that we ended keeps its id until the client cancels it, too.
    if (response.canceled() && ended_.erase(id) > 0) return;
    ASSERT_TRUE(watches_.contains(id)) << id;
    Watch& watch = watches_[id];
    if (response.canceled()) {
      ASSERT_FALSE(watch.in_fragments);
      if (response.compact_revision() != 0) {
        ASSERT_LT(watch.next, response.compact_revision());
        ended_.insert(id);
        compacted++;
      }
      watches_.erase(id);
      return;
    }
    if (response.events().empty()) {
      check_nothing_missing(watch, revision, history);
      return;
    }
    ASSERT_EQ(response.events().rbegin()->kv().mod_revision(), revision);
    for (const auto& event : response.events()) {
      int64_t at = event.kv().mod_revision();
      ASSERT_GE(at, watch.next) << "a repeat, or out of order";
      if (at != watch.collecting) {
        end_revision(watch, history);
        watch.collecting = at;
      }
      watch.collected.push_back(text(event.type() == mvccpb::Event::DELETE, event.kv().key(), event.kv().value(), at));
      if (event.has_prev_kv()) {
        ASSERT_TRUE(watch.request.prev_kv());
        ASSERT_LT(event.prev_kv().mod_revision(), at);
        ASSERT_EQ(event.prev_kv().key(), event.kv().key());
      }
      events++;
    }
    watch.in_fragments = response.fragment();
    if (response.fragment()) {
      ASSERT_TRUE(watch.request.fragment());
      return;
    }
    end_revision(watch, history);
  }

  // When everything was taken: nothing may be missing up to `revision`.
  void finished(int64_t revision, const History& history) {
    EXPECT_TRUE(asked_.empty());
    for (auto& [id, watch] : watches_) check_nothing_missing(watch, revision, history);
  }
  size_t watches() const { return watches_.size(); }
  std::vector<int64_t> ids() const {
    std::vector<int64_t> ids;
    for (const auto& [id, watch] : watches_) ids.push_back(id);
    return ids;
  }

  uint64_t events = 0;
  uint64_t compacted = 0;

 private:
  struct Watch {
    etcdserverpb::WatchCreateRequest request;
    int64_t next = 0;
    int64_t collecting = 0;
    std::vector<std::string> collected;
    bool in_fragments = false;
  };

  static bool wants(const etcdserverpb::WatchCreateRequest& request, const mvcc::Event& event) {
    for (int filter : request.filters()) {
      if (filter ==
          (event.is_delete ? etcdserverpb::WatchCreateRequest::NODELETE : etcdserverpb::WatchCreateRequest::NOPUT)) {
        return false;
      }
    }
    const std::string& key = event.kv->key;
    if (request.range_end().empty()) return key == request.key();
    if (key < request.key()) return false;
    return request.range_end() == std::string(1, '\0') || key < request.range_end();
  }
  static std::vector<std::string> expected(const Watch& watch, int64_t revision, const History& history) {
    std::vector<std::string> events;
    for (const auto& event : history.at(static_cast<size_t>(revision - 2)).events) {
      if (wants(watch.request, event)) {
        events.push_back(text(event.is_delete, event.kv->key, event.kv->value, revision));
      }
    }
    return events;
  }
  // The collected revision is whole, and nothing lies between it and the one before.
  static void end_revision(Watch& watch, const History& history) {
    if (watch.collecting == 0) return;
    check_nothing_missing(watch, watch.collecting - 1, history);
    ASSERT_EQ(watch.collected, expected(watch, watch.collecting, history));
    watch.next = watch.collecting + 1;
    watch.collecting = 0;
    watch.collected.clear();
  }
  static void check_nothing_missing(Watch& watch, int64_t to, const History& history) {
    for (int64_t r = std::max<int64_t>(watch.next, 2); r <= to; r++) {
      ASSERT_EQ(expected(watch, r, history), std::vector<std::string>{}) << "watch of " << watch.request.key();
    }
  }

  std::vector<etcdserverpb::WatchCreateRequest> asked_;
  std::map<int64_t, Watch> watches_;
  std::set<int64_t> ended_;
};

}  // namespace watch
