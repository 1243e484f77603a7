// A store in memory that fails when told to, and a hub that writes down what it hears.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/store.h"
#include "watch/hub.h"

namespace apply::fake {

// What survives a restart.
struct Content {
  std::map<store::RowId, store::Row> rows;
  std::map<int64_t, store::LeaseRow> leases;
  store::Meta meta;
};

class Store final : public store::Store {
 public:
  explicit Store(std::shared_ptr<Content> content) : content_(std::move(content)) {}

  // The `in`-th call that writes from now on (1: the next one; commits count) fails, once.
  void fail(int in, Error error) {
    fail_in_ = in;
    failure_ = std::move(error);
  }
  bool failure_is_due() const { return fail_in_ > 0; }
  int vacuums = 0;
  store::Stats reported;

  Result<std::unique_ptr<store::WriteTxn>> begin() override {
    TRY(may_write());
    return std::make_unique<Txn>(*this);
  }
  const store::Meta& meta() const override { return content_->meta; }
  Result<std::vector<store::LeaseRow>> load_leases() override {
    std::vector<store::LeaseRow> all;
    for (const auto& [id, row] : content_->leases) all.push_back(row);
    return all;
  }
  Result<std::unique_ptr<store::ReadTxn>> read() override { return std::make_unique<View>(*content_); }
  Result<std::optional<store::Mark>> begin_checkpoint() override { return std::optional<store::Mark>(); }
  Result<store::Mark> run_checkpoint() override { return store::Mark{}; }
  void end_checkpoint() override {}
  bool pause_needed() const override { return false; }
  Status vacuum(int) override {
    TRY(may_write());
    ++vacuums;
    reported.size_bytes -= 1 << 20;
    return {};
  }
  store::Stats stats() const override { return reported; }

 private:
  class View final : public store::ReadTxn {
   public:
    explicit View(const Content& content) : content_(content) {}
    const store::Meta& meta() const override { return content_.meta; }
    Result<std::optional<store::Row>> row(store::RowId id) override {
      auto at = content_.rows.find(id);
      return at == content_.rows.end() ? std::nullopt : std::optional(at->second);
    }
    Status scan(store::RowId from, store::RowId to, bool heads_only,
                const std::function<bool(const store::RowView&)>& visit) override {
      for (auto at = content_.rows.lower_bound(from); at != content_.rows.end() && at->first < to; ++at) {
        const store::Row& row = at->second;
        const std::string_view value = heads_only ? std::string_view() : std::string_view(row.value);
        if (!visit({row.id, row.key, row.create_revision, row.version, row.lease, value})) break;
      }
      return {};
    }
    Result<store::Meta> whole_meta() override { return content_.meta; }
    Result<std::vector<store::LeaseRow>> leases() override {
      std::vector<store::LeaseRow> all;
      for (const auto& [id, row] : content_.leases) all.push_back(row);
      return all;
    }

   private:
    const Content& content_;
  };

  // Writes at once and takes everything back unless it was committed; nobody reads meanwhile in these tests.
  class Txn final : public store::WriteTxn {
   public:
    explicit Txn(Store& store) : store_(store), content_(*store.content_) {}
    ~Txn() override {
      for (; !undo_.empty(); undo_.pop_back()) undo_.back()();
    }
    Status put_row(const store::RowView& row) override {
      TRY(store_.may_write());
      change(content_.rows, row.id,
             store::Row{row.id, Bytes(row.key), row.create_revision, row.version, row.lease, Bytes(row.value)});
      return {};
    }
    Status delete_row(store::RowId id) override {
      TRY(store_.may_write());
      change(content_.rows, id, std::nullopt);
      return {};
    }
    Result<std::optional<store::Row>> row(store::RowId id) override { return View(content_).row(id); }
    Status put_lease(const store::LeaseRow& lease) override {
      TRY(store_.may_write());
      change(content_.leases, lease.id, lease);
      return {};
    }
    Status delete_lease(int64_t id) override {
      TRY(store_.may_write());
      change(content_.leases, id, std::nullopt);
      return {};
    }
    Status set_meta(const store::Meta& meta) override {
      TRY(store_.may_write());
      undo_.push_back([this, before = content_.meta] { content_.meta = before; });
      content_.meta = meta;
      return {};
    }
    Status commit() override {
      TRY(store_.may_write());
      undo_.clear();
      return {};
    }

   private:
    template <class Table>
    void change(Table& table, int64_t id, std::optional<typename Table::mapped_type> to) {
      std::optional<typename Table::mapped_type> before;
      if (auto at = table.find(id); at != table.end()) before = at->second;
      auto set = [&table, id](const std::optional<typename Table::mapped_type>& row) {
        if (row) {
          table[id] = *row;
        } else {
          table.erase(id);
        }
      };
      undo_.push_back([set, before] { set(before); });
      set(to);
    }
    Store& store_;
    Content& content_;
    std::vector<std::function<void()>> undo_;
  };

  Status may_write() {
    if (fail_in_ > 0 && --fail_in_ == 0) return ::fail(failure_);
    return {};
  }

  std::shared_ptr<Content> content_;
  int fail_in_ = 0;
  Error failure_;
};

class Hub final : public watch::Hub {
 public:
  std::string heard;  // "2:a=1,-b " a revision, "c5 " a compaction

  void publish(std::vector<mvcc::EventBatch> batches, int64_t revision) override {
    for (const mvcc::EventBatch& batch : batches) {
      heard += std::to_string(batch.revision) + ":";
      for (const mvcc::Event& event : batch.events) {
        heard += event.is_delete ? "-" + event.kv->key + "," : event.kv->key + "=" + event.kv->value + ",";
      }
      heard.back() = ' ';
    }
    last_revision = revision;
  }
  void compacted(int64_t revision) override { heard += "c" + std::to_string(revision) + " "; }
  std::shared_ptr<watch::Stream> open(std::function<void()>) override { return nullptr; }
  bool step() override { return false; }
  void set_on_work(std::function<void()>) override {}
  void set_header(std::function<void(etcdserverpb::ResponseHeader*)>) override {}
  void tick(std::chrono::nanoseconds) override {}
  watch::Hub::Stats stats() const override { return {}; }

  int64_t last_revision = 0;
};

}  // namespace apply::fake
