#include "member/snapshot_install.h"

// absl's headers define some of the same annotation macros (to the same meaning), which is fine in this order only.
// clang-format off
#include "base/thread.h"
#include <absl/container/flat_hash_map.h>
// clang-format on

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "member/data_folder.h"
#include "mvcc/content_hash.h"
#include "mvcc/revision.h"
#include "store/format.h"

namespace member {
namespace {

constexpr uint64_t kTxnBytesMax = 4 << 20;
constexpr uint64_t kRowBytes = 64;  // of a row or lease beside key and value, in the database
constexpr uint64_t kCacheBytes = 8ULL << 20;

store::RowView view_of(const snapshot::Row& row) {
  return {.id = row.id,
          .key = row.key,
          .create_revision = row.create_revision,
          .version = row.version,
          .lease = row.lease,
          .value = row.value};
}

}  // namespace

// The hash of what is alive, as mvcc::Mvcc::content_hash(). Takes memory for each live key, as the key index will.
class SnapshotInstall::LiveHash {
 public:
  void add(const snapshot::Row& row);
  uint64_t sum() const { return sum_; }

 private:
  struct Hash {  // absl's own takes no std::string_view in Debian's build
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
  };
  absl::flat_hash_map<std::string, uint64_t, Hash, std::equal_to<>> live_;
  uint64_t sum_ = 0;
};

SnapshotInstall::SnapshotInstall(Disk& disk, const Options& options)
    : disk_(disk), options_(options), hash_(std::make_unique<LiveHash>()) {}
SnapshotInstall::~SnapshotInstall() = default;

void SnapshotInstall::LiveHash::add(const snapshot::Row& row) {
  if (row.version == 0) {  // a tombstone
    const auto at = live_.find(row.key);
    if (at == live_.end()) return;
    sum_ -= at->second;
    live_.erase(at);
    return;
  }
  uint64_t& hash = live_[row.key];
  sum_ -= hash;
  hash = mvcc::content_hash_of(row.key, row.value, row.create_revision, mvcc::revision_of(row.id).main, row.version,
                               row.lease);
  sum_ += hash;
}

Result<std::unique_ptr<SnapshotInstall>> SnapshotInstall::begin(Disk& disk, const Options& options,
                                                                const std::string& file, uint64_t cluster_id) {
  std::unique_ptr<SnapshotInstall> install(new SnapshotInstall(disk, options));
  install->file_ = file;
  TRY_ASSIGN(install->reader_, snapshot::Reader::open(disk, file));
  const snapshot::Manifest& manifest = install->manifest();
  if (manifest.cluster_id != cluster_id) {
    return ::fail(Code::kFailedPrecondition, file + ": is a snapshot of another cluster");
  }
  install->generation_ = {manifest.term, manifest.index};
  if (manifest.index == 0) return ::fail(Code::kDataLoss, file + ": is a snapshot of nothing");
  TRY(install->build_store());
  return install;
}

Status SnapshotInstall::build_store() {
  TRY_ASSIGN(const auto current, read_current(disk_, options_.data_dir));
  if (current == generation_) {
    return ::fail(Code::kFailedPrecondition, file_ + ": is what the store was made of already");
  }
  const std::string folder = store_folder(options_, generation_);
  TRY_ASSIGN(const bool there, disk_.exists(folder));
  if (there) TRY(disk_.remove_directory(folder));
  TRY(create_folder(disk_, folder));
  store::Options options = store_options(options_, generation_);
  options.cache_bytes = std::min(options.cache_bytes, kCacheBytes);
  options.readers_max = 1;
  TRY_ASSIGN(store_, store::Store::open(disk_, options, std::nullopt));
  return {};
}

Result<bool> SnapshotInstall::step() {
  CHECK(store_ != nullptr, generation_.name());
  if (store_->stats().wal_bytes >= wal_bytes_max() / 2) {
    TRY(checkpoint());
    return true;
  }
  if (!all_read_) {
    TRY(write_some());
    return true;
  }
  TRY(finish());
  return false;
}

// One transaction.
Status SnapshotInstall::write_some() {
  TRY_ASSIGN(auto txn, store_->begin());
  TRY(write(*txn));
  return txn->commit();
}

Status SnapshotInstall::write(store::WriteTxn& txn) {
  const uint64_t bytes_max = std::min(kTxnBytesMax, wal_bytes_max() / 8);
  const int64_t end = mvcc::row_id({manifest().revision + 1, 0});
  for (uint64_t bytes = 0; bytes < bytes_max;) {
    if (next_lease_ < chunk_.leases.size()) {
      const snapshot::Lease& lease = chunk_.leases[next_lease_++];
      TRY(txn.put_lease({.id = lease.id, .ttl = lease.ttl, .remaining = lease.remaining}));
      bytes += kRowBytes;
    } else if (next_row_ < chunk_.rows.size()) {
      const snapshot::Row& row = chunk_.rows[next_row_++];
      if (row.id <= 0 || row.id >= end) {
        return ::fail(Code::kDataLoss, file_ + ": has a row beyond its revision");
      }
      TRY(txn.put_row(view_of(row)));
      hash_->add(row);
      bytes += kRowBytes + row.key.size() + row.value.size();
    } else {
      TRY_ASSIGN(const bool more, load_chunk());
      if (!more) return {};
    }
  }
  return {};
}

Result<bool> SnapshotInstall::load_chunk() {
  next_lease_ = next_row_ = 0;
  TRY_ASSIGN(const bool more, reader_->next(chunk_));
  all_read_ = !more;
  return more;
}

// The rows are all there and the file was whole. Meta goes last: without it the store is an empty one.
Status SnapshotInstall::finish() {
  const snapshot::Manifest& from = manifest();
  if (hash_->sum() != from.content_hash) {
    return ::fail(Code::kDataLoss, file_ +
                                       ": its rows do not add up to the content's hash in its manifest. The member "
                                       "it came from has a damaged store, or a fault");
  }
  hash_.reset();
  {
    TRY_ASSIGN(auto txn, store_->begin());
    TRY(txn->set_meta({.applied_index = from.index,
                       .applied_term = from.term,
                       .revision = from.revision,
                       .compacted = from.compacted,
                       .compaction_finished = from.compaction_finished,
                       .content_hash = from.content_hash,
                       .membership = from.membership,
                       .alarms = from.alarms}));
    TRY(txn->commit());
  }
  TRY(checkpoint());
  store_.reset();
  // With everything in the database, the -wal starts empty: whatever is found in it later came after this state.
  const std::string folder = store_folder(options_, generation_);
  TRY_ASSIGN(auto wal, disk_.open(folder + "/" + store::kWalName, OpenMode::kReadWrite));
  TRY(wal->truncate(0));
  TRY(wal->sync());
  return disk_.sync_directory(folder);
}

// Nobody else uses this store, so a checkpoint always gets to the end. No mark is logged: a crash does away with all of
// it.
Status SnapshotInstall::checkpoint() {
  TRY_ASSIGN(const auto begun, store_->begin_checkpoint());
  if (!begun) return {};
  const auto done = store_->run_checkpoint();
  store_->end_checkpoint();
  if (!done) return ::fail(done.error());
  CHECK(done->done, done->applied, done->frames);
  return {};
}

void SnapshotInstall::remove_unfinished(Disk& disk, const Options& options, const Generation& generation) {
  const auto current = read_current(disk, options.data_dir);
  if (!current || *current == generation) return;
  const std::string folder = store_folder(options, generation);
  const auto there = disk.exists(folder);
  if (!there || !*there) return;
  if (Status removed = disk.remove_directory(folder); !removed) {
    log_warn("could not remove a store that was not finished", {{"error", removed.error().message}});
  }
}

Status put_in_force(Disk& disk, const Options& options, const Generation& generation, uint64_t applied) {
  TRY_ASSIGN(const auto lock, lock_data_folder(disk, options.data_dir));
  TRY_ASSIGN(const auto current, read_current(disk, options.data_dir));
  // Whose a mark of the log is follows from this order (log_lacks_generation).
  if (applied >= generation.index || (current && current->index >= generation.index)) {
    return ::fail(Code::kFailedPrecondition, options.data_dir + ": the store has applied index " +
                                                 std::to_string(applied) + " and is not older than the snapshot " +
                                                 generation.name());
  }
  return write_current(disk, options.data_dir, generation);
}

Result<Generation> install_snapshot(Disk& disk, const Options& options, const std::string& file, uint64_t cluster_id,
                                    uint64_t applied) {
  TRY_ASSIGN(const auto install, SnapshotInstall::begin(disk, options, file, cluster_id));
  for (bool more = true; more;) {
    TRY_ASSIGN(more, install->step());
  }
  TRY(put_in_force(disk, options, install->generation(), applied));
  return install->generation();
}

}  // namespace member
