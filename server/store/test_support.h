// For the tests of the store: a history of commits in which everything follows from the number of the commit, so that a
// store that was reopened can be held against the commit it says it is at.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/memory_disk.h"
#include "store/sqlite_store.h"
#include "store/store.h"

namespace store::test {

inline const std::string kFolder = "/data/store";
inline const std::string kDatabase = kFolder + "/store.db";
inline const std::string kWal = kFolder + "/store.db-wal";

inline void make_folder(Disk& disk) {
  ASSERT_TRUE(disk.create_directory(kFolder));
  ASSERT_TRUE(disk.sync_directory("/data"));
  ASSERT_TRUE(disk.sync_directory("/"));
}

inline Result<std::unique_ptr<Store>> open_store(Disk& disk, std::optional<Mark> mark = {}, Options options = {}) {
  options.directory = kFolder;
  options.readers_max = std::min(options.readers_max, 2);
  return Store::open(disk, options, mark);
}

struct Content {
  Meta meta;
  std::map<RowId, std::tuple<Bytes, int64_t, int64_t, int64_t, Bytes>> rows;
  std::vector<LeaseRow> leases;
  friend bool operator==(const Content&, const Content&) = default;
};

constexpr int kRowsPerCommit = 4;
constexpr int kRowsKept = 40;  // older ones are deleted

inline RowId row_id(int commit, int n) { return commit * 16 + n; }
inline Bytes value_of(RowId id) {
  // Mostly small, some over several pages.
  const size_t bytes = id % 11 == 3 ? 9000 + static_cast<size_t>(id % 1000) : static_cast<size_t>(id * 37 % 400);
  SeededRandom random(static_cast<uint64_t>(id));
  Bytes value;
  while (value.size() < bytes) append_integer(value, random.next());
  value.resize(bytes);
  return value;
}
inline Row row_of(RowId id) {
  return {.id = id,
          .key = "key/" + std::to_string(id % 7),
          .create_revision = id / 2,
          .version = id % 5,
          .lease = id % 3,
          .value = value_of(id)};
}
inline RowView view_of(const Row& row) {
  return {.id = row.id,
          .key = row.key,
          .create_revision = row.create_revision,
          .version = row.version,
          .lease = row.lease,
          .value = row.value};
}
inline Meta meta_of(int commit) {
  Meta meta;
  if (commit == 0) return meta;
  meta.applied_index = static_cast<uint64_t>(commit);
  meta.applied_term = static_cast<uint64_t>(commit / 10 + 1);
  meta.revision = commit + 1;
  meta.compacted = commit / 3;
  meta.compaction_finished = commit / 4;
  meta.content_hash = ~static_cast<uint64_t>(commit);
  meta.membership = "members " + std::to_string(commit / 5);
  meta.alarms = commit % 9 == 8 ? "alarm" : "";
  return meta;
}
inline int deleted_up_to(int commit) { return std::max(0, commit - kRowsKept / kRowsPerCommit); }

inline Content content_of(int commit) {
  Content content;
  content.meta = meta_of(commit);
  for (int c = deleted_up_to(commit) + 1; c <= commit; ++c) {
    for (int n = 0; n < kRowsPerCommit; ++n) {
      const Row row = row_of(row_id(c, n));
      content.rows[row.id] = {row.key, row.create_revision, row.version, row.lease, row.value};
    }
  }
  if (commit > 0) content.leases.push_back({.id = 7, .ttl = commit, .remaining = 0});
  for (int c = std::max(1, commit - 2); c <= commit; ++c) content.leases.push_back({100 + c, 60, c});
  return content;
}

// Commit number `commit` on a store that is at `commit` - 1.
inline Status commit(Store& store, int commit) {
  TRY_ASSIGN(auto txn, store.begin());
  for (int n = 0; n < kRowsPerCommit; ++n) TRY(txn->put_row(view_of(row_of(row_id(commit, n)))));
  for (int c = deleted_up_to(commit - 1) + 1; c <= deleted_up_to(commit); ++c) {
    for (int n = 0; n < kRowsPerCommit; ++n) TRY(txn->delete_row(row_id(c, n)));
  }
  TRY(txn->put_lease({.id = 7, .ttl = commit, .remaining = 0}));
  TRY(txn->put_lease({100 + commit, 60, commit}));
  if (commit > 3) TRY(txn->delete_lease(100 + commit - 3));
  TRY(txn->set_meta(meta_of(commit)));
  return txn->commit();
}

inline Result<Content> read_all(Store& store) {
  Content content;
  content.meta = store.meta();
  TRY_ASSIGN(content.leases, store.load_leases());
  TRY_ASSIGN(auto txn, store.read());
  Meta meta = store.meta();
  meta.membership.clear();
  meta.alarms.clear();
  EXPECT_EQ(txn->meta(), meta);
  TRY_ASSIGN(const Meta whole, txn->whole_meta());
  EXPECT_EQ(whole, store.meta());
  TRY_ASSIGN(const auto leases, txn->leases());
  EXPECT_EQ(leases, content.leases);
  TRY(txn->scan(0, std::numeric_limits<RowId>::max(), false, [&](const RowView& row) {
    content.rows[row.id] = {Bytes(row.key), row.create_revision, row.version, row.lease, Bytes(row.value)};
    return true;
  }));
  txn.reset();
  TRY(static_cast<SqliteStore&>(store).check_integrity());
  return content;
}

// One whole checkpoint; `log` hears the marks as the Raft log would.
template <class Log>
Status checkpoint(Store& store, const Log& log) {
  TRY_ASSIGN(const auto begun, store.begin_checkpoint());
  if (!begun) return {};
  log(*begun);
  const auto done = store.run_checkpoint();
  if (!done) {
    store.end_checkpoint();
    return fail(done.error());
  }
  log(*done);
  store.end_checkpoint();
  return {};
}

}  // namespace store::test
