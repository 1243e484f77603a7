#pragma once

#include "store/sqlite_store.h"

namespace store {

class SqliteStore::SqliteWriteTxn final : public WriteTxn {
 public:
  explicit SqliteWriteTxn(SqliteStore& store);
  ~SqliteWriteTxn() override;
  Status put_row(const RowView& row) override;
  Status delete_row(RowId id) override;
  Result<std::optional<Row>> row(RowId id) override;
  Status put_lease(const LeaseRow& lease) override;
  Status delete_lease(int64_t id) override;
  Status set_meta(const Meta& meta) override;
  Status commit() override;

 private:
  Status run(Statement& statement);
  void rollback();
  SqliteStore& store_;
  Meta meta_;
  // After an error SQLite may have rolled back by itself, and a statement after that would be a transaction of its own.
  Status state_;
  bool committed_ = false;
};

}  // namespace store
