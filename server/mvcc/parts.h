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

// One pass over the index for each compaction target, in slices; see Mvcc::compact_step.
class Compactor {
 public:
  // `finished`: the target whose rows are known to be gone.
  Compactor(Parts& parts, int64_t finished) : parts_(parts), finished_(finished) {}

  Result<bool> step(store::WriteTxn& txn, int64_t compacted, int rows_max);
  void accept();  // the slice's commit was good: the index forgets
  void undo();    // it was not: the slice will come again

 private:
  Parts& parts_;
  int64_t finished_;
  std::optional<int64_t> target_;  // of the pass under way
  std::string resume_;             // next key of the pass
  struct Slice {
    int64_t target;
    std::vector<KeyIndex::Trim> trims;
    std::string began_at;
    bool ends_pass = false;
  };
  std::optional<Slice> slice_;  // deleted in a txn that may still fail
};

}  // namespace mvcc
