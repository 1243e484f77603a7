#include "store/vfs.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "store/format.h"

namespace store {

namespace {

constexpr size_t kWriteAgainBytes = 1 << 20;

std::string unique_name() {
  static std::atomic<uint64_t> number{0};
  return "conclave-" + std::to_string(number.fetch_add(1));
}

Vfs& self(sqlite3_vfs* vfs) { return *static_cast<Vfs*>(vfs->pAppData); }

int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  constexpr int kAllowed = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL;
  if (path == nullptr || (flags & kAllowed) == 0) return SQLITE_CANTOPEN;  // journals and temporary files
  if (out_flags != nullptr) *out_flags = flags;
  return open_vfs_file(self(vfs), path, file, flags);
}

int remove(sqlite3_vfs* vfs, const char* path, int) {
  Vfs& own = self(vfs);
  if (own.failure().failed()) return SQLITE_IOERR_DELETE;
  const Status removed = own.disk().remove(path);
  if (removed) return SQLITE_OK;
  if (removed.error().code == Code::kNotFound) return SQLITE_IOERR_DELETE_NOENT;
  own.failure().set(removed.error());
  return SQLITE_IOERR_DELETE;
}

int access(sqlite3_vfs* vfs, const char* path, int, int* answer) {
  Vfs& own = self(vfs);
  if (own.failure().failed()) return SQLITE_IOERR_ACCESS;
  const auto exists = own.disk().exists(path);
  if (!exists) {
    own.failure().set(exists.error());
    return SQLITE_IOERR_ACCESS;
  }
  *answer = *exists ? 1 : 0;
  return SQLITE_OK;
}

int full_path(sqlite3_vfs*, const char* path, int bytes_max, char* into) {
  const size_t bytes = std::strlen(path) + 1;
  if (bytes > static_cast<size_t>(bytes_max)) return SQLITE_CANTOPEN;
  std::memcpy(into, path, bytes);
  return SQLITE_OK;
}

// SQLite asks the default VFS, not this one, for the seed of its random numbers (salts of the -wal; nothing of ours
// depends on them). Constant, so that whatever should ask after all is the same in every run.
int randomness(sqlite3_vfs*, int bytes, char* into) {
  std::memset(into, 0, static_cast<size_t>(bytes));
  return bytes;
}

// SQLite sleeps only to wait for a lock of another connection.
int sleep_for_lock(sqlite3_vfs* vfs, int microseconds) {
  self(vfs).shared_memory().back_off(std::chrono::microseconds(microseconds));
  return microseconds;
}

// No statement of ours asks for the time.
int current_time(sqlite3_vfs*, sqlite3_int64* milliseconds) {
  constexpr sqlite3_int64 kUnixEpoch = 210866760000000;  // since noon of the first Julian day
  *milliseconds = kUnixEpoch;
  return SQLITE_OK;
}

int last_error(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

Vfs::Vfs(Disk& disk, std::string directory) : disk_(disk), directory_(std::move(directory)), name_(unique_name()) {
  constexpr int kPathBytesMax = 4096;
  methods_.iVersion = 2;
  methods_.szOsFile = static_cast<int>(vfs_file_bytes());
  methods_.mxPathname = kPathBytesMax;
  methods_.zName = name_.c_str();
  methods_.pAppData = this;
  methods_.xOpen = open;
  methods_.xDelete = remove;
  methods_.xAccess = access;
  methods_.xFullPathname = full_path;
  methods_.xRandomness = randomness;
  methods_.xSleep = sleep_for_lock;
  methods_.xGetLastError = last_error;
  methods_.xCurrentTimeInt64 = current_time;
  const int registered = sqlite3_vfs_register(&methods_, 0);
  CHECK(registered == SQLITE_OK, registered);
}

Vfs::~Vfs() { sqlite3_vfs_unregister(&methods_); }

Status Vfs::open_for_sync() {
  TRY_ASSIGN(database_, disk_.open(path(kDatabaseName), OpenMode::kReadWrite));
  TRY_ASSIGN(wal_, disk_.open(path(kWalName), OpenMode::kReadWrite));
  return {};
}

Status Vfs::sync(File& file) {
  TRY(failure_.check());
  syncs_.fetch_add(1, std::memory_order_relaxed);
  const Status synced = file.sync();
  // Also when the disk is only full: what was to be synced may be lost, and a second sync would not tell.
  if (!synced) failure_.set({Code::kDataLoss, synced.error().message});
  return synced ? Status() : failure_.check();
}

Status Vfs::sync_wal() { return sync(*wal_); }

Status Vfs::write_wal_again(uint64_t bytes) {
  std::vector<std::byte> buffer(kWriteAgainBytes);  // synced piece by piece: other syncs wait behind large ones
  for (uint64_t at = 0; at < bytes;) {
    const BytesView piece = std::span(buffer).first(std::min<uint64_t>(buffer.size(), bytes - at));
    Result<size_t> got = wal_->read(at, std::span(buffer).first(piece.size()));
    if (got && *got < piece.size()) got = fail(Code::kDataLoss, path(kWalName) + ": is shorter than it was");
    const Status written = got ? wal_->write(at, piece) : fail(got.error());
    if (!written && written.error().code != Code::kResourceExhausted) failure_.set(written.error());
    TRY(written);
    count_written(piece.size());
    TRY(sync(*wal_));
    at += piece.size();
  }
  return {};
}

Status Vfs::sync_database() {
  if (!database_dirty_.exchange(false)) return {};
  return sync(*database_);
}

}  // namespace store
