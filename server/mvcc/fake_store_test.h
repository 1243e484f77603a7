// A store in memory for tests of what stands on it: commits are copies, so a ReadTxn is stable; failures on demand.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "store/store.h"

namespace mvcc {

class FakeStore final : public store::Store {
 public:
  using Rows = std::map<store::RowId, store::Row>;
  struct State {
    Rows rows;
    store::Meta meta;
  };

  int fail_put_after = -1;  // that many puts are fine first
  bool keep_rows = true;    // false: rows are only counted as written, for tests with a million of them
  // Rows read, for tests that say what needs none.
  int64_t rows_read = 0;
  int64_t values_read = 0;

  std::shared_ptr<const State> state() const {
    std::lock_guard lock(mutex_);
    return state_;
  }

  Result<std::unique_ptr<store::WriteTxn>> begin() override {
    return std::unique_ptr<store::WriteTxn>(std::make_unique<Write>(*this));
  }
  const store::Meta& meta() const override { return state_->meta; }
  void lose_row(store::RowId id) {
    auto state = std::make_shared<State>(*state_);
    state->rows.erase(id);
    state_ = std::move(state);
  }
  Result<std::vector<store::LeaseRow>> load_leases() override { return std::vector<store::LeaseRow>{}; }
  Result<std::unique_ptr<store::ReadTxn>> read() override {
    return std::unique_ptr<store::ReadTxn>(std::make_unique<Read>(*this));
  }
  Result<std::optional<store::Mark>> begin_checkpoint() override { return std::optional<store::Mark>(); }
  Result<store::Mark> run_checkpoint() override { return store::Mark{}; }
  void end_checkpoint() override {}
  bool pause_needed() const override { return false; }
  Status vacuum(int) override { return {}; }
  store::Stats stats() const override { return {}; }

 private:
  class Read final : public store::ReadTxn {
   public:
    explicit Read(FakeStore& store) : store_(store), state_(store.state()) {}
    const store::Meta& meta() const override { return state_->meta; }
    Result<std::optional<store::Row>> row(store::RowId id) override {
      const auto at = state_->rows.find(id);
      if (at == state_->rows.end()) return std::optional<store::Row>();
      count(false);
      return std::optional<store::Row>(at->second);
    }
    Status scan(store::RowId from, store::RowId to, bool heads_only,
                const std::function<bool(const store::RowView&)>& visit) override {
      for (auto at = state_->rows.lower_bound(from); at != state_->rows.end() && at->first < to; ++at) {
        const store::Row& row = at->second;
        count(heads_only);
        const std::string_view value = heads_only ? std::string_view() : row.value;
        if (!visit({row.id, row.key, row.create_revision, row.version, row.lease, value})) break;
      }
      return {};
    }
    Result<store::Meta> whole_meta() override { return state_->meta; }
    Result<std::vector<store::LeaseRow>> leases() override { return store_.load_leases(); }

   private:
    void count(bool heads_only) {
      std::lock_guard lock(store_.mutex_);
      ++store_.rows_read;
      if (!heads_only) ++store_.values_read;
    }
    FakeStore& store_;
    std::shared_ptr<const State> state_;
  };

  class Write final : public store::WriteTxn {
   public:
    explicit Write(FakeStore& store) : store_(store), state_(*store.state()) {}
    Status put_row(const store::RowView& row) override {
      if (store_.fail_put_after == 0) return fail(Code::kResourceExhausted, "no space");
      if (store_.fail_put_after > 0) --store_.fail_put_after;
      if (!store_.keep_rows) return {};
      state_.rows[row.id] = {row.id, Bytes(row.key), row.create_revision, row.version, row.lease, Bytes(row.value)};
      return {};
    }
    Status delete_row(store::RowId id) override {
      state_.rows.erase(id);
      return {};
    }
    Result<std::optional<store::Row>> row(store::RowId id) override {
      std::lock_guard lock(store_.mutex_);
      ++store_.rows_read;
      ++store_.values_read;
      const auto at = state_.rows.find(id);
      if (at == state_.rows.end()) return std::optional<store::Row>();
      return std::optional<store::Row>(at->second);
    }
    Status put_lease(const store::LeaseRow&) override { return {}; }
    Status delete_lease(int64_t) override { return {}; }
    Status set_meta(const store::Meta& meta) override {
      state_.meta = meta;
      return {};
    }
    Status commit() override {
      std::lock_guard lock(store_.mutex_);
      store_.state_ = std::make_shared<const State>(std::move(state_));
      return {};
    }

   private:
    FakeStore& store_;
    State state_;
  };

  mutable std::mutex mutex_;
  std::shared_ptr<const State> state_ = std::make_shared<const State>();
};

}  // namespace mvcc
