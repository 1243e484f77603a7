#include "member/snapshot_install.h"

#include <gmock/gmock.h>

#include "member/test_machine.h"
#include "mvcc/revision.h"
#include "snapshot/writer.h"

namespace member {
namespace {

using test::state_at;
using testing::HasSubstr;

constexpr const char* kFile = "data/snap/incoming.part";

class SnapshotInstallTest : public testing::Test {
 protected:
  void SetUp() override {
    MemoryDisk disk;
    test::Machine leader(disk);
    ASSERT_TRUE(leader.open());
    ASSERT_TRUE(leader.run_to(log_, 400));
    SnapshotMaker maker(leader.maker_parts());
    const auto made = test::make_snapshot(maker, 1);
    ASSERT_TRUE(made);
    snapshot_ = made->at;
    content_ = *disk.content(snapshot_path("data", snapshot_));
    ASSERT_TRUE(member_.open());
    disk_.put(kFile, as_bytes(content_));
  }
  Result<Generation> install() {
    const uint64_t applied = member_.is_open() ? member_.applied() : 0;
    member_.close();
    return install_snapshot(disk_, member_.options, kFile, identity_of(member_.options).cluster_id, applied);
  }
  void expect_state(uint64_t index) {
    const auto state = member_.state();
    ASSERT_TRUE(state) << state.error().message;
    EXPECT_TRUE(*state == state_at(log_, index));
  }
  void open() {
    const Status opened = member_.open();
    ASSERT_TRUE(opened) << opened.error().message;
  }
  // With the manifest changed, and everything else as it was.
  void rewrite(const std::function<void(snapshot::Manifest&)>& change) {
    auto reader = *snapshot::Reader::open(disk_, kFile);
    snapshot::Manifest manifest = reader->manifest();
    change(manifest);
    auto writer = *snapshot::Writer::create(disk_, "other", manifest);
    snapshot::Reader::Chunk chunk;
    while (*reader->next(chunk)) {
      for (const auto& lease : chunk.leases) writer->add(lease);
      for (const auto& row : chunk.rows) writer->add(row);
      ASSERT_TRUE(writer->flush());
    }
    ASSERT_TRUE(writer->finish());
    disk_.put(kFile, as_bytes(*disk_.content("other")));
  }

  const std::vector<LogEntry> log_ = apply::random_log(5);
  Generation snapshot_;
  Bytes content_;
  MemoryDisk disk_;
  test::Machine member_{disk_};
};

TEST_F(SnapshotInstallTest, TakesThePlaceOfAnOlderState) {
  ASSERT_TRUE(member_.run_to(log_, 100));
  ASSERT_TRUE(member_.checkpoint());
  ASSERT_TRUE(member_.run_to(log_, 120));
  ASSERT_TRUE(install());
  open();
  expect_state(400);
  EXPECT_EQ(*disk_.list("data/store"), std::vector<std::string>{snapshot_.name()}) << "the old one is gone";
  EXPECT_EQ(member_.folder.contents.base_index, 400u);
  EXPECT_EQ(member_.folder.contents.base_term, snapshot_.term);
  EXPECT_TRUE(member_.folder.contents.entries.empty());
  EXPECT_EQ(member_.folder.contents.hard_state.commit, 400u);
  EXPECT_EQ(member_.folder.contents.snapshot->data, member_.folder.store->meta().membership);
  // Life goes on, with checkpoints and restarts.
  ASSERT_TRUE(member_.run_to(log_, 450));
  ASSERT_TRUE(member_.checkpoint());
  ASSERT_TRUE(member_.run_to(log_, 500));
  member_.close();
  open();
  EXPECT_EQ(member_.applied(), 500u);
  expect_state(500);
}

TEST_F(SnapshotInstallTest, GoesOnFromTheSnapshotAtOnceAfterAnotherRestart) {
  ASSERT_TRUE(install());
  open();
  member_.close();
  open();
  expect_state(400);
  ASSERT_TRUE(member_.run_to(log_, 410));
  member_.close();
  open();
  expect_state(410);
}

TEST_F(SnapshotInstallTest, EntriesBehindItStayIfTheLogContainsItsEnd) {
  ASSERT_TRUE(member_.run_to(log_, 100));
  // Appended and acknowledged, but not known to be committed.
  wal::WalBatch batch;
  batch.entries.assign(log_.begin() + 100, log_.begin() + 430);
  ASSERT_TRUE(member_.folder.wal->append(batch));
  ASSERT_TRUE(install());
  open();
  EXPECT_EQ(member_.folder.contents.last_index(), 430u);
  EXPECT_EQ(member_.folder.contents.hard_state.commit, 400u);
  expect_state(400);
  member_.close();
  open();
  EXPECT_EQ(member_.folder.contents.last_index(), 430u);
  expect_state(400);
}

TEST_F(SnapshotInstallTest, EntriesBehindItGoIfTheyFollowSomethingElse) {
  ASSERT_TRUE(member_.run_to(log_, 100));
  wal::WalBatch batch;
  batch.entries.assign(log_.begin() + 100, log_.begin() + 430);
  for (LogEntry& entry : batch.entries) entry.term = log_[99].term;  // of a leader that was deposed
  ASSERT_NE(log_[399].term, log_[99].term);
  ASSERT_TRUE(member_.folder.wal->append(batch));
  ASSERT_TRUE(install());
  open();
  EXPECT_EQ(member_.folder.contents.last_index(), 400u);
  EXPECT_GE(member_.folder.contents.hard_state.term, snapshot_.term);
  expect_state(400);
}

TEST_F(SnapshotInstallTest, AnOlderOneIsRefused) {
  ASSERT_TRUE(install());
  open();
  disk_.put(kFile, as_bytes(content_));
  const auto again = install();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kFailedPrecondition);
  EXPECT_FALSE(put_in_force(disk_, member_.options, {1, 399}, 0)) << "older than the generation in force";
  {
    const auto another_server = lock_data_folder(disk_, member_.options.data_dir);
    ASSERT_TRUE(another_server);
    EXPECT_EQ(put_in_force(disk_, member_.options, {1, 402}, 400).error().code, Code::kUnavailable);
  }
  EXPECT_FALSE(put_in_force(disk_, member_.options, {1, 401}, 401)) << "not newer than what was applied";
  open();
  expect_state(400);
}

TEST_F(SnapshotInstallTest, OneOfAnotherClusterIsRefused) {
  rewrite([](snapshot::Manifest& manifest) { ++manifest.cluster_id; });
  const auto installed = install();
  ASSERT_FALSE(installed);
  EXPECT_EQ(installed.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(installed.error().message, HasSubstr("another cluster"));
}

TEST_F(SnapshotInstallTest, RowsThatAreNotWhatTheManifestSaysAreRefused) {
  rewrite([](snapshot::Manifest& manifest) { ++manifest.content_hash; });
  const auto installed = install();
  ASSERT_FALSE(installed);
  EXPECT_EQ(installed.error().code, Code::kDataLoss);
  EXPECT_THAT(installed.error().message, HasSubstr("do not add up"));
  open();
  expect_state(0);
  EXPECT_EQ(*disk_.list("data/store"), std::vector<std::string>{"0-0"}) << "nothing is left of it";
}

TEST_F(SnapshotInstallTest, RowsBeyondTheRevisionAreRefused) {
  rewrite([](snapshot::Manifest& manifest) { --manifest.revision; });
  const auto installed = install();
  ASSERT_FALSE(installed);
  EXPECT_EQ(installed.error().code, Code::kDataLoss);
}

TEST_F(SnapshotInstallTest, EveryFlippedByteIsRefused) {
  member_.close();
  const size_t step = content_.size() / 300 + 1;  // damage_test.cc has them all
  for (size_t byte = 0; byte < content_.size(); byte += step) {
    disk_.flip_bit(kFile, byte * 8 + byte % 8);
    const auto installed = install();
    ASSERT_FALSE(installed) << byte;
    EXPECT_EQ(installed.error().code, Code::kDataLoss);
    disk_.flip_bit(kFile, byte * 8 + byte % 8);
  }
  open();
  expect_state(0);
}

TEST_F(SnapshotInstallTest, TheWalStaysWithinItsLimit) {
  // Four times the limit.
  auto writer = *snapshot::Writer::create(
      disk_, kFile,
      {.cluster_id = identity_of(member_.options).cluster_id, .index = 5000, .term = 1, .revision = 3000});
  const Bytes value(700, 'v');
  for (int64_t revision = 2; revision <= 3000; ++revision) {
    writer->add({.id = mvcc::row_id({revision, 0}),
                 .create_revision = revision,
                 .version = 1,
                 .lease = 0,
                 .key = "k" + std::to_string(revision),
                 .value = value});
    ASSERT_TRUE(!writer->full() || writer->flush());
  }
  ASSERT_TRUE(writer->finish());
  uint64_t longest = 0;
  disk_.set_hook([&](const MemoryDisk::Call& call) {
    if (call.operation == MemoryDisk::Operation::kWrite && call.path.ends_with("-wal"))
      longest = std::max(longest, call.offset + call.bytes);
  });
  const auto installed = install();
  ASSERT_FALSE(installed) << "the hash is not right, but everything before that was done";
  EXPECT_THAT(installed.error().message, HasSubstr("do not add up"));
  EXPECT_GT(longest, member_.options.store_wal_bytes_max / 4);
  EXPECT_LE(longest, member_.options.store_wal_bytes_max);
}

TEST_F(SnapshotInstallTest, AFullDiskAtAnyWriteLeavesTheOldState) {
  ASSERT_TRUE(member_.run_to(log_, 100));
  member_.close();
  const auto before = disk_.clone();
  bool failed = true;
  uint64_t n = 1;
  for (; failed; n += 1 + n / 8) {
    SCOPED_TRACE("write " + std::to_string(n));
    ASSERT_LT(n, 10'000u);
    const auto disk = before->clone();
    test::Machine member(*disk);
    disk->inject({.operation = MemoryDisk::Operation::kWrite,
                  .nth = n,
                  .code = Code::kResourceExhausted,
                  .path = {},
                  .partial_bytes = n * 37});
    const uint64_t cluster = identity_of(member.options).cluster_id;
    auto installed = install_snapshot(*disk, member.options, kFile, cluster, 100);
    if (!installed) {
      EXPECT_EQ(installed.error().code, Code::kResourceExhausted) << installed.error().message;
      if (n % 2 == 0) {  // tried again at once
        installed = install_snapshot(*disk, member.options, kFile, cluster, 100);
        ASSERT_TRUE(installed) << installed.error().message;
      }
    }
    Status opened = member.open();
    failed = !installed || !opened || n < 20;
    if (!opened) {  // no room to tell the log
      EXPECT_EQ(opened.error().code, Code::kResourceExhausted) << opened.error().message;
      member.close();
      disk->restart();
      opened = member.open();
    }
    ASSERT_TRUE(opened) << opened.error().message;
    disk->clear_faults();
    const uint64_t index = installed ? 400 : 100;
    EXPECT_TRUE(*member.state() == state_at(log_, index));
    EXPECT_EQ(disk->list("data/store")->size(), 1u);
  }
  EXPECT_GT(n, 20u);
}

TEST_F(SnapshotInstallTest, AStoreNewerThanItsLogIsRefused) {
  ASSERT_TRUE(install());
  const auto with_old_log = disk_.clone();  // CURRENT names it, the log has not heard
  open();
  ASSERT_TRUE(member_.run_to(log_, 450));
  member_.close();
  // The store goes on, the log is from before.
  for (const char* file : {"store.db", "store.db-wal"}) {
    const std::string path = "data/store/" + snapshot_.name() + "/" + file;
    with_old_log->put(path, as_bytes(*disk_.content(path)));
  }
  test::Machine member(*with_old_log);
  const Status opened = member.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kDataLoss);
  EXPECT_THAT(opened.error().message, HasSubstr("the log is older than the store"));
}

TEST_F(SnapshotInstallTest, AStoreWhoseLogIsElsewhereIsNotMadeAnew) {
  ASSERT_TRUE(install());
  open();
  member_.close();
  ASSERT_TRUE(disk_.remove_directory("data/wal"));
  const Status opened = member_.open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("there is no Raft log here"));
}

}  // namespace
}  // namespace member
