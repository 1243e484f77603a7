// The reader's side of a SqliteStore: a pool of connections, and the views that they give.
#include "base/check.h"
#include "store/sqlite_store.h"

namespace store {

class SqliteStore::SqliteReadTxn final : public ReadTxn {
 public:
  SqliteReadTxn(SqliteStore& store, std::unique_ptr<Connection> connection)
      : store_(store), connection_(std::move(connection)) {}
  ~SqliteReadTxn() override { store_.give_back(std::move(connection_)); }

  Status begin() {
    TRY_ASSIGN(meta_, connection_->begin_view());
    return {};
  }
  const Meta& meta() const override { return meta_; }
  Result<std::optional<Row>> row(RowId id) override { return connection_->row(id); }
  Status scan(RowId from, RowId to, bool heads_only, const std::function<bool(const RowView&)>& visit) override {
    return connection_->scan(from, to, heads_only, visit);
  }
  Result<Meta> whole_meta() override {
    Meta meta = meta_;
    TRY(connection_->load_blobs(&meta));
    return meta;
  }
  Result<std::vector<LeaseRow>> leases() override { return connection_->leases(); }

 private:
  SqliteStore& store_;
  std::unique_ptr<Connection> connection_;
  Meta meta_;
};

Result<std::unique_ptr<ReadTxn>> SqliteStore::read() {
  TRY(vfs_->failure().check());
  std::unique_ptr<Connection> connection;
  {
    MutexLock lock(pool_mutex_);
    while (readers_.empty()) reader_back_.wait(pool_mutex_);
    connection = std::move(readers_.back());
    readers_.pop_back();
  }
  auto txn = std::make_unique<SqliteReadTxn>(*this, std::move(connection));
  TRY(txn->begin());
  return txn;
}

void SqliteStore::give_back(std::unique_ptr<Connection> connection) {
  connection->end_view();
  MutexLock lock(pool_mutex_);
  readers_.push_back(std::move(connection));
  reader_back_.notify_one();
}

}  // namespace store
