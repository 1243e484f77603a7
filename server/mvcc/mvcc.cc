#include "mvcc/mvcc.h"

#include <utility>

#include "mvcc/parts.h"

namespace mvcc {
namespace {

class StoredMvcc final : public Mvcc {
 public:
  StoredMvcc(store::Store& store, const Options& options)
      : parts_(store, options.cache_bytes),
        writer_(parts_, store.meta().content_hash),
        compactor_(parts_, options, store.meta().compaction_finished) {}

  Status load(const std::function<void(std::string_view key, int64_t lease)>& on_key) {
    const store::Meta& meta = parts_.store.meta();
    {
      MutexLock lock(parts_.mutex);
      parts_.step = {meta.revision, meta.compacted, meta.applied_index, meta.applied_term};
    }
    TRY_ASSIGN(const std::unique_ptr<store::ReadTxn> view, parts_.store.read());
    TRY(parts_.index.load(*view));
    if (!on_key) return {};
    parts_.index.each({.from = {}, .to = {}, .single = false, .unbounded = true}, [&](const KeyIndex::Entry& entry) {
      if (entry.alive() && entry.lease() != 0) on_key(entry.key(), entry.lease());
      return true;
    });
    return {};
  }

  Published published() const override { return parts_.published(); }
  std::unique_ptr<Reader> reader() override { return make_reader(parts_); }
  int64_t key_count() const override { return parts_.index.live_published(); }

  Writer& begin(store::WriteTxn& txn) override {
    compactor_.accept();
    writer_.begin(txn);
    return writer_;
  }
  void publish(const Published& step) override {
    writer_.publish(step);
    compactor_.accept();
  }
  void rollback() override {
    compactor_.undo();
    writer_.rollback();
  }
  Result<bool> compact_step(store::WriteTxn& txn, int rows_max) override {
    return compactor_.step(txn, parts_.published().compacted, rows_max);
  }
  uint64_t content_hash() const override { return writer_.content_hash(); }

 private:
  Parts parts_;
  StagingWriter writer_;
  Compactor compactor_;
};

}  // namespace

Result<std::unique_ptr<Mvcc>> Mvcc::open(store::Store& store, const Options& options,
                                         const std::function<void(std::string_view key, int64_t lease)>& on_key) {
  auto mvcc = std::make_unique<StoredMvcc>(store, options);
  TRY(mvcc->load(on_key));
  return mvcc;
}

}  // namespace mvcc
