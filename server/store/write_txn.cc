#include "store/write_txn.h"

#include "base/check.h"

namespace store {

Result<WriterStatements> WriterStatements::prepare(Connection& connection) {
  WriterStatements made;
  TRY_ASSIGN(made.begin, connection.prepare("BEGIN IMMEDIATE"));
  TRY_ASSIGN(made.commit, connection.prepare("COMMIT"));
  TRY_ASSIGN(made.rollback, connection.prepare("ROLLBACK"));
  TRY_ASSIGN(made.put_row, connection.prepare("INSERT INTO kv VALUES(?1, ?2, ?3, ?4, ?5, ?6)"));
  TRY_ASSIGN(made.delete_row, connection.prepare("DELETE FROM kv WHERE id=?1"));
  TRY_ASSIGN(made.put_lease, connection.prepare("INSERT OR REPLACE INTO lease VALUES(?1, ?2, ?3)"));
  TRY_ASSIGN(made.delete_lease, connection.prepare("DELETE FROM lease WHERE id=?1"));
  TRY_ASSIGN(made.set_meta, connection.prepare("UPDATE meta SET applied_index=?1, applied_term=?2, revision=?3, "
                                               "compacted=?4, compaction_finished=?5, content_hash=?6 WHERE id=1"));
  TRY_ASSIGN(made.set_meta_blobs, connection.prepare("UPDATE meta SET membership=?1, alarms=?2 WHERE id=1"));
  TRY_ASSIGN(made.free_pages, connection.prepare("PRAGMA freelist_count"));
  return made;
}

SqliteStore::SqliteWriteTxn::SqliteWriteTxn(SqliteStore& store) : store_(store), meta_(store.meta_) {
  store_.write_txn_alive_ = true;
}

SqliteStore::SqliteWriteTxn::~SqliteWriteTxn() {
  if (committed_) return;
  rollback();
  store_.write_txn_alive_ = false;
}

// What fails here is already told by Failure, or leaves SQLite outside a transaction.
void SqliteStore::SqliteWriteTxn::rollback() {
  if (store_.writer_->in_transaction()) (void)store_.statements_.rollback.run();
}

Status SqliteStore::SqliteWriteTxn::run(Statement& statement) {
  CHECK(!committed_);
  TRY(state_);
  state_ = statement.run();
  return state_;
}

Status SqliteStore::SqliteWriteTxn::put_row(const RowView& row) {
  return run(store_.statements_.put_row.bind(1, row.id)
                 .bind(2, row.key)
                 .bind(3, row.create_revision)
                 .bind(4, row.version)
                 .bind(5, row.lease)
                 .bind(6, row.value));
}

Status SqliteStore::SqliteWriteTxn::delete_row(RowId id) { return run(store_.statements_.delete_row.bind(1, id)); }

Result<std::optional<Row>> SqliteStore::SqliteWriteTxn::row(RowId id) {
  TRY(state_);
  return store_.writer_->row(id);
}

Status SqliteStore::SqliteWriteTxn::put_lease(const LeaseRow& lease) {
  return run(store_.statements_.put_lease.bind(1, lease.id).bind(2, lease.ttl).bind(3, lease.remaining));
}

Status SqliteStore::SqliteWriteTxn::delete_lease(int64_t id) {
  return run(store_.statements_.delete_lease.bind(1, id));
}

Status SqliteStore::SqliteWriteTxn::set_meta(const Meta& meta) {
  TRY(run(store_.statements_.set_meta.bind(1, static_cast<int64_t>(meta.applied_index))
              .bind(2, static_cast<int64_t>(meta.applied_term))
              .bind(3, meta.revision)
              .bind(4, meta.compacted)
              .bind(5, meta.compaction_finished)
              .bind(6, static_cast<int64_t>(meta.content_hash))));
  if (meta.membership != meta_.membership || meta.alarms != meta_.alarms) {
    TRY(run(store_.statements_.set_meta_blobs.bind(1, std::string_view(meta.membership))
                .bind(2, std::string_view(meta.alarms))));
  }
  meta_ = meta;
  return {};
}

Status SqliteStore::SqliteWriteTxn::commit() {
  CHECK(!committed_);
  TRY(state_);
  Statement& free_pages = store_.statements_.free_pages;
  const auto counted = free_pages.step();
  const auto free = counted && *counted ? static_cast<uint32_t>(free_pages.integer(0)) : 0;
  free_pages.reset();
  state_ = counted ? store_.commit_by(store_.statements_.commit) : Status(fail(counted.error()));
  TRY(state_);
  committed_ = true;
  store_.write_txn_alive_ = false;
  store_.free_pages_.store(free);
  store_.meta_ = std::move(meta_);
  return {};
}

}  // namespace store
