#include "member/data_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory_disk.h"

namespace member {
namespace {

using testing::HasSubstr;

class StillClock final : public Clock {
 public:
  std::chrono::nanoseconds monotonic() override { return std::chrono::seconds(1); }
  std::chrono::nanoseconds wall() override { return std::chrono::seconds(1); }
};

class DataFolderTest : public testing::Test {
 protected:
  DataFolderTest() {
    options_.data_dir = "data";
    options_.peer_urls = {"http://127.0.0.1:2380"};
    options_.log_segment_bytes = 64 << 10;
  }
  Result<DataFolder> open() { return open_data_folder(world_, options_); }
  void make() {
    auto folder = open();
    ASSERT_TRUE(folder) << folder.error().message;
    ASSERT_TRUE(folder->is_new);
    const Status created = create_log(world_, options_, *folder);
    ASSERT_TRUE(created) << created.error().message;
  }
  // As if the log had led it there.
  void apply_to_store(uint64_t index) {
    auto folder = open();
    ASSERT_TRUE(folder);
    auto txn = folder->store->begin();
    ASSERT_TRUE(txn);
    store::Meta meta;
    meta.applied_index = index;
    ASSERT_TRUE((*txn)->set_meta(meta));
    ASSERT_TRUE((*txn)->commit());
  }
  std::string refusal() {
    const auto folder = open();
    return folder ? "opened" : folder.error().message;
  }

  MemoryDisk disk_;
  StillClock clock_;
  SeededRandom random_{1};
  World world_{clock_, random_, disk_};
  Options options_;
};

TEST_F(DataFolderTest, OpensWhatItMade) {
  make();
  const auto again = open();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(again->is_new);
  EXPECT_EQ(again->contents.identity, identity_of(options_));
}

TEST_F(DataFolderTest, ASecondServerIsRefused) {
  make();
  const auto first = open();
  ASSERT_TRUE(first);
  EXPECT_THAT(refusal(), HasSubstr("another conclave server is using this data folder"));
}

TEST_F(DataFolderTest, IsMadeAgainAfterACrashAtAnyMomentOfItsMaking) {
  const auto create = [this](MemoryDisk& disk) {
    World world{clock_, random_, disk};
    auto folder = open_data_folder(world, options_);
    if (!folder) return false;
    return !folder->is_new || static_cast<bool>(create_log(world, options_, *folder));
  };
  MemoryDisk counted;
  ASSERT_TRUE(create(counted));
  for (uint64_t change = 0; change < counted.changes(); ++change) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      MemoryDisk disk;
      disk.cut_power_at(change);
      create(disk);
      SeededRandom random(seed);
      disk.crash(random);
      World world{clock_, random, disk};
      const auto folder = open_data_folder(world, options_);
      ASSERT_TRUE(folder) << "cut at change " << change << ", seed " << seed << ": " << folder.error().message;
    }
  }
}

TEST_F(DataFolderTest, EveryFlippedBitOfCurrentIsRefused) {
  make();
  const auto content = disk_.content("data/CURRENT");
  ASSERT_TRUE(content);
  for (uint64_t bit = 0; bit < content->size() * 8; ++bit) {
    const auto damaged = disk_.clone();
    damaged->flip_bit("data/CURRENT", bit);
    World world{clock_, random_, *damaged};
    const auto folder = open_data_folder(world, options_);
    ASSERT_FALSE(folder) << "bit " << bit;
    EXPECT_EQ(folder.error().code, Code::kDataLoss);
    EXPECT_THAT(folder.error().message, HasSubstr("data/CURRENT"));
  }
}

TEST_F(DataFolderTest, ALostCurrentIsNamedWithItsCure) {
  make();
  ASSERT_TRUE(disk_.remove("data/CURRENT"));
  EXPECT_THAT(refusal(), HasSubstr("its one line would be one of: \"0-0 "));
}

TEST_F(DataFolderTest, KeepsItsNumber) {
  make();
  const uint64_t id = open()->id;
  EXPECT_NE(id, 0U);
  EXPECT_EQ(open()->id, id);
  const auto content = disk_.content("data/FOLDER");
  ASSERT_TRUE(content);
  for (uint64_t bit = 0; bit < content->size() * 8; ++bit) {
    const auto damaged = disk_.clone();
    damaged->flip_bit("data/FOLDER", bit);
    World world{clock_, random_, *damaged};
    const auto folder = open_data_folder(world, options_);
    ASSERT_FALSE(folder) << "bit " << bit;
    EXPECT_EQ(folder.error().code, Code::kDataLoss);
    EXPECT_THAT(folder.error().message, HasSubstr("data/FOLDER"));
  }
}

TEST_F(DataFolderTest, ALostNumberIsFoundInTheStore) {
  make();
  ASSERT_TRUE(disk_.remove("data/FOLDER"));
  const uint64_t drawn = open()->id;  // a folder of an earlier version has none
  EXPECT_NE(drawn, 0U);
  EXPECT_EQ(open()->id, drawn);
  {
    auto folder = open();
    apply::Members members;
    apply::Member self;
    self.id = folder->contents.identity.member_id;
    self.folder_id = 77;
    ASSERT_TRUE(members.add(self));
    auto txn = folder->store->begin();
    ASSERT_TRUE(txn);
    store::Meta meta = folder->store->meta();
    meta.membership = members.serialize();
    ASSERT_TRUE((*txn)->set_meta(meta));
    ASSERT_TRUE((*txn)->commit());
  }
  ASSERT_TRUE(disk_.remove("data/FOLDER"));
  EXPECT_EQ(open()->id, 77U);
}

TEST_F(DataFolderTest, ALostStoreIsRefused) {
  make();
  ASSERT_TRUE(disk_.remove_directory("data/store"));
  EXPECT_NE(refusal(), "opened");
}

TEST_F(DataFolderTest, ALogOfAnOlderTimeIsRefused) {
  make();
  apply_to_store(5);
  EXPECT_THAT(refusal(), HasSubstr("the log has lost its end"));
}

TEST_F(DataFolderTest, AStoreWithoutItsLogIsRefused) {
  make();
  apply_to_store(5);
  ASSERT_TRUE(disk_.remove_directory("data/wal"));
  EXPECT_THAT(refusal(), HasSubstr("there is no Raft log here"));
}

// A release that did not refuse such messages may have written it.
TEST_F(DataFolderTest, ATermThatNoClusterReachesIsRefused) {
  make();
  {
    auto folder = open();
    ASSERT_TRUE(folder);
    wal::WalBatch batch;
    batch.hard_state = HardState{.term = ~uint64_t{0}};
    ASSERT_TRUE(folder->wal->append(batch));
  }
  const auto folder = open();
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, Code::kDataLoss);
  EXPECT_THAT(folder.error().message, HasSubstr("has reached term 18446744073709551615"));
}

TEST_F(DataFolderTest, IdsFollowFromUrlsAndTokenAsEtcds) {
  const wal::Identity identity = identity_of(options_);
  options_.cluster_token = "other";
  EXPECT_NE(identity_of(options_).member_id, identity.member_id);
  EXPECT_NE(identity_of(options_).cluster_id, identity.cluster_id);
}

}  // namespace
}  // namespace member
