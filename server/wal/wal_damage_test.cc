// Flipped bits, damaged sectors, torn tails: repaired, refused or cut, never a silent loss of what was acknowledged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "wal/checksum.h"
#include "wal/segment.h"
#include "wal/wal_test_model.h"

namespace wal {
namespace {

using testing::HasSubstr;

struct Log {
  MemoryDisk disk;
  Model model;
  std::vector<std::string> segments;
  std::vector<uint64_t> ends;  // of each batch in the newest segment, ascending; the first is the end of the checkpoint
};

void fill(Log& log, uint64_t seed, uint64_t segment_bytes, int batches, uint64_t data_bytes_max) {
  SeededRandom random(seed);
  auto wal = *create_small(log.disk, segment_bytes);
  for (int i = 0; i < batches; ++i) {
    const WalBatch batch = random_batch(log.model, random, data_bytes_max);
    ASSERT_TRUE(wal->append(batch));
    log.model.apply(batch);
  }
  const auto names = *log.disk.list(kFolder);
  for (const auto& name : names) {
    if (is_segment_file(name)) log.segments.push_back(std::string(kFolder) + "/" + name);
  }
  Bytes content = *log.disk.content(log.segments.back());
  const auto bytes = std::as_writable_bytes(std::span(content));
  const auto header = read_segment_header(bytes)->header;
  uint64_t offset = kSegmentHeaderBytes;
  for (uint64_t batch = header.first_batch;; ++batch) {
    const auto found = read_frame(bytes, offset, header.salt, batch);
    if (!found) break;
    log.ends.push_back(offset = found->end);
  }
}

// Every flip is put right: the content is complete, the repair is told and durable.
void expect_repaired(const Log& log, const std::string& path, uint64_t bit, SeededRandom& random) {
  SCOPED_TRACE(path + " bit " + std::to_string(bit));
  const auto copy = log.disk.clone();
  copy->flip_bit(path, bit);
  auto opened = Wal::open(*copy, small_segments());
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(log.model.equals(opened->contents, 0));
  opened->wal.reset();
  copy->crash(random);
  opened = Wal::open(*copy, small_segments());
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(log.model.equals(opened->contents, 0));
  ASSERT_TRUE(opened->contents.notes.empty());
}

TEST(WalFlips, EveryByteOfASmallLogIsRepaired) {
  Log log;
  fill(log, 3, 4096, 25, 200);
  ASSERT_GE(log.segments.size(), 2u);
  SeededRandom random(5);
  for (const auto& path : log.segments) {
    const uint64_t size = log.disk.content(path)->size();
    for (uint64_t byte = 0; byte < size; ++byte) {
      expect_repaired(log, path, byte * 8 + random.below(8), random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(WalFlips, EveryBitOfTheLastBatchIsRepaired) {
  Log log;
  fill(log, 4, 4096, 14, 100);
  ASSERT_GE(log.ends.size(), 2u);
  SeededRandom random(5);
  for (uint64_t bit = log.ends[log.ends.size() - 2] * 8; bit < log.ends.back() * 8; ++bit) {
    expect_repaired(log, log.segments.back(), bit, random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(WalFlips, AThousandAnywhereInALargerLogAreRepaired) {
  Log log;
  fill(log, 6, 256 << 10, 150, 2000);
  SeededRandom random(7);
  for (int i = 0; i < 1000; ++i) {
    const auto& path = log.segments[random.below(log.segments.size())];
    expect_repaired(log, path, random.below(log.disk.content(path)->size() * 8), random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(WalFlips, ARepairIsReportedToTheOperator) {
  Log log;
  fill(log, 3, 4096, 25, 200);
  log.disk.flip_bit(log.segments.front(), (kSegmentHeaderBytes + 20) * 8);
  const auto contents = Wal::open(log.disk, small_segments())->contents;
  EXPECT_EQ(contents.flips_repaired, 1u);
  ASSERT_EQ(contents.notes.size(), 1u);
  EXPECT_THAT(contents.notes[0], HasSubstr("at offset " + std::to_string(kSegmentHeaderBytes + 20)));
}

// More than one bit, anywhere but in the last batch: refused, and nothing is changed.
TEST(WalDamage, BeforeTheLastBatchIsRefusedUntouched) {
  Log log;
  fill(log, 8, 8192, 60, 300);
  ASSERT_GE(log.segments.size(), 2u);
  SeededRandom random(9);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const size_t number = random.below(log.segments.size());
    const auto& path = log.segments[number];
    const auto copy = log.disk.clone();
    Bytes content = *copy->content(path);
    const bool newest = number + 1 == log.segments.size();
    // The part that holds batches which are known to be durable.
    const uint64_t end = newest ? log.ends[log.ends.size() - 2] : kSegmentHeaderBytes + 2000;
    const uint64_t from = random.below(end);
    const uint64_t count = std::min(end - from, 2 + random.below(600));
    const bool zeros = random.below(2) == 0;
    Bytes before = content.substr(from, count);
    for (uint64_t at = from; at < from + count; ++at) content[at] = zeros ? '\0' : static_cast<char>(random.next());
    int differing_bits = 0;
    for (uint64_t at = 0; at < count; ++at) {
      differing_bits += std::popcount(static_cast<uint8_t>(before[at] ^ content[from + at]));
    }
    if (differing_bits < 2) continue;
    copy->put(path, as_bytes(content));
    const auto opened = Wal::open(*copy, small_segments());
    if (opened) {  // only if the damage can be undone, or hit nothing of a batch (the rest of a full segment)
      ASSERT_TRUE(log.model.equals(opened->contents, 0)) << path << " from " << from << " count " << count;
      continue;
    }
    ++refused;
    ASSERT_EQ(opened.error().code, Code::kDataLoss);
    ASSERT_THAT(opened.error().message, HasSubstr(path));
    ASSERT_THAT(opened.error().message, HasSubstr("offset"));
    ASSERT_EQ(copy->changes(), 0u);
  }
  EXPECT_GT(refused, 1800);
}

TEST(WalDamage, OfALengthDoesNotHideLaterBatches) {
  Log log;
  fill(log, 8, 64 << 10, 30, 300);
  const uint64_t middle = log.ends[log.ends.size() / 2];
  Bytes content = *log.disk.content(log.segments.back());
  content.replace(middle + 16, 4, "\xff\xff\xff\xff");
  log.disk.put(log.segments.back(), as_bytes(content));
  const auto opened = Wal::open(log.disk, small_segments());
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("offset " + std::to_string(middle)));
  EXPECT_THAT(opened.error().message, HasSubstr("later batch"));
}

TEST(WalDamage, OfTheLastBatchIsATornTailUnlessTheLogWasSealed) {
  for (const bool sealed : {false, true}) {
    MemoryDisk disk;
    auto wal = *create_small(disk);
    for (uint64_t index = 1; index <= 3; ++index) {
      ASSERT_TRUE(wal->append({.entries = {make_entry(index, 1, Bytes(100, 'a'))}}));
    }
    const std::string path = std::string(kFolder) + "/" + disk.list(kFolder)->back();
    const uint64_t last_a = disk.content(path)->find_last_of('a');
    if (sealed) {
      ASSERT_TRUE(wal->seal());
    }
    wal.reset();
    Bytes content = *disk.content(path);
    content.replace(last_a - 50, 40, Bytes(40, '\0'));
    disk.put(path, as_bytes(content));
    const auto opened = Wal::open(disk, small_segments());
    ASSERT_EQ(opened.has_value(), !sealed);
    if (!sealed) {
      EXPECT_EQ(opened->contents.last_index(), 2u);
      EXPECT_GT(opened->contents.torn_bytes_cut, 0u);
      EXPECT_EQ(opened->contents.notes.size(), 1u);
    }
  }
}

TEST(WalDamage, ARefusedReadIsNotTakenForTheEnd) {
  Log log;
  fill(log, 8, 8192, 60, 300);
  for (uint64_t nth = 1; nth <= 2 * log.segments.size(); ++nth) {
    const auto copy = log.disk.clone();
    copy->inject({.operation = MemoryDisk::Operation::kRead, .nth = nth});
    EXPECT_EQ(Wal::open(*copy, small_segments()).error().code, Code::kDataLoss);
  }
}

TEST(Checksum, FindsTheFlippedBit) {
  SeededRandom random(1);
  for (const size_t size : {1u, 2u, 36u, 1000u, 20000u}) {
    Bytes bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.next());
    const uint32_t expected = crc32c(as_bytes(bytes));
    for (int i = 0; i < 50; ++i) {
      const uint64_t bit = random.below(size * 8);
      Bytes flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      const auto found = find_flipped_bit(size, expected, crc32c(as_bytes(flipped)));
      ASSERT_TRUE(found);
      EXPECT_EQ(found->byte * 8 + found->bit, bit);
      EXPECT_NE(hash64(as_bytes(flipped)), hash64(as_bytes(bytes)));
    }
  }
  EXPECT_EQ(hash64({}), hash64({}));
  EXPECT_NE(hash64(as_bytes(Bytes(8, '\0'))), hash64(as_bytes(Bytes(16, '\0'))));
}

}  // namespace
}  // namespace wal
