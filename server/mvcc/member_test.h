// A store with an Mvcc over it, driven as the applier drives it, for this folder's tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_disk.h"
#include "mvcc/fake_store_test.h"
#include "mvcc/mvcc.h"

namespace mvcc {

inline std::string range_end_of_prefix(std::string prefix) {
  ++prefix.back();
  return prefix;
}

enum class StoreKind { kFake, kReal };  // the real one over a disk in memory

class Member {
 public:
  explicit Member(uint64_t cache_bytes = 1 << 20) : Member(cached(cache_bytes), StoreKind::kFake) {}
  Member(const Options& options, StoreKind kind) : options_(options), kind_(kind) {
    EXPECT_TRUE(disk_.create_directory("/store"));
    if (kind == StoreKind::kFake) store_ = std::make_unique<FakeStore>();
    reopen();
  }

  Mvcc& mvcc() { return *mvcc_; }
  store::Store& store() { return *store_; }
  FakeStore& fake() { return dynamic_cast<FakeStore&>(*store_); }
  bool fail_commit = false;  // the transaction is given up instead

  void reopen(const Options& options) {
    options_ = options;
    reopen();
  }
  void reopen() {
    mvcc_.reset();
    if (kind_ == StoreKind::kReal) {
      store_.reset();
      store::Options options;
      options.directory = "/store";
      auto opened = store::Store::open(disk_, options, std::nullopt);
      ASSERT_TRUE(opened) << opened.error().message;
      store_ = std::move(*opened);
    }
    keys_with_lease.clear();
    auto opened = Mvcc::open(*store_, options_,
                             [this](std::string_view key, int64_t lease) { keys_with_lease.emplace_back(key, lease); });
    ASSERT_TRUE(opened) << opened.error().message;
    mvcc_ = std::move(*opened);
  }
  std::vector<std::pair<std::string, int64_t>> keys_with_lease;  // as open() told them

  // One batch: `work` stages, then meta, commit, publish. False: the commit failed and all was rolled back.
  template <class Work>
  bool batch(Work&& work, int64_t compact = -1) {
    auto txn = begin();
    Writer& writer = mvcc_->begin(*txn);
    work(writer);
    if (compact >= 0) writer.set_compacted(compact);
    store::Meta meta = store_->meta();
    ++meta.applied_index;
    meta.revision = writer.revision();
    meta.compacted = writer.compacted();
    meta.content_hash = mvcc_->content_hash();
    EXPECT_TRUE(txn->set_meta(meta));
    if (!commit(std::move(txn))) return false;
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
    auto txn = begin();
    const auto done = mvcc_->compact_step(*txn, rows_max);
    EXPECT_TRUE(done);
    if (*done) {
      store::Meta meta = store_->meta();
      meta.compaction_finished = meta.compacted;
      EXPECT_TRUE(txn->set_meta(meta));
    }
    if (!commit(std::move(txn))) return std::nullopt;
    return *done;
  }
  int compact_all(int64_t revision, int rows_max = 100) {
    publish_compaction(revision);
    int steps = 1;
    while (compact_step(rows_max) != true) ++steps;
    return steps;
  }

  std::unique_ptr<store::WriteTxn> begin() {
    auto txn = store_->begin();
    EXPECT_TRUE(txn) << txn.error().message;
    return std::move(*txn);
  }
  bool commit(std::unique_ptr<store::WriteTxn> txn) {
    if (!fail_commit) {
      const Status status = txn->commit();
      EXPECT_TRUE(status) << status.error().message;
      if (status) return true;
    }
    txn.reset();
    mvcc_->rollback();
    return false;
  }

  std::vector<store::Row> rows() {
    std::vector<store::Row> rows;
    auto view = store_->read();
    EXPECT_TRUE(view) << view.error().message;
    EXPECT_TRUE((*view)->scan(0, INT64_MAX, true, [&](const store::RowView& row) {
      rows.push_back({row.id, Bytes(row.key), row.create_revision, row.version, row.lease, {}});
      return true;
    }));
    return rows;
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
  static Options cached(uint64_t cache_bytes) {
    Options options;
    options.cache_bytes = cache_bytes;
    return options;
  }

  Options options_;
  const StoreKind kind_;
  MemoryDisk disk_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Mvcc> mvcc_;
};

}  // namespace mvcc
