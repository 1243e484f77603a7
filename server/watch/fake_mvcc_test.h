// A key space in memory for the tests of this folder: every write is one revision, published at once. Any thread.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/thread.h"
#include "mvcc/mvcc.h"

namespace watch {

// A write: key and value, or no value for a delete.
using Write = std::pair<std::string, std::optional<std::string>>;

class FakeMvcc final : public mvcc::Mvcc {
 public:
  // All writes in one revision. Deletes of absent keys must not be asked for.
  mvcc::EventBatch write(const std::vector<Write>& writes) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    mvcc::EventBatch batch{.revision = published_.revision + 1, .events = {}};
    for (const auto& [key, value] : writes) {
      auto kv = std::make_shared<mvcc::KeyValue>();
      kv->key = key;
      kv->mod_revision = batch.revision;
      auto& versions = keys_[key];
      mvcc::KeyValuePtr before = versions.empty() || versions.back().is_delete ? nullptr : versions.back().kv;
      if (value) {
        kv->value = *value;
        kv->create_revision = before ? before->create_revision : batch.revision;
        kv->version = before ? before->version + 1 : 1;
      }
      batch.events.push_back({.is_delete = !value, .kv = kv});
      versions.push_back(batch.events.back());
    }
    published_.revision = batch.revision;
    history_.push_back(batch);
    return batch;
  }
  bool alive(const std::string& key) const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    auto found = keys_.find(key);
    return found != keys_.end() && !found->second.back().is_delete;
  }
  void compact(int64_t revision) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    published_.compacted = revision;
  }
  void reset() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    published_ = {};
    history_.clear();
    keys_.clear();
  }
  std::vector<mvcc::EventBatch> all() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return history_;
  }
  int reads() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return reads_;
  }
  void break_reads(bool broken) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    broken_ = broken;
  }

  mvcc::Published published() const override EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return published_;
  }
  std::unique_ptr<mvcc::Reader> reader() override { return std::make_unique<FakeReader>(*this, published()); }

  int64_t key_count() const override { return 0; }
  mvcc::Writer& begin(store::WriteTxn&) override { refuse(); }
  void publish(const mvcc::Published&) override { refuse(); }
  void rollback() override { refuse(); }
  Result<bool> compact_step(store::WriteTxn&, int) override { refuse(); }
  uint64_t content_hash() const override { return 0; }

 private:
  class FakeReader final : public mvcc::Reader {
   public:
    FakeReader(FakeMvcc& mvcc, const mvcc::Published& at) : mvcc_(mvcc), at_(at) {}
    const mvcc::Published& at() const override { return at_; }
    Status range(const etcdserverpb::RangeRequest&, etcdserverpb::RangeResponse*) override { refuse(); }
    Result<mvcc::KeyValuePtr> get(std::string_view key, int64_t revision) override {
      MutexLock lock(mvcc_.mutex_);
      if (revision < mvcc_.published_.compacted) return fail(Code::kOutOfRange, mvcc::kErrorCompacted);
      mvcc::KeyValuePtr found;
      for (const auto& event : mvcc_.keys_[std::string(key)]) {
        if (event.kv->mod_revision <= revision) found = event.is_delete ? nullptr : event.kv;
      }
      return found;
    }
    Status history(int64_t from, int64_t to, const std::function<bool(std::string_view)>& wanted,
                   const std::function<bool(mvcc::EventBatch)>& visit) override {
      std::vector<mvcc::EventBatch> batches;
      {
        MutexLock lock(mvcc_.mutex_);
        if (mvcc_.broken_) return fail(Code::kDataLoss, "page 7 does not match its checksum");
        if (from < mvcc_.published_.compacted) return fail(Code::kOutOfRange, mvcc::kErrorCompacted);
        mvcc_.reads_++;
        // Revision r is at r - 2: an empty store is at 1.
        for (int64_t r = std::max<int64_t>(from, 2); r <= to; r++) batches.push_back(mvcc_.history_.at(r - 2));
      }
      for (auto& batch : batches) {
        std::erase_if(batch.events, [&](const auto& event) { return !wanted(event.kv->key); });
        if (!batch.events.empty() && !visit(std::move(batch))) break;
      }
      return {};
    }

   private:
    FakeMvcc& mvcc_;
    mvcc::Published at_;
  };
  [[noreturn]] static void refuse() { check_failed(__FILE__, __LINE__, "not for watches", ""); }

  mutable Mutex mutex_;
  mvcc::Published published_ GUARDED_BY(mutex_);
  std::vector<mvcc::EventBatch> history_ GUARDED_BY(mutex_);
  std::map<std::string, std::vector<mvcc::Event>> keys_ GUARDED_BY(mutex_);
  int reads_ GUARDED_BY(mutex_) = 0;
  bool broken_ GUARDED_BY(mutex_) = false;
};

}  // namespace watch
