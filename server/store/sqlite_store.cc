#include "store/sqlite_store.h"

#include "base/check.h"
#include "store/format.h"
#include "store/write_txn.h"

namespace store {

namespace {

constexpr uint64_t kCheckpointCacheBytes = 64ULL << 10;  // the two connections of the checkpoint read the meta row only

}  // namespace

Result<std::unique_ptr<SqliteStore>> SqliteStore::make(std::unique_ptr<Vfs> vfs, const Options& options) {
  CHECK(options.readers_max >= 1, options.readers_max);
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(vfs), options));
  TRY(store->connect());
  return store;
}

// All connections are made here and none later: SQLite learns the page size from the file's beginning without a lock.
Status SqliteStore::connect() {
  const std::string path = vfs_->path(kDatabaseName);
  const auto open = [&](Connection::Role role, uint64_t cache_bytes) {
    return Connection::open(*vfs_, path, role, cache_bytes);
  };
  // The writer goes over the newest pages and what a compaction visits; readers find most of what they need in the
  // value cache above.
  const uint64_t half = options_.cache_bytes / 2;
  TRY_ASSIGN(writer_, open(Connection::Role::kWriter, half));
  TRY_ASSIGN(statements_, WriterStatements::prepare(*writer_));
  TRY(load_meta());
  TRY_ASSIGN(pin_, open(Connection::Role::kCheckpointer, kCheckpointCacheBytes));
  TRY_ASSIGN(copier_, open(Connection::Role::kCheckpointer, kCheckpointCacheBytes));
  MutexLock lock(pool_mutex_);
  for (int i = 0; i < options_.readers_max; ++i) {
    TRY_ASSIGN(auto reader, open(Connection::Role::kReader, half / static_cast<uint64_t>(options_.readers_max)));
    readers_.push_back(std::move(reader));
  }
  return {};
}

Status SqliteStore::load_meta() {
  TRY_ASSIGN(meta_, writer_->begin_view());
  writer_->end_view();
  TRY(writer_->load_blobs(&meta_));
  const auto counted = statements_.free_pages.step();
  if (!counted) return fail(counted.error());
  free_pages_.store(static_cast<uint32_t>(statements_.free_pages.integer(0)));
  statements_.free_pages.reset();
  MutexLock lock(commit_mutex_);
  note_index();
  // Without a single frame the index says nothing of the size.
  TRY_ASSIGN(auto pages, writer_->prepare("PRAGMA page_count"));
  TRY_ASSIGN(const bool has_count, pages.step());
  CHECK(has_count);
  pages_.store(static_cast<uint32_t>(pages.integer(0)));
  return {};
}

SqliteStore::~SqliteStore() {
  CHECK(!write_txn_alive_);
  end_checkpoint();
  MutexLock lock(pool_mutex_);
  CHECK(readers_.size() <= static_cast<size_t>(options_.readers_max), readers_.size());
}

Result<std::unique_ptr<WriteTxn>> SqliteStore::begin() {
  CHECK(!write_txn_alive_);
  TRY(vfs_->failure().check());
  const uint64_t wal_bytes = stats().wal_bytes;
  if (wal_bytes >= options_.wal_bytes_max) {
    return fail(Code::kResourceExhausted, vfs_->path(kWalName) + ": " + std::to_string(wal_bytes) +
                                              " bytes are not in the database yet; the checkpoint did not keep up");
  }
  TRY(statements_.begin.run());
  return std::make_unique<SqliteWriteTxn>(*this);
}

Status SqliteStore::commit_by(Statement& statement) {
  MutexLock lock(commit_mutex_);
  TRY(statement.run());
  note_index();
  return {};
}

void SqliteStore::note_index() {
  const SharedMemory::Index index = vfs_->shared_memory().index();
  frames_.store(index.frames);
  copied_.store(index.copied);
  if (index.frames > 0) pages_.store(index.pages);
}

Result<std::vector<LeaseRow>> SqliteStore::load_leases() { return writer_->leases(); }

Status SqliteStore::vacuum(int pages) {
  CHECK(!write_txn_alive_ && pages > 0, pages);
  if (free_pages_.load() == 0) return {};
  TRY_ASSIGN(auto vacuum, writer_->prepare(("PRAGMA incremental_vacuum(" + std::to_string(pages) + ")").c_str()));
  TRY(commit_by(vacuum));
  const auto counted = statements_.free_pages.step();
  if (counted && *counted) free_pages_.store(static_cast<uint32_t>(statements_.free_pages.integer(0)));
  statements_.free_pages.reset();
  if (!counted) return fail(counted.error());
  return {};
}

Status SqliteStore::check_integrity() {
  TRY_ASSIGN(auto check, writer_->prepare("PRAGMA integrity_check(1)"));
  TRY_ASSIGN(const bool found, check.step());
  CHECK(found);
  if (check.bytes(0) == "ok") return {};
  return fail(Code::kDataLoss, vfs_->path(kDatabaseName) + ": " + std::string(check.bytes(0)) + kAdviceDamage);
}

Stats SqliteStore::stats() const {
  const uint32_t frames = frames_.load();
  const int64_t pages = pages_.load();
  return {.size_bytes = pages * static_cast<int64_t>(kPageBytes),
          .size_in_use_bytes = (pages - free_pages_.load()) * static_cast<int64_t>(kPageBytes),
          .wal_bytes = frames == copied_.load() ? 0 : wal_bytes_of(frames),
          .syncs = vfs_->syncs(),
          .bytes_written = vfs_->bytes_written()};
}

bool SqliteStore::pause_needed() const { return stats().wal_bytes > options_.wal_bytes_max / 4 * 3; }

}  // namespace store
