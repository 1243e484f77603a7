// What SQLite's connections share beside the files: the index of the -wal and its locks. Memory of this process instead
// of a -shm file, because one process owns the data folder; nothing of it outlives the process. Any thread. The layout
// of the index is documented (https://sqlite.org/walformat.html, 2).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread.h"

namespace store {

class SharedMemory {
 public:
  static constexpr int kLocks = 8;
  static constexpr int kReadLockFirst = 3;  // lock of read mark 0; five of them
  static constexpr int kReadMarks = 5;
  static constexpr size_t kRegionBytes = 32768;

  // The locks that one connection holds, as bits.
  struct Held {
    uint8_t shared = 0;
    uint8_t exclusive = 0;
  };

  // Null: not there and not to be made.
  void* map(size_t region, bool extend) EXCLUDES(mutex_);
  bool lock(int first, int count, bool exclusive, Held& held) EXCLUDES(mutex_);
  void unlock(int first, int count, Held& held) EXCLUDES(mutex_);
  void barrier() EXCLUDES(mutex_);
  // Returns when some lock was let go, or after `limit`.
  void wait_for_unlock(std::chrono::microseconds limit) EXCLUDES(mutex_);
  // SQLite's back-off when it loses a race for a lock: lasts its whole time, because the number of attempts is limited.
  void back_off(std::chrono::microseconds time) EXCLUDES(mutex_);
  // True once nobody but `except` holds one of the read locks `first`..`last` shared.
  bool wait_until_unread(int first, int last, const Held& except, std::chrono::milliseconds limit) EXCLUDES(mutex_);

  struct Index {
    uint32_t frames = 0;  // up to the last commit
    uint32_t pages = 0;   // of the database, as of the last commit
    uint32_t salt1 = 0;
    uint32_t salt2 = 0;
    uint32_t copied = 0;  // frames that are in the database file
  };
  // The caller keeps commits away.
  Index index() const EXCLUDES(mutex_);
  // The frame that a read lock protects; the caller holds that lock.
  uint32_t read_mark(int mark) const EXCLUDES(mutex_);

 private:
  bool conflicts(int first, int count, bool exclusive, const Held& held) const REQUIRES(mutex_);
  mutable Mutex mutex_;
  Condition released_;
  Condition never_;
  int waiting_ GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<char[]>> regions_ GUARDED_BY(mutex_);
  std::array<int, kLocks> shared_ GUARDED_BY(mutex_) = {};
  std::array<bool, kLocks> exclusive_ GUARDED_BY(mutex_) = {};
};

}  // namespace store
