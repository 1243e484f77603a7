// A store with an Mvcc over it, driven as the applier drives it, for this folder's tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mvcc/fake_store_test.h"
#include "mvcc/mvcc.h"

namespace mvcc {

inline std::string range_end_of_prefix(std::string prefix) {
  ++prefix.back();
  return prefix;
}

class Member {
 public:
  explicit Member(uint64_t cache_bytes = 1 << 20) : options_{.cache_bytes = cache_bytes} { reopen(); }

  FakeStore store;
  Mvcc& mvcc() { return *mvcc_; }

  void reopen(uint64_t cache_bytes) {
    options_.cache_bytes = cache_bytes;
    reopen();
  }
  void reopen() {
    mvcc_.reset();
    keys_with_lease.clear();
    auto opened = Mvcc::open(store, options_,
                             [this](std::string_view key, int64_t lease) { keys_with_lease.emplace_back(key, lease); });
    ASSERT_TRUE(opened) << opened.error().message;
    mvcc_ = std::move(*opened);
  }
  std::vector<std::pair<std::string, int64_t>> keys_with_lease;  // as open() told them

  // One batch: `work` stages, then meta, commit, publish. False: the commit failed and all was rolled back.
  template <class Work>
  bool batch(Work&& work, int64_t compact = -1) {
    auto txn = store.begin();
    Writer& writer = mvcc_->begin(**txn);
    work(writer);
    if (compact >= 0) writer.set_compacted(compact);
    store::Meta meta = store.meta();
    ++meta.applied_index;
    meta.revision = writer.revision();
    meta.compacted = writer.compacted();
    meta.content_hash = mvcc_->content_hash();
    EXPECT_TRUE((*txn)->set_meta(meta));
    if (!(*txn)->commit()) {
      mvcc_->rollback();
      return false;
    }
    mvcc_->publish({meta.revision, meta.compacted, meta.applied_index, 1});
    return true;
  }
  // A batch of one revision.
  template <class Work>
  EventBatch write(Work&& work) {
    EventBatch events;
    batch([&](Writer& writer) {
      writer.begin_revision();
      work(writer);
      events = writer.end_revision();
    });
    return events;
  }
  int64_t put(std::string_view key, std::string_view value, int64_t lease = 0) {
    return write([&](Writer& writer) { EXPECT_TRUE(writer.put(key, value, lease, false)); }).revision;
  }
  int64_t erase(std::string_view key, std::string_view end = {}) {
    return write([&](Writer& writer) { EXPECT_TRUE(writer.erase(key, end, nullptr, nullptr)); }).revision;
  }
  void publish_compaction(int64_t revision) {
    EXPECT_TRUE(batch([](Writer&) {}, revision));
  }
  // One slice in a transaction of its own. nullopt: its commit failed.
  std::optional<bool> compact_step(int rows_max) {
    auto txn = store.begin();
    const auto done = mvcc_->compact_step(**txn, rows_max);
    EXPECT_TRUE(done);
    if (*done) {
      store::Meta meta = store.meta();
      meta.compaction_finished = meta.compacted;
      EXPECT_TRUE((*txn)->set_meta(meta));
    }
    if ((*txn)->commit()) return *done;
    mvcc_->rollback();
    return std::nullopt;
  }
  int compact_all(int64_t revision, int rows_max = 100) {
    publish_compaction(revision);
    int steps = 1;
    while (compact_step(rows_max) != true) ++steps;
    return steps;
  }

  std::vector<std::string> keys_at(int64_t revision) {
    etcdserverpb::RangeRequest request;
    etcdserverpb::RangeResponse response;
    request.set_key(std::string(1, '\0'));
    request.set_range_end(std::string(1, '\0'));
    request.set_revision(revision);
    const Status status = mvcc_->reader()->range(request, &response);
    if (!status) return {status.error().message};
    std::vector<std::string> keys;
    for (const auto& kv : response.kvs()) keys.push_back(kv.key() + "=" + kv.value());
    return keys;
  }

 private:
  Options options_;
  std::unique_ptr<Mvcc> mvcc_;
};

}  // namespace mvcc
