// The multi-version key space over `store`: key index and value cache in memory, history in SQLite.
//
// Threads: one Writer on the apply thread; Reader calls from any thread. What a Writer staged is invisible to Readers
// until publish(). The index is shared under a writer-preferring lock that is held for a bounded number of nodes and
// never across a disk call; a range is read in slices, which is consistent because the index keeps every revision that
// is not compacted.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "api/rpc.pb.h"
#include "base/result.h"
#include "mvcc/event.h"
#include "mvcc/revision.h"
#include "store/store.h"

namespace mvcc {

// One consistent step of the whole member, changed only by publish().
struct Published {
  int64_t revision = 1;
  int64_t compacted = -1;
  uint64_t applied_index = 0;
  uint64_t applied_term = 0;
};

class KeyIndex;    // key -> its revisions (mvcc/key_index.h)
class ValueCache;  // latest values, bounded (mvcc/value_cache.h)

struct Options {
  uint64_t cache_bytes = 32ULL << 20;  // of the value cache
  // Compaction: what one step looks at and notes for deletion (some 300 us), and what is noted at a time (16 bytes
  // each).
  int compaction_visited_keys_max = 4096;
  size_t compaction_noted_rows_max = 4096;
  size_t compaction_heap_rows_max = 500'000;
};

// Texts that clients match on.
inline constexpr const char* kErrorCompacted = "etcdserver: mvcc: required revision has been compacted";
inline constexpr const char* kErrorFutureRevision = "etcdserver: mvcc: required revision is a future revision";
inline constexpr const char* kErrorTooManyOperations = "etcdserver: too many operations in txn request";
inline constexpr const char* kErrorSortOption = "etcdserver: invalid sort option";

// Reads for one io step (or one transaction). Opens its ReadTxn only when something is not in the cache; when a
// compaction passed its step by then, an asked revision is told as kErrorCompacted, and the latest is read again at the
// step that is published by then. Not to be kept over an io step.
class Reader {
 public:
  virtual ~Reader() = default;
  // The step that it reads. May move forward inside a call (see above): read it after the call it belongs to. Who needs
  // several calls at one step (a read-only txn) compares it before and after, and does all of them again if it moved.
  virtual const Published& at() const = 0;
  // Fills all but the header. Errors: kOutOfRange with the two texts above; kDataLoss.
  // header.revision of a range is at().revision, whatever request.revision says.
  virtual Status range(const etcdserverpb::RangeRequest& request, etcdserverpb::RangeResponse* response) = 0;
  // The key as it was at `revision` (0: latest); null: absent then.
  virtual Result<KeyValuePtr> get(std::string_view key, int64_t revision) = 0;
  // History for watchers: rows of revisions from..to (both included) in order, all rows of one revision in one batch;
  // ends early after a batch when `visit` returns false. `wanted` sees each key first; a row it refuses costs no copy.
  // kOutOfRange/kErrorCompacted when `from` is below the compacted revision (as etcd: at it is still fine).
  virtual Status history(int64_t from, int64_t to, const std::function<bool(std::string_view key)>& wanted,
                         const std::function<bool(EventBatch)>& visit) = 0;
};

// Stages the writes of a batch of log entries; apply thread. Reads through it see what is staged.
class Writer {
 public:
  virtual ~Writer() = default;
  // Every write between two calls belongs to the revision that begin_revision() made current: published revision + 1,
  // + 2 .... A revision in which nothing was written is given back by end_revision(), which returns the events (empty:
  // nothing written, revision unchanged).
  virtual void begin_revision() = 0;
  virtual EventBatch end_revision() = 0;
  virtual int64_t revision() const = 0;            // of the last write, staged ones included
  virtual int64_t writes_in_revision() const = 0;  // staged since begin_revision()
  // A compaction entry of this batch was accepted: reads of the entries after it must see that, whatever the batch is,
  // or members that cut their batches elsewhere would differ. Forgotten by rollback(); publish() brings the same
  // figure.
  virtual void set_compacted(int64_t revision) = 0;
  virtual int64_t compacted() const = 0;  // staged one included

  virtual Status range(const etcdserverpb::RangeRequest& request, etcdserverpb::RangeResponse* response) = 0;
  virtual Result<KeyValuePtr> get(std::string_view key) = 0;  // latest, staged ones included; null: absent
  // Number of keys in [key, end) now; stops counting beyond `limit`.
  virtual int64_t count(std::string_view key, std::string_view end, int64_t limit) = 0;
  // Visits the heads of latest keys in [key, end) for txn compares; no value is read. False from `visit` ends it.
  struct Head {
    std::string_view key;
    int64_t create_revision, mod_revision, version, lease;
  };
  virtual void heads(std::string_view key, std::string_view end, const std::function<bool(const Head&)>& visit) = 0;

  // Returns the previous value if `want_previous` (null: there was none).
  virtual Result<KeyValuePtr> put(std::string_view key, std::string_view value, int64_t lease, bool want_previous) = 0;
  // Deletes what is in [key, end) (end as in RangeRequest). Returns the number; previous values if wanted. `on_delete`
  // hears every deleted key with the lease it had (0: none), for detaching.
  virtual Result<int64_t> erase(std::string_view key, std::string_view end, std::vector<KeyValuePtr>* previous,
                                const std::function<void(std::string_view key, int64_t lease)>& on_delete) = 0;
};

// The share of one live key-value in content_hash(). Part of the format: never changes for a given format version.
uint64_t content_hash_of(const KeyValue& kv);

class Mvcc {
 public:
  // Loads the key index from the store. `on_key` hears each live key that has a lease, for the lease table.
  static Result<std::unique_ptr<Mvcc>> open(store::Store& store, const Options& options,
                                            const std::function<void(std::string_view key, int64_t lease)>& on_key);
  virtual ~Mvcc() = default;

  // Any thread.
  virtual Published published() const = 0;
  virtual std::unique_ptr<Reader> reader() = 0;
  virtual int64_t key_count() const = 0;

  // Apply thread. A batch: begin(txn) -> Writer; stage; then the caller sets the meta, commits the txn, and calls
  // publish(); if the commit failed: rollback(), which takes the staged revisions out of the index again.
  virtual Writer& begin(store::WriteTxn& txn) = 0;
  virtual void publish(const Published& step) = 0;
  virtual void rollback() = 0;

  // Compaction at a published `compacted` (the caller has saved meta.compacted and published it). step() forgets
  // revisions in slices of bounded time: removes rows in `txn` and index nodes. True: all done up to
  // published().compacted. Keeps the newest row at or below `compacted` of each key that was alive then. Restart-safe:
  // begin anew from meta. At most one call a txn, after the batch's begin() if they share it. The index forgets once
  // the commit is known to be good: at the next publish(), begin() or compact_step(). If the commit failed: rollback(),
  // as for a batch.
  virtual Result<bool> compact_step(store::WriteTxn& txn, int rows_max) = 0;

  // Sum (mod 2^64) of content_hash_of() over the latest live key-values: equal on members with equal content at an
  // equal revision, however far compaction got. The caller stores it in meta.content_hash, which open() starts from.
  virtual uint64_t content_hash() const = 0;  // apply thread; staged writes included
};

}  // namespace mvcc
