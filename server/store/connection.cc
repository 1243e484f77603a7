#include "store/connection.h"

#include <mutex>
#include <utility>

#include "base/check.h"
#include "store/format.h"

namespace store {

namespace {

constexpr int kBusyMilliseconds = 5000;  // waits for locks that others hold for some microseconds

// SQLite's accounting of memory takes a global mutex at every allocation.
void configure_sqlite() {
  static std::once_flag once;
  std::call_once(once, [] { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); });
}

RowView view_of(const Statement& statement, bool heads_only) {
  return {.id = statement.integer(0),
          .key = statement.bytes(1),
          .create_revision = statement.integer(2),
          .version = statement.integer(3),
          .lease = statement.integer(4),
          .value = heads_only ? std::string_view() : statement.bytes(5)};
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : connection_(other.connection_), statement_(std::exchange(other.statement_, nullptr)) {}
Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(connection_, other.connection_);
  std::swap(statement_, other.statement_);
  return *this;
}
Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::bind(int at, int64_t value) {
  const int code = sqlite3_bind_int64(statement_, at, value);
  CHECK(code == SQLITE_OK, code, sqlite3_sql(statement_));
  return *this;
}

Statement& Statement::bind(int at, std::string_view bytes) {
  const char* data = bytes.data() != nullptr ? bytes.data() : "";  // a null pointer would bind NULL
  const int code = sqlite3_bind_blob64(statement_, at, data, bytes.size(), SQLITE_STATIC);
  CHECK(code == SQLITE_OK, code, sqlite3_sql(statement_));
  return *this;
}

Result<bool> Statement::step() {
  TRY(connection_->usable());
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return fail(connection_->error_of(code));
}

Status Statement::run() {
  Result<bool> more = true;
  while (more && *more) more = step();
  reset();
  if (!more) return fail(more.error());
  return {};
}

void Statement::reset() { sqlite3_reset(statement_); }

std::string_view Statement::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  return {static_cast<const char*>(data), static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

Result<std::unique_ptr<Connection>> Connection::open(Vfs& vfs, const std::string& path, Role role,
                                                     uint64_t cache_bytes) {
  configure_sqlite();
  std::unique_ptr<Connection> connection(new Connection(vfs, path));
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  if (role == Role::kMaker) flags |= SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path.c_str(), &connection->handle_, flags, vfs.name());
  CHECK(connection->handle_ != nullptr, code);
  TRY(connection->status_of(code));
  TRY(connection->configure(role, cache_bytes));
  return connection;
}

Status Connection::configure(Role role, uint64_t cache_bytes) {
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, kBusyMilliseconds);
  // Copying the -wal into the database is the checkpoint's business alone, which tells the Raft log first.
  sqlite3_wal_autocheckpoint(handle_, 0);
  int set = 0;
  const int code = sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, &set);
  CHECK(code == SQLITE_OK && set == 1, code, set);
  TRY(run("PRAGMA temp_store=MEMORY"));
  TRY(run("PRAGMA secure_delete=OFF"));
  TRY(run("PRAGMA cache_size=-" + std::to_string(cache_bytes / 1024)));
  if (role == Role::kMaker) return {};
  TRY(run("PRAGMA synchronous=NORMAL"));
  TRY_ASSIGN(meta_,
             prepare("SELECT applied_index, applied_term, revision, compacted, compaction_finished, content_hash "
                     "FROM meta WHERE id=1"));
  if (role == Role::kCheckpointer) return {};
  TRY_ASSIGN(row_, prepare("SELECT id, key, create_revision, version, lease, value FROM kv WHERE id=?1"));
  if (role == Role::kWriter) return {};
  TRY_ASSIGN(scan_, prepare("SELECT id, key, create_revision, version, lease, value FROM kv "
                            "WHERE id>=?1 AND id<?2 ORDER BY id"));
  TRY_ASSIGN(scan_heads_, prepare("SELECT id, key, create_revision, version, lease FROM kv "
                                  "WHERE id>=?1 AND id<?2 ORDER BY id"));
  return {};
}

Connection::~Connection() {
  for (Statement* statement : {&meta_, &row_, &scan_, &scan_heads_}) *statement = Statement();
  const int code = sqlite3_close(handle_);
  CHECK(code == SQLITE_OK, code, path_);
}

Result<Statement> Connection::prepare(const char* sql) {
  Statement statement;
  statement.connection_ = this;
  TRY(status_of(sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement.statement_, nullptr)));
  return statement;
}

Status Connection::run(const std::string& sql) {
  TRY_ASSIGN(auto statement, prepare(sql.c_str()));
  return statement.run();
}

// Rows may still come from a cache when the files are not to be trusted any more.
Status Connection::usable() const { return vfs_.failure().check(); }

Status Connection::status_of(int code) {
  if (code == SQLITE_OK) return {};
  return fail(error_of(code));
}

Error Connection::error_of(int code) {
  const Status failed = vfs_.failure().check();
  if (!failed) return failed.error();
  const std::string text = path_ + ": " + sqlite3_errmsg(handle_);
  switch (code & 0xff) {
    case SQLITE_FULL:
      return vfs_.failure().full();
    case SQLITE_BUSY:
    case SQLITE_PROTOCOL:  // a race for a lock that was lost too often
      return {Code::kUnavailable, text};
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_ERROR:  // a table that is not there
      vfs_.failure().set({Code::kDataLoss, text + kAdviceDamage});
      return vfs_.failure().check().error();
    default:  // a constraint, misuse, no memory: not the world's doing
      CHECK(code == SQLITE_OK, code, text);
      return {};
  }
}

const SharedMemory::Held& Connection::shared_locks() {
  sqlite3_file* file = nullptr;
  const int code = sqlite3_file_control(handle_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  CHECK(code == SQLITE_OK && file != nullptr, code);
  return shared_locks_of(file);
}

Result<Meta> Connection::begin_view() {
  const auto found = meta_.step();
  if (!found || !*found) {
    meta_.reset();
    if (!found) return fail(found.error());
    return fail(Code::kDataLoss, path_ + ": has no meta row" + kAdviceDamage);
  }
  Meta meta;
  meta.applied_index = static_cast<uint64_t>(meta_.integer(0));
  meta.applied_term = static_cast<uint64_t>(meta_.integer(1));
  meta.revision = meta_.integer(2);
  meta.compacted = meta_.integer(3);
  meta.compaction_finished = meta_.integer(4);
  meta.content_hash = static_cast<uint64_t>(meta_.integer(5));
  return meta;
}

void Connection::end_view() { meta_.reset(); }

Status Connection::load_blobs(Meta* meta) {
  TRY_ASSIGN(auto blobs, prepare("SELECT membership, alarms FROM meta WHERE id=1"));
  TRY_ASSIGN(const bool found, blobs.step());
  CHECK(found);
  meta->membership = blobs.bytes(0);
  meta->alarms = blobs.bytes(1);
  return {};
}

Result<std::vector<LeaseRow>> Connection::leases() {
  TRY_ASSIGN(auto select, prepare("SELECT id, ttl, remaining FROM lease ORDER BY id"));
  std::vector<LeaseRow> leases;
  while (true) {
    TRY_ASSIGN(const bool found, select.step());
    if (!found) return leases;
    leases.push_back({.id = select.integer(0), .ttl = select.integer(1), .remaining = select.integer(2)});
  }
}

Result<std::optional<Row>> Connection::row(RowId id) {
  StatementUse use(row_);
  TRY_ASSIGN(const bool found, use->bind(1, id).step());
  if (!found) return std::optional<Row>();
  const RowView view = view_of(row_, false);
  return Row{.id = view.id,
             .key = Bytes(view.key),
             .create_revision = view.create_revision,
             .version = view.version,
             .lease = view.lease,
             .value = Bytes(view.value)};
}

Status Connection::scan(RowId from, RowId to, bool heads_only, const std::function<bool(const RowView&)>& visit) {
  CHECK(!scanning_, from, to);  // the statement is in use: a visitor must not scan
  Statement& statement = heads_only ? scan_heads_ : scan_;
  StatementUse use(statement);
  scanning_ = true;
  use->bind(1, from).bind(2, to);
  Result<bool> more = statement.step();
  while (more && *more && visit(view_of(statement, heads_only))) more = statement.step();
  scanning_ = false;
  if (!more) return fail(more.error());
  return {};
}

}  // namespace store
