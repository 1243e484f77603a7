// SQLite's files: the database (pages sealed when written, verified when read, index of the -wal and its locks) and the
// -wal (frames verified when read).
#include <cstring>
#include <new>
#include <vector>

#include "base/check.h"
#include "base/crc32c.h"
#include "store/format.h"
#include "store/page_checksum.h"
#include "store/vfs.h"

namespace store {

namespace {

constexpr uint64_t kWriteOutBytes = 256 << 10;

struct VfsFile : sqlite3_file {
  VfsFile(Vfs& owner, std::string name, std::unique_ptr<File> handle, bool is_wal)
      : vfs(owner), path(std::move(name)), file(std::move(handle)), wal(is_wal) {}
  Vfs& vfs;
  const std::string path;
  const std::unique_ptr<File> file;
  const bool wal;
  int level = SQLITE_LOCK_NONE;
  SharedMemory::Held held;
  uint64_t begin = UINT64_MAX;  // of what was written since the last write_out()
  uint64_t end = 0;
  uint64_t amount = 0;
};

VfsFile& self(sqlite3_file* file) { return *static_cast<VfsFile*>(file); }

int refuse(VfsFile& file, Error error, int code) {
  file.vfs.failure().set(std::move(error));
  return code;
}

int refuse_damage(VfsFile& file, const std::string& what, int code) {
  return refuse(file, {Code::kDataLoss, file.path + ": " + what + kAdviceDamage}, code);
}

// A full disk is the one error after which SQLite may go on.
int refuse_change(VfsFile& file, const Error& error, int code) {
  if (error.code != Code::kResourceExhausted) return refuse(file, error, code);
  file.vfs.failure().note_full(error);
  return SQLITE_FULL;
}

int read_short(std::span<std::byte> into, size_t got) {
  std::memset(into.data() + got, 0, into.size() - got);
  return SQLITE_IOERR_SHORT_READ;
}

std::string page_text(uint64_t number) { return "page " + std::to_string(number); }

int read_page(VfsFile& file, uint32_t number, std::span<std::byte> into) {
  const auto got = file.file->read(uint64_t{number - 1} * kPageBytes, into);
  if (!got) return refuse(file, got.error(), SQLITE_IOERR_READ);
  if (*got == 0 && number == 1) return read_short(into, 0);  // a database that is being made
  if (*got < into.size()) return refuse_damage(file, "ends before " + page_text(number), SQLITE_IOERR_READ);
  if (!page_is_intact(number, into)) {
    return refuse_damage(file, page_text(number) + " does not match its checksum", SQLITE_IOERR_READ);
  }
  return SQLITE_OK;
}

// The header, of which SQLite learns the page size before it knows how large a page is.
int read_header(VfsFile& file, uint64_t offset, std::span<std::byte> into) {
  std::byte page[kPageBytes];
  if (file.vfs.first_page()) {
    std::memcpy(page, file.vfs.first_page()->data(), kPageBytes);
  } else if (const int code = read_page(file, 1, page); code != SQLITE_OK) {
    return code == SQLITE_IOERR_SHORT_READ ? read_short(into, 0) : code;
  }
  std::memcpy(into.data(), page + offset, into.size());
  return SQLITE_OK;
}

int read_wal(VfsFile& file, uint64_t offset, std::span<std::byte> into) {
  const auto got = file.file->read(offset, into);
  if (!got) return refuse(file, got.error(), SQLITE_IOERR_READ);
  if (offset >= kWalHeaderBytes) {
    const uint64_t frame = (offset - kWalHeaderBytes) / kFrameBytes + 1;
    const uint64_t within = (offset - kWalHeaderBytes) % kFrameBytes;
    // SQLite reads the page alone to use it, so the frame was committed or found by scan_wal(); it reads the whole
    // frame to find the end of the log, where it may meet what was never valid.
    const bool page_alone = within == kFrameHeaderBytes && into.size() == kPageBytes;
    const bool whole_frame = within == 0 && into.size() == kFrameBytes;
    const auto expected = page_alone || whole_frame ? file.vfs.frames().get(frame) : std::nullopt;
    const bool intact = expected && *got == into.size() && crc32c(into.last(kPageBytes)) == *expected;
    if ((page_alone || expected) && !intact) {
      return refuse_damage(file, "frame " + std::to_string(frame) + " does not match its checksum", SQLITE_IOERR_READ);
    }
  }
  return *got < into.size() ? read_short(into, *got) : SQLITE_OK;
}

int read(sqlite3_file* handle, void* into, int amount, sqlite3_int64 offset) {
  VfsFile& file = self(handle);
  if (file.vfs.failure().failed()) return SQLITE_IOERR_READ;
  const auto at = static_cast<uint64_t>(offset);
  const std::span bytes(static_cast<std::byte*>(into), static_cast<size_t>(amount));
  if (file.wal) return read_wal(file, at, bytes);
  if (bytes.size() == kPageBytes && at % kPageBytes == 0) {
    return read_page(file, static_cast<uint32_t>(at / kPageBytes + 1), bytes);
  }
  if (at + bytes.size() <= kPageBytes) return read_header(file, at, bytes);
  return refuse_damage(file, "a read of " + std::to_string(amount) + " bytes is no page", SQLITE_IOERR_READ);
}

int write_page(VfsFile& file, uint64_t offset, BytesView from) {
  CHECK(from.size() == kPageBytes && offset % kPageBytes == 0, from.size(), offset);
  std::byte page[kPageBytes];
  std::memcpy(page, from.data(), kPageBytes);
  seal_page(static_cast<uint32_t>(offset / kPageBytes + 1), page);
  file.vfs.database_dirty().store(true);
  const Status written = file.file->write(offset, page);
  return written ? SQLITE_OK : refuse_change(file, written.error(), SQLITE_IOERR_WRITE);
}

int write_wal(VfsFile& file, uint64_t offset, BytesView from) {
  if (offset >= kWalHeaderBytes) {
    const uint64_t within = (offset - kWalHeaderBytes) % kFrameBytes;
    if (from.size() == kPageBytes) {
      CHECK(within == kFrameHeaderBytes, offset);
      file.vfs.frames().set((offset - kWalHeaderBytes) / kFrameBytes + 1, crc32c(from));
    } else {
      CHECK(within == 0 && from.size() == kFrameHeaderBytes, offset, from.size());
    }
  }
  const Status written = file.file->write(offset, from);
  return written ? SQLITE_OK : refuse_change(file, written.error(), SQLITE_IOERR_WRITE);
}

// What is written goes to the disk in pieces: 20 MiB at once, in a sync, would hold up the Raft log's syncs by 10 ms
// and more. Only a checkpoint writes to the database; it waits for each piece. The -wal's writer is the apply thread,
// which does not.
int write_out(VfsFile& file, uint64_t offset, uint64_t bytes) {
  file.begin = std::min(file.begin, offset);
  file.end = std::max(file.end, offset + bytes);
  file.amount += bytes;
  if (file.amount < kWriteOutBytes) return SQLITE_OK;
  const Status done = file.file->write_out(file.begin, file.end - file.begin, !file.wal);
  file.begin = UINT64_MAX;
  file.end = file.amount = 0;
  return done ? SQLITE_OK : refuse(file, {Code::kDataLoss, done.error().message}, SQLITE_IOERR_FSYNC);
}

int write(sqlite3_file* handle, const void* from, int amount, sqlite3_int64 offset) {
  VfsFile& file = self(handle);
  if (file.vfs.failure().failed()) return SQLITE_IOERR_WRITE;
  const auto count = static_cast<uint64_t>(amount);
  file.vfs.count_written(count);
  const BytesView bytes(static_cast<const std::byte*>(from), count);
  const int code = (file.wal ? write_wal : write_page)(file, static_cast<uint64_t>(offset), bytes);
  return code == SQLITE_OK ? write_out(file, static_cast<uint64_t>(offset), count) : code;
}

int truncate(sqlite3_file* handle, sqlite3_int64 size) {
  VfsFile& file = self(handle);
  if (file.vfs.failure().failed()) return SQLITE_IOERR_TRUNCATE;
  if (!file.wal) file.vfs.database_dirty().store(true);
  const Status done = file.file->truncate(static_cast<uint64_t>(size));
  return done ? SQLITE_OK : refuse_change(file, done.error(), SQLITE_IOERR_TRUNCATE);
}

int sync(sqlite3_file* handle, int) {
  VfsFile& file = self(handle);
  if (!file.wal) file.vfs.database_dirty().store(false);
  return file.vfs.sync(*file.file) ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

int file_size(sqlite3_file* handle, sqlite3_int64* size) {
  VfsFile& file = self(handle);
  if (file.vfs.failure().failed()) return SQLITE_IOERR_FSTAT;
  const auto answer = file.file->size();
  if (!answer) return refuse(file, answer.error(), SQLITE_IOERR_FSTAT);
  *size = static_cast<sqlite3_int64>(*answer);
  return SQLITE_OK;
}

int lock_file(sqlite3_file* handle, int level) {
  VfsFile& file = self(handle);
  Vfs::FileLocks& locks = file.vfs.file_locks();
  if (level <= file.level) return SQLITE_OK;
  MutexLock lock(locks.mutex);
  const bool own = locks.reserved == &file;
  if (level == SQLITE_LOCK_SHARED) {
    if (locks.pending) return SQLITE_BUSY;
    ++locks.shared;
    file.level = level;
    return SQLITE_OK;
  }
  if (locks.reserved != nullptr && !own) return SQLITE_BUSY;
  locks.reserved = &file;
  if (level == SQLITE_LOCK_EXCLUSIVE) {
    locks.pending = true;
    if (locks.shared > 1) return SQLITE_BUSY;
  }
  file.level = level;
  return SQLITE_OK;
}

int unlock_file(sqlite3_file* handle, int level) {
  VfsFile& file = self(handle);
  Vfs::FileLocks& locks = file.vfs.file_locks();
  MutexLock lock(locks.mutex);
  if (locks.reserved == &file) {
    locks.reserved = nullptr;
    locks.pending = false;
  }
  if (level == SQLITE_LOCK_NONE && file.level != SQLITE_LOCK_NONE) --locks.shared;
  file.level = std::min(file.level, level);
  return SQLITE_OK;
}

int check_reserved_lock(sqlite3_file* handle, int* answer) {
  Vfs::FileLocks& locks = self(handle).vfs.file_locks();
  MutexLock lock(locks.mutex);
  *answer = locks.reserved != nullptr ? 1 : 0;
  return SQLITE_OK;
}

int close(sqlite3_file* handle) {
  VfsFile& file = self(handle);
  if (!file.wal) unlock_file(handle, SQLITE_LOCK_NONE);
  file.~VfsFile();
  return SQLITE_OK;
}

int file_control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file*) { return static_cast<int>(kPageBytes); }
// A write does not harm what lies beside it. Nothing is assumed of order or of atomic pages.
int device_characteristics(sqlite3_file*) {
  return SQLITE_IOCAP_POWERSAFE_OVERWRITE | SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN;
}

int shm_map(sqlite3_file* handle, int region, int bytes, int extend, void volatile** into) {
  CHECK(bytes == static_cast<int>(SharedMemory::kRegionBytes), bytes);
  *into = self(handle).vfs.shared_memory().map(static_cast<size_t>(region), extend != 0);
  return SQLITE_OK;
}

int shm_lock(sqlite3_file* handle, int first, int count, int flags) {
  VfsFile& file = self(handle);
  SharedMemory& memory = file.vfs.shared_memory();
  if ((flags & SQLITE_SHM_UNLOCK) != 0) {
    memory.unlock(first, count, file.held);
    return SQLITE_OK;
  }
  return memory.lock(first, count, (flags & SQLITE_SHM_EXCLUSIVE) != 0, file.held) ? SQLITE_OK : SQLITE_BUSY;
}

void shm_barrier(sqlite3_file* handle) { self(handle).vfs.shared_memory().barrier(); }

int shm_unmap(sqlite3_file* handle, int) {
  VfsFile& file = self(handle);
  file.vfs.shared_memory().unlock(0, SharedMemory::kLocks, file.held);
  return SQLITE_OK;
}

constexpr sqlite3_io_methods make_methods() {
  sqlite3_io_methods methods{};
  methods.iVersion = 2;  // 3 would offer mmap
  methods.xClose = close;
  methods.xRead = read;
  methods.xWrite = write;
  methods.xTruncate = truncate;
  methods.xSync = sync;
  methods.xFileSize = file_size;
  methods.xLock = lock_file;
  methods.xUnlock = unlock_file;
  methods.xCheckReservedLock = check_reserved_lock;
  methods.xFileControl = file_control;
  methods.xSectorSize = sector_size;
  methods.xDeviceCharacteristics = device_characteristics;
  methods.xShmMap = shm_map;
  methods.xShmLock = shm_lock;
  methods.xShmBarrier = shm_barrier;
  methods.xShmUnmap = shm_unmap;
  return methods;
}
constexpr sqlite3_io_methods kMethods = make_methods();

}  // namespace

int open_vfs_file(Vfs& vfs, const char* path, sqlite3_file* file, int flags) {
  if (vfs.failure().failed()) return SQLITE_CANTOPEN;
  const bool create = (flags & SQLITE_OPEN_CREATE) != 0;
  auto opened = vfs.disk().open(path, create ? OpenMode::kCreate : OpenMode::kReadWrite);
  if (!opened) {
    vfs.failure().set(opened.error());
    return SQLITE_CANTOPEN;
  }
  auto* made = new (file) VfsFile(vfs, path, std::move(*opened), (flags & SQLITE_OPEN_WAL) != 0);
  made->pMethods = &kMethods;
  return SQLITE_OK;
}

size_t vfs_file_bytes() { return sizeof(VfsFile); }

const SharedMemory::Held& shared_locks_of(sqlite3_file* file) { return self(file).held; }

}  // namespace store
