#include "mvcc/key_index.h"

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
  const uint64_t hash = KeyTable<Entry>::hash(key);
  ReadLock lock(lock_);
  if (revision < floor_) return false;
  const Entry* entry = table_.find(key, hash);
  *found = entry == nullptr ? Found{} : entry->at(revision);
  return true;
}

KeyIndex::Entry* KeyIndex::find(std::string_view key) const { return table_.find(key, KeyTable<Entry>::hash(key)); }

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
  const uint64_t hash = KeyTable<Entry>::hash(key);
  WriteLock lock(lock_);
  tree_.insert(entry);
  table_.insert(entry, hash);
}

void KeyIndex::remove(Entry* entry) {
  tree_.erase(tree_.find(entry->key()));
  table_.erase(entry, KeyTable<Entry>::hash(entry->key()));
  Entry::destroy(entry);
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

std::vector<Stamp> KeyIndex::droppable(const Entry& entry, int64_t compacted, store::RowId above, size_t max) {
  // All below the newest revision at or below `compacted` go, and that one too if it is a tombstone. Rows of the
  // compacted revision itself stay: a watcher may still begin there. They go with the next compaction.
  std::vector<Stamp> drop;
  const auto stamps = entry.older();
  auto at = std::partition_point(stamps.begin(), stamps.end(), [&](Stamp stamp) { return stamp.id() <= above; });
  for (; at != stamps.end(); ++at) {
    if (at->revision() >= compacted || drop.size() == max) return drop;
    const Stamp next = at + 1 != stamps.end() ? at[1] : entry.head_;
    if (next.revision() > compacted && !at->tombstone()) return drop;
    drop.push_back(*at);
  }
  const Stamp head = entry.head_;
  if (head.tombstone() && head.id() > above && head.revision() < compacted && drop.size() < max) drop.push_back(head);
  return drop;
}

void KeyIndex::forget(std::span<const Trim> trims, int64_t compacted) {
  while (!trims.empty()) {
    const auto slice = trims.first(std::min<size_t>(trims.size(), kSliceKeysMax));
    trims = trims.subspan(slice.size());
    WriteLock lock(lock_);
    floor_ = std::max(floor_, compacted);
    for (const Trim& trim : slice) {
      if (trim.entry->forget(trim.up_to)) remove(trim.entry);
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

size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

void KeyIndex::load_row(const store::RowView& row, std::vector<Sortable>* entries) {
  const Stamp stamp(row.id, row.version == 0);
  const uint64_t hash = KeyTable<Entry>::hash(row.key);
  Entry* entry = table_.find(row.key, hash);
  if (entry != nullptr) {
    entry->push(stamp);
  } else {
    entry = Entry::make(row.key);
    entry->head_ = stamp;
    table_.insert(entry, hash);
    entries->emplace_back(0, entry);
  }
  entry->create_revision_ = row.create_revision;
  entry->version_ = row.version;
  entry->lease_ = row.lease;
}

Status KeyIndex::load(store::ReadTxn& txn) {
  CHECK(tree_.empty());
  // Rows come in the order of revisions; the table finds the earlier rows of a key.
  std::vector<Sortable> entries;
  const Status scanned = txn.scan(0, std::numeric_limits<store::RowId>::max(), true, [&](const store::RowView& row) {
    load_row(row, &entries);
    return true;
  });

  // The tree is built from sorted entries, which takes a third of the time of inserting one by one and leaves its nodes
  // full. The 8 bytes behind the prefix of all keys decide nearly every comparison without touching the entries.
  size_t prefix = entries.empty() ? 0 : entries.front().second->key().size();
  for (const auto& [first, entry] : entries) {
    prefix = std::min(prefix, common_prefix(entry->key(), entries.front().second->key()));
  }
  for (auto& [first, entry] : entries) first = first_bytes(entry->key().substr(prefix));
  std::sort(entries.begin(), entries.end(), [](const Sortable& a, const Sortable& b) {
    return a.first != b.first ? a.first < b.first : a.second->key() < b.second->key();
  });
  for (const auto& [first, entry] : entries) {
    tree_.insert(tree_.end(), entry);
    if (entry->alive()) ++live_;
  }
  live_published_.store(live_, std::memory_order_relaxed);
  return scanned;
}

}  // namespace mvcc
