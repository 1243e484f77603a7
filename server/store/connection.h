// One SQLite connection with the statements that its role needs, prepared once. Used by one thread at a time.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"
#include "store/vfs.h"

namespace store {

class Connection;

// A prepared statement. run() and step() are followed by reset(), or by a StatementUse's end.
class Statement {
 public:
  Statement() = default;
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  Statement& bind(int at, int64_t value);
  Statement& bind(int at, std::string_view bytes);  // not copied: outlives the step
  Result<bool> step();                              // true: a row
  Status run();                                     // to its end, then reset
  void reset();

  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string_view bytes(int column) const;  // valid until the next step

 private:
  friend class Connection;
  Connection* connection_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

class StatementUse {
 public:
  explicit StatementUse(Statement& statement) : statement_(statement) {}
  ~StatementUse() { statement_.reset(); }
  StatementUse(const StatementUse&) = delete;
  StatementUse& operator=(const StatementUse&) = delete;
  Statement* operator->() { return &statement_; }

 private:
  Statement& statement_;
};

class Connection {
 public:
  enum class Role { kMaker, kWriter, kReader, kCheckpointer };
  static Result<std::unique_ptr<Connection>> open(Vfs& vfs, const std::string& path, Role role, uint64_t cache_bytes);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<Statement> prepare(const char* sql);
  Status run(const std::string& sql);
  // What a result code that is not OK, ROW or DONE means for the store.
  Error error_of(int code);
  Status status_of(int code);
  Status usable() const;

  sqlite3* handle() { return handle_; }
  bool in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }
  const SharedMemory::Held& shared_locks();

  // The view of a reader: lasts from begin_view() to end_view(), because SQLite keeps a read transaction open as long
  // as some statement is not at its end. One step instead of a BEGIN, a SELECT and a COMMIT.
  Result<Meta> begin_view();  // without membership and alarms
  void end_view();
  Status load_blobs(Meta* meta);  // membership and alarms; within a view, of that view
  Result<std::vector<LeaseRow>> leases();

  Result<std::optional<Row>> row(RowId id);
  Status scan(RowId from, RowId to, bool heads_only, const std::function<bool(const RowView&)>& visit);

 private:
  Connection(Vfs& vfs, std::string path) : vfs_(vfs), path_(std::move(path)) {}
  Status configure(Role role, uint64_t cache_bytes);
  Vfs& vfs_;
  const std::string path_;
  sqlite3* handle_ = nullptr;
  Statement meta_;
  Statement row_;
  Statement scan_;
  Statement scan_heads_;
  bool scanning_ = false;
};

}  // namespace store
