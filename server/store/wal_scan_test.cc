#include "store/wal_scan.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "store/format.h"
#include "store/test_support.h"

namespace store {
namespace {

using test::kWal;

class WalScanTest : public testing::Test {
 protected:
  void SetUp() override {
    test::make_folder(disk_);
    const auto store = std::move(*test::open_store(disk_));
    for (int c = 1; c <= 8; ++c) ASSERT_TRUE(test::commit(*store, c));
    wal_ = *disk_.content(kWal);
    whole_ = scan();
    ASSERT_GT(whole_.frames, 20u);
  }
  WalScan scan() { return *scan_wal(**disk_.open(kWal, OpenMode::kRead), table_); }

  MemoryDisk disk_;
  FrameTable table_;
  Bytes wal_;
  WalScan whole_;
};

TEST_F(WalScanTest, FindsEveryFrameOfAWholeLog) {
  EXPECT_TRUE(whole_.header_valid);
  EXPECT_EQ(whole_.frames, whole_.committed);
  EXPECT_EQ(whole_.file_bytes, wal_.size());
  EXPECT_EQ(wal_bytes_of(whole_.frames), wal_.size());
  for (uint32_t frame = 1; frame <= whole_.frames; ++frame) {
    EXPECT_EQ(table_.get(frame), crc32c(as_bytes(wal_.substr(frame_offset(frame) + kFrameHeaderBytes, kPageBytes))));
  }
  EXPECT_EQ(table_.get(whole_.frames + 1), std::nullopt);
  EXPECT_EQ(table_.get(1ULL << 40), std::nullopt);
}

TEST_F(WalScanTest, AnAbsentOrShortOrForeignHeaderIsNone) {
  for (const size_t bytes : {size_t{0}, size_t{31}}) {
    disk_.put(kWal, as_bytes(wal_.substr(0, bytes)));
    EXPECT_FALSE(scan().header_valid);
  }
  for (size_t bit = 0; bit < 8 * kWalHeaderBytes; ++bit) {
    disk_.put(kWal, as_bytes(wal_));
    disk_.flip_bit(kWal, bit);
    EXPECT_FALSE(scan().header_valid) << bit;
    EXPECT_EQ(scan().frames, 0u);
  }
}

TEST_F(WalScanTest, EndsAtADamagedFrameAndAtTheCommitBefore) {
  SeededRandom random(5);
  for (int i = 0; i < 300; ++i) {
    disk_.put(kWal, as_bytes(wal_));
    const uint64_t bit = 8 * kWalHeaderBytes + random.below(8 * (wal_.size() - kWalHeaderBytes));
    disk_.flip_bit(kWal, bit);
    const WalScan found = scan();
    EXPECT_EQ(found.frames, (bit / 8 - kWalHeaderBytes) / kFrameBytes) << bit;
    EXPECT_LE(found.committed, found.frames);
  }
}

TEST_F(WalScanTest, ACutFrameDoesNotCount) {
  disk_.put(kWal, as_bytes(wal_.substr(0, wal_bytes_of(3) + kFrameBytes - 1)));
  EXPECT_EQ(scan().frames, 3u);
}

TEST_F(WalScanTest, FindsTheNewestCommittedFirstPage) {
  Bytes newest;
  for (uint32_t frame = 1; frame <= whole_.frames; ++frame) {
    if (load_big32(wal_.data() + frame_offset(frame)) == 1) {
      newest = wal_.substr(frame_offset(frame) + kFrameHeaderBytes, kPageBytes);
    }
  }
  ASSERT_FALSE(newest.empty());
  EXPECT_EQ(whole_.first_page, newest);
}

}  // namespace
}  // namespace store
