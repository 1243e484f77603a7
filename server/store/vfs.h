// SQLite's view of the outside: a VFS over base/disk.h, one a store, so that several stores and simulated disks live in
// one process. It seals and verifies pages of the database, verifies frames of the -wal, keeps the -wal's index in
// memory and makes every error but a full disk final. No mmap, no temporary files, no other files than the store's.
//
// SQLite calls from whatever thread runs a statement; what connections share is guarded here.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/disk.h"
#include "base/thread.h"
#include "store/failure.h"
#include "store/frame_table.h"
#include "store/shared_memory.h"

namespace store {

class Vfs {
 public:
  Vfs(Disk& disk, std::string directory);
  ~Vfs();  // all connections are closed
  Vfs(const Vfs&) = delete;
  Vfs& operator=(const Vfs&) = delete;

  const char* name() const { return name_.c_str(); }
  std::string path(const char* file) const { return directory_ + "/" + file; }
  const std::string& directory() const { return directory_; }
  Disk& disk() { return disk_; }
  Failure& failure() { return failure_; }
  FrameTable& frames() { return frames_; }
  SharedMemory& shared_memory() { return shared_memory_; }

  // After a crash in a checkpoint page 1 may be torn in the database file while the -wal has it whole. SQLite looks at
  // the file alone to learn the page size, so this image stands in. Before the first connection.
  void set_first_page(Bytes page) { first_page_ = std::move(page); }
  const std::optional<Bytes>& first_page() const { return first_page_; }

  // Opens own handles for the calls below. A failed sync is final.
  Status open_for_sync();
  Status sync_wal();
  // Writes the first `bytes` of the -wal again as they are, and syncs them. Nobody writes there meanwhile.
  Status write_wal_again(uint64_t bytes);
  Status sync_database();  // if something was written since the last sync

  uint64_t syncs() const { return syncs_.load(std::memory_order_relaxed); }
  uint64_t bytes_written() const { return bytes_written_.load(std::memory_order_relaxed); }

  // For the files (vfs_file.cc).
  Status sync(File& file);
  void count_written(uint64_t bytes) { bytes_written_.fetch_add(bytes, std::memory_order_relaxed); }
  std::atomic<bool>& database_dirty() { return database_dirty_; }

  // SQLite's locks of the database file itself, which matter only between connections that open and close.
  struct FileLocks {
    Mutex mutex;
    int shared GUARDED_BY(mutex) = 0;
    const void* reserved GUARDED_BY(mutex) = nullptr;  // who holds RESERVED or more
    bool pending GUARDED_BY(mutex) = false;            // no new SHARED
  };
  FileLocks& file_locks() { return file_locks_; }

 private:
  Disk& disk_;
  const std::string directory_;
  const std::string name_;
  Failure failure_;
  FrameTable frames_;
  SharedMemory shared_memory_;
  FileLocks file_locks_;
  std::optional<Bytes> first_page_;
  std::unique_ptr<File> database_;
  std::unique_ptr<File> wal_;
  std::atomic<bool> database_dirty_{false};
  std::atomic<uint64_t> syncs_{0};
  std::atomic<uint64_t> bytes_written_{0};
  sqlite3_vfs methods_{};
};

// What xOpen makes; the rest of the methods (vfs_file.cc).
int open_vfs_file(Vfs& vfs, const char* path, sqlite3_file* file, int flags);
size_t vfs_file_bytes();
// The connection's handle of the database: whose locks of the shared memory it holds.
const SharedMemory::Held& shared_locks_of(sqlite3_file* file);

}  // namespace store
