// The key index: every key with the row ids of its revisions that are not compacted, in key order. Of the newest
// revision it also keeps what compares, puts and keys-only reads need, so that those read no row.
//
// Threads: the apply thread is the only one that changes it, each change under the write lock; so the apply thread
// itself reads without a lock. Other threads read under the read lock in slices of kSliceKeysMax keys. Revisions above
// the published one may be there (staged): readers give the revision that they read at and do not see beyond it.
//
// Memory: 52 bytes and the key in one block a key, about 10 in the tree; one more block for keys with several
// revisions.
#pragma once

// absl's headers define some of the same annotation macros (to the same meaning), which is fine in this order only.
// clang-format off
#include "base/thread.h"
#include <absl/container/btree_set.h>
// clang-format on

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "mvcc/key_table.h"
#include "mvcc/revision.h"
#include "store/store.h"

namespace mvcc {

inline constexpr int kSliceKeysMax = 512;  // keys seen under one hold of the lock (some 20 us)

// [from, to) as requests say it. Views: not to outlive the request.
struct Interval {
  std::string_view from;
  std::string_view to;
  bool single = false;     // just the key `from`
  bool unbounded = false;  // all keys >= from

  static Interval of(std::string_view key, std::string_view range_end) {
    if (range_end.empty()) return {key, {}, true, false};
    if (range_end == std::string_view("\0", 1)) return {key, {}, false, true};
    return {key, range_end, false, false};
  }
  bool reaches(std::string_view key) const { return single ? key == from : unbounded || key < to; }
};

// A row id with a mark for tombstones in one word that orders as row ids do.
class Stamp {
 public:
  Stamp() = default;
  Stamp(store::RowId id, bool tombstone) : bits_(static_cast<uint64_t>(id) << 1 | (tombstone ? 1 : 0)) {}
  store::RowId id() const { return static_cast<store::RowId>(bits_ >> 1); }
  bool tombstone() const { return (bits_ & 1) != 0; }
  int64_t revision() const { return revision_of(id()).main; }

 private:
  uint64_t bits_ = 0;
};

// A key as it was at some revision.
struct Found {
  store::RowId id = 0;  // 0: absent then
  bool newest = false;  // only then the rest is known
  int64_t create_revision = 0;
  int64_t version = 0;
  int64_t lease = 0;
};

class KeyIndex {
 public:
  class Entry {
   public:
    std::string_view key() const { return {reinterpret_cast<const char*>(this) + kKeyOffset, key_size_}; }
    bool alive() const { return !head_.tombstone(); }  // now, staged writes included
    Stamp head() const { return head_; }
    int64_t create_revision() const { return create_revision_; }
    int64_t version() const { return version_; }
    int64_t lease() const { return lease_; }
    // Cheap: false says that compaction at `compacted` drops nothing of this entry.
    bool may_drop(int64_t compacted) const {
      return older_ != nullptr || (head_.tombstone() && head_.revision() < compacted);
    }
    uint64_t hash() const { return hash_; }  // content_hash_of() the newest; 0: not known (not written since the start)

   private:
    friend class KeyIndex;
    struct History {
      std::vector<Stamp> stamps;  // ascending, all older than the head
      size_t first = 0;           // those before it are forgotten; cut off now and then, so that forgetting stays cheap
    };
    static constexpr size_t kKeyOffset = 52;  // behind key_size_: the padding at the end is used

    Stamp head_;
    int64_t create_revision_ = 0;
    int64_t version_ = 0;
    int64_t lease_ = 0;
    uint64_t hash_ = 0;
    std::unique_ptr<History> older_;
    uint32_t key_size_ = 0;

    Entry() = default;
    static Entry* make(std::string_view key);
    static void destroy(Entry* entry);
    std::span<const Stamp> older() const;
    void push(Stamp stamp);           // the head becomes history
    void pop();                       // the reverse
    bool forget(store::RowId up_to);  // all revisions up to this one; true: nothing is left
    Found at(int64_t revision) const;
  };

  KeyIndex() = default;
  ~KeyIndex();
  KeyIndex(const KeyIndex&) = delete;
  KeyIndex& operator=(const KeyIndex&) = delete;

  // Fills an empty index, which nobody else knows yet, from all rows.
  Status load(store::ReadTxn& txn) NO_THREAD_SAFETY_ANALYSIS;

  // --- any thread; false: `revision` is below what compaction left (see forget)
  bool find_at(std::string_view key, int64_t revision, Found* found) const EXCLUDES(lock_);
  // One slice of the keys alive at `revision`, in order: visit(key, found). `resume` is the first key of the next
  // slice, empty at the start; `done` tells the end.
  template <class Visit>
  bool walk(const Interval& interval, int64_t revision, std::string* resume, bool* done, Visit&& visit) const
      EXCLUDES(lock_);
  int64_t live_published() const { return live_published_.load(std::memory_order_relaxed); }

  // --- apply thread
  Entry* find(std::string_view key) const NO_THREAD_SAFETY_ANALYSIS;
  // Entries of the interval, dead ones included, until visit(entry) returns false. No change of the index meanwhile.
  template <class Visit>
  void each(const Interval& interval, Visit&& visit) const NO_THREAD_SAFETY_ANALYSIS;

  struct Newest {
    int64_t create_revision = 0;
    int64_t version = 0;
    int64_t lease = 0;
    uint64_t hash = 0;
  };
  // `entry`: what find(key) said.
  void stage_put(std::string_view key, Entry* entry, store::RowId id, const Newest& newest) EXCLUDES(lock_);
  void stage_erase(Entry& entry, store::RowId id) EXCLUDES(lock_);
  // Ends the batch: keeps what is staged, or takes it out again, newest first. Each staged write is told with the row
  // that it replaced (0: none) or with its own.
  template <class Visit>
  void accept(Visit&& replaced) EXCLUDES(lock_);
  template <class Visit>
  void undo(Visit&& staged) EXCLUDES(lock_);

  // Compaction at C drops the revisions of a key up to `up_to` (all below the one that is visible at C).
  struct Trim {
    Entry* entry;
    store::RowId up_to;
  };
  // The first `max` with ids above `above` of what compaction at `compacted` drops of this entry, oldest first.
  static std::vector<Stamp> droppable(const Entry& entry, int64_t compacted, store::RowId above, size_t max);
  // From here on reads below `compacted` find the revision forgotten.
  void forget(std::span<const Trim> trims, int64_t compacted) EXCLUDES(lock_);

 private:
  static constexpr size_t kUndoKept = 16384;  // capacity that a batch leaves to the next one

  struct Less {
    using is_transparent = void;
    bool operator()(const Entry* a, const Entry* b) const { return a->key() < b->key(); }
    bool operator()(const Entry* a, std::string_view b) const { return a->key() < b; }
    bool operator()(std::string_view a, const Entry* b) const { return a < b->key(); }
  };
  using Tree = absl::btree_set<Entry*, Less>;
  // How an entry was before a staged write.
  struct Undo {
    Entry* entry;
    Stamp head;
    Newest newest;
    bool fresh;  // there was no entry
  };

  // An entry with the first bytes of its key that differ from others', to sort by.
  using Sortable = std::pair<uint64_t, Entry*>;
  void load_row(const store::RowView& row, std::vector<Sortable>* entries) NO_THREAD_SAFETY_ANALYSIS;
  void stage(Entry* entry, Stamp stamp, const Newest& newest) REQUIRES(lock_);
  void remove(Entry* entry) REQUIRES(lock_);

  mutable RwLock lock_;
  Tree tree_ GUARDED_BY(lock_);              // for ranges
  KeyTable<Entry> table_ GUARDED_BY(lock_);  // for single keys
  int64_t floor_ GUARDED_BY(lock_) = -1;     // reads below it are refused
  std::vector<Undo> undo_;                   // apply thread
  int64_t live_ = 0;                         // apply thread; staged included
  std::atomic<int64_t> live_published_ = 0;
};

template <class Visit>
bool KeyIndex::walk(const Interval& interval, int64_t revision, std::string* resume, bool* done, Visit&& visit) const {
  ReadLock lock(lock_);
  if (revision < floor_) return false;
  *done = true;
  auto at = tree_.lower_bound(resume->empty() ? interval.from : std::string_view(*resume));
  for (int seen = 0; at != tree_.end() && interval.reaches((*at)->key()); ++at, ++seen) {
    if (seen == kSliceKeysMax) {
      resume->assign((*at)->key());
      *done = false;
      break;
    }
    if (const Found found = (*at)->at(revision); found.id != 0) visit((*at)->key(), found);
  }
  return true;
}

template <class Visit>
void KeyIndex::each(const Interval& interval, Visit&& visit) const {
  for (auto at = tree_.lower_bound(interval.from); at != tree_.end() && interval.reaches((*at)->key()); ++at) {
    if (!visit(**at)) return;
  }
}

template <class Visit>
void KeyIndex::accept(Visit&& replaced) {
  for (const Undo& undo : undo_) replaced(undo.fresh ? store::RowId{0} : undo.head.id());
  undo_.clear();
  if (undo_.capacity() > kUndoKept) undo_.shrink_to_fit();
  live_published_.store(live_, std::memory_order_relaxed);
}

template <class Visit>
void KeyIndex::undo(Visit&& staged) {
  while (!undo_.empty()) {
    WriteLock lock(lock_);
    for (int slice = 0; slice < kSliceKeysMax && !undo_.empty(); ++slice) {
      const Undo undo = undo_.back();
      undo_.pop_back();
      Entry& entry = *undo.entry;
      staged(entry.head().id());
      live_ += (!undo.fresh && !undo.head.tombstone() ? 1 : 0) - (entry.alive() ? 1 : 0);
      if (undo.fresh) {
        remove(&entry);
        continue;
      }
      entry.pop();
      CHECK(entry.head().id() == undo.head.id(), entry.head().id(), undo.head.id());
      entry.create_revision_ = undo.newest.create_revision;
      entry.version_ = undo.newest.version;
      entry.lease_ = undo.newest.lease;
      entry.hash_ = undo.newest.hash;
    }
  }
}

}  // namespace mvcc
