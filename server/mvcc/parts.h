// What the pieces of this folder share; nobody outside includes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread.h"
#include "mvcc/key_index.h"
#include "mvcc/mvcc.h"
#include "mvcc/range.h"
#include "mvcc/value_cache.h"
#include "store/store.h"

namespace mvcc {

struct Parts {
  Parts(store::Store& the_store, uint64_t cache_bytes) : store(the_store), cache(cache_bytes) {}

  store::Store& store;
  KeyIndex index;
  ValueCache cache;

  Published published() const {
    MutexLock lock(mutex);
    return step;
  }
  mutable Mutex mutex;
  Published step GUARDED_BY(mutex);
};

std::unique_ptr<Reader> make_reader(Parts& parts);

class StagingWriter : public Writer {
 public:
  explicit StagingWriter(Parts& parts, uint64_t content_hash) : parts_(parts), content_hash_(content_hash) {}

  void begin(store::WriteTxn& txn);  // a batch upon what is published
  void publish(const Published& step);
  void rollback();
  uint64_t content_hash() const { return content_hash_; }

  void begin_revision() override;
  EventBatch end_revision() override;
  int64_t revision() const override { return writes_ > 0 ? revision_ + 1 : revision_; }
  int64_t writes_in_revision() const override { return writes_; }
  void set_compacted(int64_t revision) override;
  int64_t compacted() const override { return compacted_; }
  Status range(const etcdserverpb::RangeRequest& request, etcdserverpb::RangeResponse* response) override;
  Result<KeyValuePtr> get(std::string_view key) override;
  int64_t count(std::string_view key, std::string_view end, int64_t limit) override;
  void heads(std::string_view key, std::string_view end, const std::function<bool(const Head&)>& visit) override;
  Result<KeyValuePtr> put(std::string_view key, std::string_view value, int64_t lease, bool want_previous) override;
  Result<int64_t> erase(std::string_view key, std::string_view end, std::vector<KeyValuePtr>* previous,
                        const std::function<void(std::string_view key, int64_t lease)>& on_delete) override;

 private:
  Status check_open(int64_t more_writes) const;
  store::RowId next_id() const { return row_id({revision_ + 1, writes_}); }
  Result<KeyValuePtr> load_newest(const KeyIndex::Entry& entry);
  Result<uint64_t> hash_of(const KeyIndex::Entry& entry);

  Parts& parts_;
  store::WriteTxn* txn_ = nullptr;
  int64_t revision_ = 1;  // the last one that is complete
  int64_t compacted_ = -1;
  bool in_revision_ = false;
  int64_t writes_ = 0;  // in the current revision
  std::vector<Event> events_;
  uint64_t content_hash_;  // staged writes included
  uint64_t content_hash_published_ = 0;
};

// One pass for each compaction target, see Mvcc::compact_step. It walks the index in key order and notes what is to go
// in a heap, then deletes in the order of row ids: rows of neighbouring revisions share pages, those of neighbouring
// keys do not (deleting in key order took 10 times longer and wrote a page a row). Ascending ids also make a key's
// tombstone go last: a crash half-way does not bring the key back.
class Compactor {
 public:
  // `finished`: the target whose rows are known to be gone.
  Compactor(Parts& parts, const Options& options, int64_t finished)
      : parts_(parts), options_(options), finished_(finished) {}

  Result<bool> step(store::WriteTxn& txn, int64_t compacted, int rows_max);
  void accept();  // the slice's commit was good: the index forgets
  void undo();    // it was not: the slice will come again

 private:
  struct Later {
    bool operator()(const KeyIndex::Trim& a, const KeyIndex::Trim& b) const { return a.up_to > b.up_to; }
  };
  void collect();

  Parts& parts_;
  const Options options_;
  int64_t finished_;
  std::optional<int64_t> target_;  // of the pass under way
  // Where its walk goes on: at this key, behind this row of it.
  std::string resume_;
  store::RowId above_ = 0;
  bool walked_ = false;                // to the end
  bool walking_ = false;               // until the heap is full; then again once it is empty
  std::vector<KeyIndex::Trim> heap_;   // the lowest row id first
  std::vector<KeyIndex::Trim> slice_;  // deleted in a txn that may still fail
};

}  // namespace mvcc
