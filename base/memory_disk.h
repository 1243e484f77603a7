// The simulated disk: files in memory, a power cut that loses and tears what was not synced, and faults on demand. For
// tests of everything that stands on base/disk.h.
//
//   MemoryDisk disk;
//   run(disk);                          // how many changes does the work make?
//   for (uint64_t n = 0; n < disk.changes(); ++n) {
//     MemoryDisk other;
//     other.cut_power_at(n);            // the n-th change (from 0) is under way when the power goes
//     run(other);                       // fails somewhere
//     other.crash(random);              // power is back; files as the medium has them
//     recover(other);
//   }
//
// The strictest disk that POSIX allows: without sync_directory() a new name may be gone although its file was synced;
// unsynced writes reach the medium in any selection, whole, in single sectors, cut at any byte, or as mere size.
//
// Any thread; one mutex, never held while the hook runs. Outlives its files and locks.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/memory_disk_state.h"
#include "base/thread.h"
#include "base/world.h"

class MemoryDisk : public Disk {
 public:
  enum class Operation {
    kOpen,
    kRead,
    kWrite,
    kSync,
    kTruncate,
    kAllocate,
    kSize,
    kRemove,
    kRename,
    kCreateDirectory,
    kRemoveDirectory,
    kSyncDirectory,
    kList,
    kExists,
    kLock,
    kFreeBytes,
  };
  static constexpr size_t kOperations = static_cast<size_t>(Operation::kFreeBytes) + 1;
  using Loss = memory_disk::Loss;

  struct Call {
    Operation operation;
    std::string path;
    uint64_t offset = 0;  // of reads and writes
    uint64_t bytes = 0;   // of reads and writes; the size for truncate and allocate
    bool change = false;  // may change the medium: everything but reads, sizes, lists, locks and opening what exists
  };

  // Makes the nth (1: the next) call of this kind on a path that contains `path` fail, once or from then on.
  struct Fault {
    Operation operation;
    uint64_t nth = 1;
    Code code = Code::kDataLoss;
    std::string path = {};       // empty: any
    uint64_t partial_bytes = 0;  // of a failing write: so much of it is done nevertheless
    bool repeat = false;         // all later ones fail too
    bool loses_unsynced = true;  // a failed sync: the unsynced writes never reach the medium, whatever is synced later
  };

  MemoryDisk() = default;

  void inject(Fault fault);
  void clear_faults();
  // Of all files together. A write beyond it is done in part and fails with kResourceExhausted.
  void set_capacity(uint64_t bytes);
  // Runs before each call is done (and before it is counted), without the mutex: may clone(), cut_power(), inject().
  void set_hook(std::function<void(const Call&)> hook);

  uint64_t calls() const;
  uint64_t calls(Operation operation) const;
  uint64_t changes() const;  // calls with Call::change

  // The change with this number (from 0, counted from the disk's beginning) is under way when the power goes: it fails,
  // crash() decides what of it happened, and everything after it fails with kDataLoss and does nothing.
  void cut_power_at(uint64_t change);
  void cut_power();
  bool power_cut() const;
  // The machine comes back: unsynced changes are kept, dropped or torn; open files and locks of before are void (their
  // calls fail); faults and the cut are cleared. Counting goes on.
  void crash(Random& random, Loss loss = Loss::kRandom);
  // Only the process died: all that was written is there (and still unsynced), open files and locks are void.
  void restart();
  // The same content, synced and unsynced; without open files, locks, faults, hook and counters.
  std::unique_ptr<MemoryDisk> clone() const;

  // Past all faults and counters. put() makes folders as needed and leaves everything synced; flip_bit() damages the
  // medium as well as what is read from now on.
  Result<Bytes> content(const std::string& path) const;
  void put(const std::string& path, BytesView content);
  void flip_bit(const std::string& path, uint64_t bit);

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Status remove(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status create_directory(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override;
  Result<uint64_t> free_bytes(const std::string& path) override;

 private:
  class MemoryFile;
  class MemoryLock;
  // Runs the hook. Before the mutex is taken.
  void announce(const Call& call) EXCLUDES(mutex_);
  // Counts the call; the error of a fault or of the missing power. `in_flight` is set when this very call is the one
  // that the power cut hits: it is then recorded as an unsynced change and fails with the answer.
  struct Verdict {
    Status status;
    uint64_t partial_bytes = 0;
    bool in_flight = false;
    bool loses_unsynced = false;
  };
  Verdict admit(const Call& call) REQUIRES(mutex_);
  uint64_t room() const REQUIRES(mutex_);
  static tl::unexpected<Error> failed(const Call& call, Code code, const char* text);
  static tl::unexpected<Error> not_found(const Call& call);
  static constexpr const char* kNoSpace = "No space left on device";

  mutable Mutex mutex_;
  memory_disk::State state_ GUARDED_BY(mutex_);
  std::vector<Fault> faults_ GUARDED_BY(mutex_);
  std::set<std::string> locked_ GUARDED_BY(mutex_);
  std::array<uint64_t, kOperations> calls_ GUARDED_BY(mutex_) = {};
  uint64_t changes_ GUARDED_BY(mutex_) = 0;
  uint64_t cut_at_ GUARDED_BY(mutex_) = std::numeric_limits<uint64_t>::max();
  bool power_cut_ GUARDED_BY(mutex_) = false;
  uint64_t epoch_ GUARDED_BY(mutex_) = 0;  // files and locks of an earlier one are void
  uint64_t capacity_ GUARDED_BY(mutex_) = 1ULL << 50;
  Mutex hook_mutex_;
  std::shared_ptr<const std::function<void(const Call&)>> hook_ GUARDED_BY(hook_mutex_);
};

// Deterministic randomness for tests and the simulator (SplitMix64): the same seed, the same numbers.
class SeededRandom : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  uint64_t next() override {
    uint64_t mixed = (state_ += 0x9e3779b97f4a7c15ULL);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    return mixed ^ (mixed >> 31);
  }
  uint64_t below(uint64_t limit) { return next() % limit; }

 private:
  uint64_t state_;
};
