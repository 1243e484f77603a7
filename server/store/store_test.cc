#include "store/store.h"

#include <gtest/gtest.h>

#include <thread>

#include "store/format.h"
#include "store/page_checksum.h"
#include "store/test_support.h"

namespace store {
namespace {

using test::commit;
using test::content_of;
using test::kDatabase;
using test::kFolder;
using test::kWal;
using test::open_store;
using test::read_all;
using test::row_of;
using test::view_of;

class StoreTest : public testing::Test {
 protected:
  void SetUp() override { test::make_folder(disk_); }
  std::unique_ptr<Store> open(std::optional<Mark> mark = {}, Options options = {}) {
    auto store = open_store(disk_, mark, options);
    EXPECT_TRUE(store) << store.error().message;
    return store ? std::move(*store) : nullptr;
  }
  MemoryDisk disk_;
};

TEST_F(StoreTest, ANewStoreIsEmptyAtRevisionOne) {
  const auto store = open();
  EXPECT_EQ(store->meta(), Meta());
  EXPECT_EQ(store->meta().revision, 1);
  EXPECT_EQ(store->load_leases()->size(), 0u);
  EXPECT_EQ(*disk_.list(kFolder), (std::vector<std::string>{kDatabaseName, kWalName}));
  auto txn = *store->read();
  EXPECT_EQ(txn->meta(), Meta());
  EXPECT_FALSE(txn->row(1)->has_value());
}

TEST_F(StoreTest, TheFileSaysWhatItIs) {
  open();
  const Bytes file = *disk_.content(kDatabase);
  EXPECT_EQ(file.substr(0, 16), std::string("SQLite format 3\0", 16));
  EXPECT_EQ(load_big32(file.data() + kApplicationIdOffset), 0x436f6e63u);
  EXPECT_EQ(load_big32(file.data() + kUserVersionOffset), 0x10001u);
  EXPECT_EQ(file[20], static_cast<char>(kReservedBytes));
  EXPECT_EQ(load_big32(file.data() + 64), 1u) << "incremental vacuum";
  EXPECT_EQ(file[18], 2) << "journal mode WAL";
  for (size_t at = 0; at < file.size(); at += kPageBytes) {
    EXPECT_TRUE(page_is_intact(static_cast<uint32_t>(at / kPageBytes + 1), as_bytes(file.substr(at, kPageBytes))));
  }
}

TEST_F(StoreTest, WhatWasCommittedIsThereAndStaysThere) {
  {
    const auto store = open();
    for (int c = 1; c <= 30; ++c) {
      ASSERT_TRUE(commit(*store, c));
      if (c % 10 == 1) {
        EXPECT_EQ(*read_all(*store), content_of(c));
      }
    }
  }
  const auto store = open();
  EXPECT_EQ(*read_all(*store), content_of(30));
}

TEST_F(StoreTest, AReadTxnGivesAllThatMakesUpItsCommit) {
  const auto store = open();
  for (int c = 1; c <= 8; ++c) ASSERT_TRUE(commit(*store, c));
  const auto txn = *store->read();
  for (int c = 9; c <= 12; ++c) ASSERT_TRUE(commit(*store, c));
  EXPECT_EQ(*txn->whole_meta(), content_of(8).meta);
  EXPECT_EQ(*txn->leases(), content_of(8).leases);
  const auto next = *store->read();
  EXPECT_EQ(*next->whole_meta(), content_of(12).meta);
  EXPECT_EQ(*next->leases(), content_of(12).leases);
}

TEST_F(StoreTest, ATransactionSeesItsOwnWritesAndOthersDoNot) {
  const auto store = open();
  ASSERT_TRUE(commit(*store, 1));
  auto write = *store->begin();
  const Row row = row_of(1000);
  ASSERT_TRUE(write->put_row(view_of(row)));
  ASSERT_TRUE(write->delete_row(test::row_id(1, 0)));
  ASSERT_TRUE(write->row(1000)->has_value());
  EXPECT_EQ((*write->row(1000))->value, row.value);
  EXPECT_FALSE(write->row(test::row_id(1, 0))->has_value());
  auto read = *store->read();
  EXPECT_FALSE(read->row(1000)->has_value());
  EXPECT_TRUE(read->row(test::row_id(1, 0))->has_value());
  ASSERT_TRUE(write->commit());
  EXPECT_FALSE(read->row(1000)->has_value()) << "a view does not move";
  read = *store->read();
  EXPECT_TRUE(read->row(1000)->has_value());
}

TEST_F(StoreTest, ATransactionThatIsNotCommittedLeavesNothing) {
  const auto store = open();
  ASSERT_TRUE(commit(*store, 1));
  {
    auto write = *store->begin();
    ASSERT_TRUE(write->put_row(view_of(row_of(1000))));
    ASSERT_TRUE(write->put_lease({9, 9, 9}));
    Meta meta = store->meta();
    meta.applied_index = 77;
    meta.membership = "else";
    ASSERT_TRUE(write->set_meta(meta));
  }
  EXPECT_EQ(*read_all(*store), content_of(1));
  ASSERT_TRUE(commit(*store, 2));
  EXPECT_EQ(*read_all(*store), content_of(2));
}

TEST_F(StoreTest, EmptyAndBinaryKeysAndValuesComeBackAsTheyWent) {
  const auto store = open();
  const Bytes all = [] {
    Bytes bytes;
    for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
    return bytes;
  }();
  auto write = *store->begin();
  ASSERT_TRUE(write->put_row({.id = 1, .key = all, .value = {}}));
  ASSERT_TRUE(write->put_row({.id = 2, .key = std::string_view(), .value = all}));
  ASSERT_TRUE(write->put_row(
      {.id = std::numeric_limits<RowId>::max(), .key = "k", .version = -1, .value = Bytes(2 << 20, 'v')}));
  ASSERT_TRUE(write->commit());
  auto read = *store->read();
  EXPECT_EQ((*read->row(1))->key, all);
  EXPECT_EQ((*read->row(1))->value, "");
  EXPECT_EQ((*read->row(2))->key, "");
  EXPECT_EQ((*read->row(2))->value, all);
  EXPECT_EQ((*read->row(std::numeric_limits<RowId>::max()))->value, Bytes(2 << 20, 'v'));
  EXPECT_EQ((*read->row(std::numeric_limits<RowId>::max()))->version, -1);
}

TEST_F(StoreTest, ScanGoesInOrderWithinItsBoundsUntilToldToStop) {
  const auto store = open();
  auto write = *store->begin();
  for (const RowId id : {50, 10, 30, 20, 40}) ASSERT_TRUE(write->put_row(view_of(row_of(id))));
  ASSERT_TRUE(write->commit());
  auto read = *store->read();
  std::vector<RowId> ids;
  ASSERT_TRUE(read->scan(20, 50, false, [&](const RowView& row) {
    EXPECT_EQ(row.value, row_of(row.id).value);
    EXPECT_EQ(row.key, row_of(row.id).key);
    ids.push_back(row.id);
    return true;
  }));
  EXPECT_EQ(ids, (std::vector<RowId>{20, 30, 40}));
  ids.clear();
  ASSERT_TRUE(read->scan(0, 100, true, [&](const RowView& row) {
    EXPECT_EQ(row.value, "");
    EXPECT_EQ(row.lease, row_of(row.id).lease);
    ids.push_back(row.id);
    return row.id < 30;
  }));
  EXPECT_EQ(ids, (std::vector<RowId>{10, 20, 30}));
  EXPECT_EQ((*read->row(40))->id, 40) << "the view is still good after a scan that was stopped";
}

TEST_F(StoreTest, AScanOfHeadsDoesNotTouchLongValues) {
  const auto store = open();
  auto write = *store->begin();
  for (RowId id = 1; id <= 20; ++id) {
    ASSERT_TRUE(write->put_row({.id = id, .key = "k", .value = Bytes(1 << 20, 'v')}));
  }
  ASSERT_TRUE(write->commit());
  auto read = *store->read();
  const uint64_t before = disk_.calls(MemoryDisk::Operation::kRead);
  int rows = 0;
  ASSERT_TRUE(read->scan(0, 100, true, [&](const RowView&) { return ++rows > 0; }));
  EXPECT_EQ(rows, 20);
  EXPECT_LT(disk_.calls(MemoryDisk::Operation::kRead) - before, 60u) << "5,000 pages of values";
}

TEST_F(StoreTest, AReaderBeyondTheLimitWaitsForOneToEnd) {
  const auto store = open({}, {.readers_max = 1});
  ASSERT_TRUE(commit(*store, 1));
  auto first = *store->read();
  std::atomic<bool> got{false};
  std::thread other([&] {
    auto second = store->read();
    EXPECT_TRUE(second);
    got = true;
  });
  EXPECT_FALSE(got);
  first.reset();
  other.join();
  EXPECT_TRUE(got);
}

TEST_F(StoreTest, VacuumGivesFreePagesBack) {
  const auto store = open();
  auto write = *store->begin();
  for (RowId id = 1; id <= 50; ++id) ASSERT_TRUE(write->put_row({.id = id, .key = "k", .value = Bytes(20'000, 'v')}));
  ASSERT_TRUE(write->commit());
  const Stats full = store->stats();
  EXPECT_GT(full.size_bytes, 1'000'000);
  EXPECT_EQ(full.size_bytes, full.size_in_use_bytes);
  write = *store->begin();
  for (RowId id = 1; id <= 50; ++id) ASSERT_TRUE(write->delete_row(id));
  ASSERT_TRUE(write->commit());
  write.reset();
  EXPECT_EQ(store->stats().size_bytes, full.size_bytes);
  EXPECT_LT(store->stats().size_in_use_bytes, 50'000);
  ASSERT_TRUE(store->vacuum(100));
  EXPECT_EQ(store->stats().size_bytes, full.size_bytes - 100 * static_cast<int64_t>(kPageBytes));
  ASSERT_TRUE(store->vacuum(100'000));
  EXPECT_LT(store->stats().size_bytes, 50'000);
  EXPECT_EQ(store->stats().size_bytes, store->stats().size_in_use_bytes);
  ASSERT_TRUE(store->vacuum(1)) << "nothing left to do";
  ASSERT_TRUE(test::checkpoint(*store, [](const Mark&) {}));
  EXPECT_EQ(disk_.content(kDatabase)->size(), static_cast<size_t>(store->stats().size_bytes));
  ASSERT_TRUE(static_cast<SqliteStore&>(*store).check_integrity());
}

TEST_F(StoreTest, CommitsAreNotSynced) {
  const auto store = open();
  ASSERT_TRUE(commit(*store, 1));  // the first one begins a log, whose header is synced
  const uint64_t syncs = store->stats().syncs;
  for (int c = 2; c <= 20; ++c) ASSERT_TRUE(commit(*store, c));
  EXPECT_EQ(store->stats().syncs, syncs);
  EXPECT_GT(store->stats().bytes_written, 20u * 4096);
}

TEST_F(StoreTest, AFullDiskRollsBackAndCommitsGoOnWhenThereIsRoom) {
  const auto store = open();
  for (int c = 1; c <= 10; ++c) ASSERT_TRUE(commit(*store, c));
  const auto used = [&] { return disk_.content(kDatabase)->size() + disk_.content(kWal)->size(); };
  disk_.set_capacity(used() + 6000);
  const Status full = commit(*store, 11);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error(), (Error{Code::kResourceExhausted, kWal + ": write: No space left on device"}));
  EXPECT_EQ(commit(*store, 11).error().code, Code::kResourceExhausted);
  EXPECT_EQ(*read_all(*store), content_of(10));
  disk_.set_capacity(1 << 30);
  ASSERT_TRUE(commit(*store, 11));
  EXPECT_EQ(*read_all(*store), content_of(11));
}

TEST_F(StoreTest, AnyOtherErrorIsFinal) {
  const auto store = open();
  for (int c = 1; c <= 5; ++c) ASSERT_TRUE(commit(*store, c));
  auto read = *store->read();
  disk_.inject({.operation = MemoryDisk::Operation::kWrite, .nth = 3});
  const Error error = commit(*store, 6).error();
  EXPECT_EQ(error, (Error{Code::kDataLoss, kWal + ": write: Input/output error"}));
  EXPECT_EQ(commit(*store, 6).error(), error);
  EXPECT_EQ(store->read().error(), error);
  EXPECT_EQ(read->row(1).error(), error);
  EXPECT_EQ(store->begin_checkpoint().error(), error);
  EXPECT_EQ(store->load_leases().error(), error);
}

TEST_F(StoreTest, AStoreThatTheLogKnowsMustBeThere) {
  const auto missing = open_store(disk_, Mark{.applied = 1, .done = true});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kDataLoss);
  EXPECT_NE(missing.error().message.find(kDatabase), std::string::npos);
  EXPECT_EQ(disk_.list(kFolder)->size(), 0u) << "nothing was made";
}

TEST_F(StoreTest, ALogWithoutItsDatabaseIsRefused) {
  { ASSERT_TRUE(commit(*open(), 1)); }
  ASSERT_TRUE(disk_.remove(kDatabase));
  EXPECT_EQ(open_store(disk_).error().code, Code::kDataLoss);
}

TEST_F(StoreTest, ANewerFormatIsRefusedUntouched) {
  { ASSERT_TRUE(commit(*open(), 1)); }
  Bytes file = *disk_.content(kDatabase);
  Bytes wal = *disk_.content(kWal);
  const auto set_version = [&](uint32_t oldest_reader) {
    const char version[4] = {0, static_cast<char>(oldest_reader), 0, 9};
    file.replace(kUserVersionOffset, 4, version, 4);
    seal_page(1, std::as_writable_bytes(std::span(file)).first(kPageBytes));
    disk_.put(kDatabase, as_bytes(file));
  };
  disk_.put(kWal, {});
  set_version(2);
  const auto refused = open_store(disk_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_NE(refused.error().message.find("format 9"), std::string::npos) << refused.error().message;
  EXPECT_EQ(*disk_.content(kDatabase), file);
  EXPECT_EQ(*disk_.content(kWal), "");
  set_version(1);
  EXPECT_TRUE(open_store(disk_)) << "format 9 says that readers of format 1 can cope";
}

TEST_F(StoreTest, AnotherSqliteDatabaseIsRefused) {
  { open(); }
  Bytes file = *disk_.content(kDatabase);
  file[kApplicationIdOffset] ^= 1;
  seal_page(1, std::as_writable_bytes(std::span(file)).first(kPageBytes));
  disk_.put(kDatabase, as_bytes(file));
  const auto refused = open_store(disk_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("not a store"), std::string::npos);
  disk_.put(kDatabase, as_bytes("short"));
  EXPECT_EQ(open_store(disk_).error().code, Code::kDataLoss);
}

TEST_F(StoreTest, APageInTheWrongPlaceIsNoticed) {
  {
    const auto store = open();
    for (int c = 1; c <= 20; ++c) ASSERT_TRUE(commit(*store, c));
    ASSERT_TRUE(test::checkpoint(*store, [](const Mark&) {}));
  }
  disk_.put(kWal, {});
  Bytes file = *disk_.content(kDatabase);
  ASSERT_GT(file.size(), 12 * kPageBytes);
  const Bytes page = file.substr(10 * kPageBytes, kPageBytes);
  file.replace(11 * kPageBytes, kPageBytes, page);
  disk_.put(kDatabase, as_bytes(file));
  const auto store = open();
  const auto read = read_all(*store);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("page 12 does not match its checksum"), std::string::npos)
      << read.error().message;
}

TEST_F(StoreTest, ADatabaseThatLostItsEndIsRefused) {
  {
    const auto store = open();
    for (int c = 1; c <= 20; ++c) ASSERT_TRUE(commit(*store, c));
    ASSERT_TRUE(test::checkpoint(*store, [](const Mark&) {}));
  }
  disk_.put(kWal, {});
  const Bytes file = *disk_.content(kDatabase);
  disk_.put(kDatabase, as_bytes(file.substr(0, file.size() / 2)));
  const auto store = open_store(disk_);
  const auto read = store ? read_all(**store) : Result<test::Content>(fail(store.error()));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kDataLoss);
}

TEST_F(StoreTest, SeveralStoresLiveInOneProcess) {
  MemoryDisk other_disk;
  test::make_folder(other_disk);
  const auto one = open();
  const auto two = std::move(*open_store(other_disk));
  for (int c = 1; c <= 10; ++c) {
    ASSERT_TRUE(commit(*one, c));
    if (c <= 5) {
      ASSERT_TRUE(commit(*two, c));
    }
  }
  EXPECT_EQ(*read_all(*one), content_of(10));
  EXPECT_EQ(*read_all(*two), content_of(5));
}

}  // namespace
}  // namespace store
