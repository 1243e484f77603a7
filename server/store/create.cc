#include "store/create.h"

#include "base/check.h"
#include "store/connection.h"
#include "store/format.h"
#include "store/page_checksum.h"

namespace store {

namespace {

// `value` last: a head is read without touching the pages that a long value runs over.
constexpr const char* kSchema[] = {
    "CREATE TABLE kv(id INTEGER PRIMARY KEY, key BLOB NOT NULL, create_revision INTEGER NOT NULL, "
    "version INTEGER NOT NULL, lease INTEGER NOT NULL, value BLOB NOT NULL) STRICT",
    "CREATE TABLE lease(id INTEGER PRIMARY KEY, ttl INTEGER NOT NULL, remaining INTEGER NOT NULL) STRICT",
    "CREATE TABLE meta(id INTEGER PRIMARY KEY CHECK(id=1), applied_index INTEGER NOT NULL, "
    "applied_term INTEGER NOT NULL, revision INTEGER NOT NULL, compacted INTEGER NOT NULL, "
    "compaction_finished INTEGER NOT NULL, content_hash INTEGER NOT NULL, membership BLOB NOT NULL, "
    "alarms BLOB NOT NULL) STRICT",
    "INSERT INTO meta VALUES(1, 0, 0, 1, -1, -1, 0, x'', x'')",
};

Status fill(Vfs& vfs, const std::string& path) {
  constexpr uint64_t kCacheBytes = 256ULL << 10;
  TRY_ASSIGN(auto connection, Connection::open(vfs, path, Connection::Role::kMaker, kCacheBytes));
  // A cut in here leaves an unfinished file that nobody looks at, so it needs neither journal nor syncs of its own.
  TRY(connection->run("PRAGMA journal_mode=MEMORY"));
  TRY(connection->run("PRAGMA synchronous=OFF"));
  TRY(connection->run("PRAGMA page_size=" + std::to_string(kPageBytes)));
  int reserved = kReservedBytes;
  TRY(connection->status_of(sqlite3_file_control(connection->handle(), "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved)));
  TRY(connection->run("PRAGMA auto_vacuum=INCREMENTAL"));
  TRY(connection->run("BEGIN"));
  TRY(connection->run("PRAGMA application_id=" + std::to_string(kApplicationId)));
  TRY(connection->run("PRAGMA user_version=" + std::to_string(kUserVersion)));
  for (const char* sql : kSchema) TRY(connection->run(sql));
  TRY(connection->run("COMMIT"));
  return connection->run("PRAGMA journal_mode=WAL");
}

Status remove_if_there(Disk& disk, const std::string& path) {
  Status removed = disk.remove(path);
  if (!removed && removed.error().code != Code::kNotFound) return removed;
  return {};
}

}  // namespace

Status create_database(Vfs& vfs) {
  Disk& disk = vfs.disk();
  const std::string unfinished = vfs.path(kUnfinishedName);
  TRY(remove_if_there(disk, unfinished));
  TRY(remove_if_there(disk, unfinished + "-wal"));
  TRY(fill(vfs, unfinished));
  TRY_ASSIGN(auto file, disk.open(unfinished, OpenMode::kReadWrite));
  TRY(vfs.sync(*file));
  TRY(remove_if_there(disk, unfinished + "-wal"));
  TRY(disk.rename(unfinished, vfs.path(kDatabaseName)));
  return disk.sync_directory(vfs.directory());
}

Result<Bytes> inspect_first_page(Vfs& vfs, const WalScan& scan) {
  const std::string path = vfs.path(kDatabaseName);
  Bytes page(kPageBytes, '\0');
  TRY_ASSIGN(auto file, vfs.disk().open(path, OpenMode::kRead));
  TRY_ASSIGN(const size_t got, file->read(0, std::as_writable_bytes(std::span(page))));
  // SQLite would take an empty file for a new database, and remove the -wal that has all of it.
  if (got == 0) return fail(Code::kDataLoss, path + ": is empty" + kAdviceDamage);
  if (scan.first_page) {
    page = *scan.first_page;  // the file's own may be torn by a checkpoint that was cut short
  } else if (got < kPageBytes || !page_is_intact(1, as_bytes(page))) {
    return fail(Code::kDataLoss, path + ": page 1 does not match its checksum" + kAdviceDamage);
  }
  if (load_big32(page.data() + kApplicationIdOffset) != kApplicationId) {
    return fail(Code::kDataLoss, path + ": is not a store of Conclave's");
  }
  const uint32_t version = load_big32(page.data() + kUserVersionOffset);
  const uint32_t oldest_reader = version >> 16;
  if (oldest_reader > kFormat) {
    return fail(Code::kFailedPrecondition, path + ": has format " + std::to_string(version & 0xffff) +
                                               ", which needs a program that knows format " +
                                               std::to_string(oldest_reader) + " at least; this one knows " +
                                               std::to_string(kFormat) +
                                               ". Nothing was changed: start the newer version again");
  }
  return page;
}

}  // namespace store
