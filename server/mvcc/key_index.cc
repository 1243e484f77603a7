#include "mvcc/key_index.h"

#include <absl/container/flat_hash_set.h>

#include <cstring>
#include <limits>
#include <new>

#include "mvcc/content_hash.h"

namespace mvcc {

KeyIndex::Entry* KeyIndex::Entry::make(std::string_view key) {
  static_assert(sizeof(Entry) == 56 && alignof(Entry) == 8);
  static_assert(offsetof(Entry, key_size_) + sizeof(key_size_) == kKeyOffset);
  CHECK(key.size() <= std::numeric_limits<uint32_t>::max(), key.size());
  void* block = ::operator new(std::max(sizeof(Entry), kKeyOffset + key.size()));
  Entry* entry = new (block) Entry();
  entry->key_size_ = static_cast<uint32_t>(key.size());
  std::memcpy(static_cast<char*>(block) + kKeyOffset, key.data(), key.size());
  return entry;
}

void KeyIndex::Entry::destroy(Entry* entry) {
  entry->~Entry();
  ::operator delete(entry);
}

std::span<const Stamp> KeyIndex::Entry::older() const {
  if (!older_) return {};
  return std::span<const Stamp>(older_->stamps).subspan(older_->first);
}

void KeyIndex::Entry::push(Stamp stamp) {
  CHECK(stamp.id() > head_.id(), stamp.id(), head_.id());
  if (!older_) older_ = std::make_unique<History>();
  older_->stamps.push_back(head_);
  head_ = stamp;
}

void KeyIndex::Entry::pop() {
  CHECK(!older().empty(), key());
  head_ = older_->stamps.back();
  older_->stamps.pop_back();
  if (older().empty()) older_.reset();
}

bool KeyIndex::Entry::forget(store::RowId up_to) {
  if (older_) {
    std::vector<Stamp>& stamps = older_->stamps;
    size_t& first = older_->first;
    while (first < stamps.size() && stamps[first].id() <= up_to) ++first;
    if (first == stamps.size()) {
      older_.reset();
    } else if (first > stamps.size() / 2) {
      stamps.erase(stamps.begin(), stamps.begin() + static_cast<ptrdiff_t>(first));
      stamps.shrink_to_fit();
      first = 0;
    }
  }
  return !older_ && head_.id() <= up_to;
}

Found KeyIndex::Entry::at(int64_t revision) const {
  if (head_.revision() <= revision) {
    if (head_.tombstone()) return {};
    return {head_.id(), true, create_revision_, version_, lease_};
  }
  const auto stamps = older();
  const auto after =
      std::partition_point(stamps.begin(), stamps.end(), [&](Stamp stamp) { return stamp.revision() <= revision; });
  if (after == stamps.begin() || std::prev(after)->tombstone()) return {};
  return {.id = std::prev(after)->id()};
}

KeyIndex::~KeyIndex() {
  WriteLock lock(lock_);
  for (Entry* entry : tree_) Entry::destroy(entry);
}

bool KeyIndex::find_at(std::string_view key, int64_t revision, Found* found) const {
  ReadLock lock(lock_);
  if (revision < floor_) return false;
  const auto at = tree_.find(key);
  *found = at == tree_.end() ? Found{} : (*at)->at(revision);
  return true;
}

KeyIndex::Entry* KeyIndex::find(std::string_view key) const {
  const auto at = tree_.find(key);
  return at == tree_.end() ? nullptr : *at;
}

void KeyIndex::stage_put(std::string_view key, Entry* entry, store::RowId id, const Newest& newest) {
  if (entry != nullptr) {
    WriteLock lock(lock_);
    stage(entry, Stamp(id, false), newest);
    return;
  }
  entry = Entry::make(key);
  entry->head_ = Stamp(id, false);
  entry->create_revision_ = newest.create_revision;
  entry->version_ = newest.version;
  entry->lease_ = newest.lease;
  entry->hash_ = newest.hash;
  undo_.push_back({entry, {}, {}, true});
  ++live_;
  WriteLock lock(lock_);
  tree_.insert(entry);
}

void KeyIndex::stage_erase(Entry& entry, store::RowId id) {
  CHECK(entry.alive(), entry.key());
  WriteLock lock(lock_);
  stage(&entry, Stamp(id, true), {});
}

void KeyIndex::stage(Entry* entry, Stamp stamp, const Newest& newest) {
  undo_.push_back(
      {entry, entry->head_, {entry->create_revision_, entry->version_, entry->lease_, entry->hash_}, false});
  live_ += (stamp.tombstone() ? 0 : 1) - (entry->alive() ? 1 : 0);
  entry->push(stamp);
  entry->create_revision_ = newest.create_revision;
  entry->version_ = newest.version;
  entry->lease_ = newest.lease;
  entry->hash_ = newest.hash;
}

std::vector<Stamp> KeyIndex::droppable(const Entry& entry, int64_t compacted, size_t max) {
  // All below the newest revision at or below `compacted` go, and that one too if it is a tombstone. Rows of the
  // compacted revision itself stay: a watcher may still begin there. They go with the next compaction. The tombstone
  // goes last: a crash half-way must not bring the key to life.
  std::vector<Stamp> drop;
  const auto stamps = entry.older();
  for (size_t i = 0; i < stamps.size(); ++i) {
    if (stamps[i].revision() >= compacted || drop.size() == max) return drop;
    const Stamp next = i + 1 < stamps.size() ? stamps[i + 1] : entry.head_;
    if (next.revision() > compacted && !stamps[i].tombstone()) return drop;
    drop.push_back(stamps[i]);
  }
  if (entry.head_.tombstone() && entry.head_.revision() < compacted && drop.size() < max) drop.push_back(entry.head_);
  return drop;
}

void KeyIndex::forget(std::span<const Trim> trims, int64_t compacted) {
  while (!trims.empty()) {
    const auto slice = trims.first(std::min<size_t>(trims.size(), kSliceKeysMax));
    trims = trims.subspan(slice.size());
    WriteLock lock(lock_);
    floor_ = std::max(floor_, compacted);
    for (const Trim& trim : slice) {
      if (!trim.entry->forget(trim.up_to)) continue;
      tree_.erase(tree_.find(trim.entry->key()));
      Entry::destroy(trim.entry);
    }
  }
}

namespace {

// Big-endian, so that it compares as the bytes do.
uint64_t first_bytes(std::string_view bytes) {
  char raw[8] = {};
  std::memcpy(raw, bytes.data(), std::min<size_t>(bytes.size(), 8));
  uint64_t value;
  std::memcpy(&value, raw, sizeof value);
  return __builtin_bswap64(value);
}

}  // namespace

Status KeyIndex::load(store::ReadTxn& txn) {
  // Rows come in the order of revisions. A hash set finds the earlier rows of a key; the tree is then built from sorted
  // entries, which takes a third of the time of inserting one by one and leaves its nodes full.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return hash_bytes(key, 0); }
    size_t operator()(const Entry* entry) const { return hash_bytes(entry->key(), 0); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Entry* a, const Entry* b) const { return a == b; }
    bool operator()(const Entry* a, std::string_view b) const { return a->key() == b; }
    bool operator()(std::string_view a, const Entry* b) const { return a == b->key(); }
  };
  absl::flat_hash_set<Entry*, Hash, Equal> entries;
  std::string prefix;  // of all keys
  const Status scanned = txn.scan(0, std::numeric_limits<store::RowId>::max(), true, [&](const store::RowView& row) {
    const Stamp stamp(row.id, row.version == 0);
    Entry* entry = nullptr;
    if (const auto known = entries.find(row.key); known != entries.end()) {
      entry = *known;
      entry->push(stamp);
    } else {
      if (entries.empty()) prefix = row.key;
      size_t same = 0;
      while (same < prefix.size() && same < row.key.size() && prefix[same] == row.key[same]) ++same;
      prefix.resize(same);
      entry = Entry::make(row.key);
      entry->head_ = stamp;
      entries.insert(entry);
    }
    entry->create_revision_ = row.create_revision;
    entry->version_ = row.version;
    entry->lease_ = row.lease;
    return true;
  });

  // The 8 bytes behind the common prefix decide nearly every comparison without touching the entry.
  std::vector<std::pair<uint64_t, Entry*>> sorted;
  sorted.reserve(entries.size());
  for (Entry* entry : entries) sorted.emplace_back(first_bytes(entry->key().substr(prefix.size())), entry);
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->key() < b.second->key();
  });
  WriteLock lock(lock_);
  CHECK(tree_.empty());
  for (const auto& [first, entry] : sorted) {
    tree_.insert(tree_.end(), entry);
    if (entry->alive()) ++live_;
  }
  live_published_.store(live_, std::memory_order_relaxed);
  return scanned;
}

}  // namespace mvcc
