// Apply thread only, so the index is read without its lock. Order of a write: checks, row into the transaction, then
// the index: what fails before the last step leaves index, hash and events as they were.
#include <utility>

#include "mvcc/content_hash.h"
#include "mvcc/parts.h"

namespace mvcc {
namespace {

// The transaction sees its own writes and nobody else deletes: a missing row is damage.
class TxnRows final : public Rows {
 public:
  explicit TxnRows(store::WriteTxn& txn) : txn_(txn) {}
  Result<bool> load(int64_t, std::span<const store::RowId> ids, bool,
                    const std::function<void(size_t, const store::RowView&)>& visit) override {
    for (size_t i = 0; i < ids.size(); ++i) {
      TRY_ASSIGN(const std::optional<store::Row> row, txn_.row(ids[i]));
      if (!row) {
        return fail(Code::kDataLoss, "mvcc: row " + std::to_string(ids[i]) + " of the key index is not in the store");
      }
      visit(i, {row->id, row->key, row->create_revision, row->version, row->lease, row->value});
    }
    return true;
  }

 private:
  store::WriteTxn& txn_;
};

Found newest(const KeyIndex::Entry& entry) {
  return {entry.head().id(), true, entry.create_revision(), entry.version(), entry.lease()};
}

}  // namespace

void StagingWriter::begin(store::WriteTxn& txn) {
  CHECK(!in_revision_);
  const Published step = parts_.published();
  txn_ = &txn;
  revision_ = step.revision;
  compacted_ = step.compacted;
  content_hash_published_ = content_hash_;
}

void StagingWriter::publish(const Published& step) {
  CHECK(!in_revision_);
  CHECK(txn_ == nullptr || step.revision == revision_, step.revision, revision_);
  CHECK(step.compacted >= compacted_, step.compacted, compacted_);
  {
    MutexLock lock(parts_.mutex);
    CHECK(step.revision >= parts_.step.revision, step.revision, parts_.step.revision);
    parts_.step = step;
  }
  // Readers of the former step may still want the replaced rows; they find them in the store.
  parts_.index.accept([&](store::RowId replaced) {
    if (replaced != 0) parts_.cache.erase(replaced);
  });
  revision_ = step.revision;
  compacted_ = step.compacted;
  content_hash_published_ = content_hash_;
  txn_ = nullptr;
}

void StagingWriter::rollback() {
  // The row ids will be given again, to other content.
  parts_.index.undo([&](store::RowId staged) { parts_.cache.erase(staged); });
  if (txn_ != nullptr) content_hash_ = content_hash_published_;
  const Published step = parts_.published();
  revision_ = step.revision;
  compacted_ = step.compacted;
  in_revision_ = false;
  writes_ = 0;
  events_.clear();
  txn_ = nullptr;
}

void StagingWriter::begin_revision() {
  CHECK(txn_ != nullptr);
  CHECK(!in_revision_);
  CHECK(revision_ < kMainMax, revision_);
  in_revision_ = true;
  writes_ = 0;
}

EventBatch StagingWriter::end_revision() {
  CHECK(in_revision_);
  in_revision_ = false;
  if (writes_ == 0) return {.revision = revision_, .events = {}};
  ++revision_;
  writes_ = 0;
  return {.revision = revision_, .events = std::exchange(events_, {})};
}

void StagingWriter::set_compacted(int64_t revision) {
  CHECK(txn_ != nullptr);
  CHECK(revision > compacted_ && revision <= this->revision(), revision, compacted_, this->revision());
  compacted_ = revision;
}

Status StagingWriter::check_open(int64_t more_writes) const {
  CHECK(in_revision_);
  if (writes_ + more_writes > kSubMax + 1) return fail(Code::kInvalidArgument, kErrorTooManyOperations);
  return {};
}

Status StagingWriter::range(const etcdserverpb::RangeRequest& request, etcdserverpb::RangeResponse* response) {
  CHECK(txn_ != nullptr);
  if (request.revision() > revision()) return fail(Code::kOutOfRange, kErrorFutureRevision);
  if (request.revision() > 0 && request.revision() < compacted_) return fail(Code::kOutOfRange, kErrorCompacted);
  TxnRows rows(*txn_);
  const int64_t at = request.revision() > 0 ? request.revision() : revision();
  TRY_ASSIGN(const bool there, execute_range({parts_.index, parts_.cache, rows}, at, request, response));
  CHECK(there, at, compacted_);
  return {};
}

Result<KeyValuePtr> StagingWriter::load_newest(const KeyIndex::Entry& entry) {
  TxnRows rows(*txn_);
  KeyValuePtr kv;
  TRY(load_value({parts_.index, parts_.cache, rows}, revision(), newest(entry), &kv));
  return kv;
}

Result<KeyValuePtr> StagingWriter::get(std::string_view key) {
  CHECK(txn_ != nullptr);
  const KeyIndex::Entry* entry = parts_.index.find(key);
  if (entry == nullptr || !entry->alive()) return KeyValuePtr();
  return load_newest(*entry);
}

int64_t StagingWriter::count(std::string_view key, std::string_view end, int64_t limit) {
  int64_t count = 0;
  parts_.index.each(Interval::of(key, end), [&](const KeyIndex::Entry& entry) {
    if (entry.alive()) ++count;
    return count <= limit;
  });
  return count;
}

void StagingWriter::heads(std::string_view key, std::string_view end, const std::function<bool(const Head&)>& visit) {
  parts_.index.each(Interval::of(key, end), [&](const KeyIndex::Entry& entry) {
    if (!entry.alive()) return true;
    return visit({entry.key(), entry.create_revision(), entry.head().revision(), entry.version(), entry.lease()});
  });
}

// Kept in the index since the key was last written; after a restart its value must be read once.
Result<uint64_t> StagingWriter::hash_of(const KeyIndex::Entry& entry) {
  if (entry.hash() != 0) return entry.hash();
  TRY_ASSIGN(const KeyValuePtr kv, load_newest(entry));
  return content_hash_of(*kv);
}

Result<KeyValuePtr> StagingWriter::put(std::string_view key, std::string_view value, int64_t lease,
                                       bool want_previous) {
  TRY(check_open(1));
  KeyIndex::Entry* entry = parts_.index.find(key);
  const bool lives = entry != nullptr && entry->alive();
  KeyValuePtr previous;
  uint64_t previous_hash = 0;
  if (lives) {
    if (want_previous) {
      TRY_ASSIGN(previous, load_newest(*entry));
    }
    TRY_ASSIGN(previous_hash, hash_of(*entry));
  }

  const store::RowId id = next_id();
  const int64_t main = revision_ + 1;
  const store::RowView row{.id = id,
                           .key = key,
                           .create_revision = lives ? entry->create_revision() : main,
                           .version = lives ? entry->version() + 1 : 1,
                           .lease = lease,
                           .value = value};
  TRY(txn_->put_row(row));

  const uint64_t hash = content_hash_of(key, value, row.create_revision, main, row.version, lease);
  KeyValuePtr kv = make_key_value(row);
  parts_.index.stage_put(kv->key, entry, id, {row.create_revision, row.version, lease, hash});
  parts_.cache.put(id, kv, true);
  content_hash_ += hash - previous_hash;
  events_.push_back({false, std::move(kv)});
  ++writes_;
  return previous;
}

Result<int64_t> StagingWriter::erase(std::string_view key, std::string_view end, std::vector<KeyValuePtr>* previous,
                                     const std::function<void(std::string_view key, int64_t lease)>& on_delete) {
  TRY(check_open(0));
  std::vector<KeyIndex::Entry*> entries;  // they stay where they are: only forget() and undo() remove any
  parts_.index.each(Interval::of(key, end), [&](KeyIndex::Entry& entry) {
    if (entry.alive()) entries.push_back(&entry);
    return entries.size() <= static_cast<size_t>(kSubMax) + 1;
  });
  TRY(check_open(static_cast<int64_t>(entries.size())));
  if (previous != nullptr) {
    for (const KeyIndex::Entry* entry : entries) {
      TRY_ASSIGN(KeyValuePtr kv, load_newest(*entry));
      previous->push_back(std::move(kv));
    }
  }

  for (KeyIndex::Entry* entry : entries) {
    TRY_ASSIGN(const uint64_t hash, hash_of(*entry));
    const store::RowId id = next_id();
    store::RowView tombstone;
    tombstone.id = id;
    tombstone.key = entry->key();
    TRY(txn_->put_row(tombstone));
    if (on_delete) on_delete(entry->key(), entry->lease());
    auto kv = std::make_shared<KeyValue>();
    kv->key = entry->key();
    kv->mod_revision = revision_ + 1;
    parts_.index.stage_erase(*entry, id);
    content_hash_ -= hash;
    events_.push_back({true, std::move(kv)});
    ++writes_;
  }
  return static_cast<int64_t>(entries.size());
}

}  // namespace mvcc
