#include "wal/wal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "wal/segment.h"
#include "wal/spare.h"
#include "wal/wal_test_model.h"

namespace wal {
namespace {

using testing::HasSubstr;

WalBatch one(uint64_t index, uint64_t term, Bytes data) {
  return {.entries = {make_entry(index, term, std::move(data))}};
}

std::string newest_segment(Disk& disk) {
  const auto names = *disk.list(kFolder);
  std::string newest;
  for (const auto& name : names) {
    if (is_segment_file(name)) newest = name;
  }
  return std::string(kFolder) + "/" + newest;
}

TEST(Wal, AnEmptyFolderHoldsNone) {
  MemoryDisk disk;
  EXPECT_FALSE(*Wal::exists(disk, kFolder));
  EXPECT_TRUE(disk.create_directory(kFolder));
  EXPECT_FALSE(*Wal::exists(disk, kFolder));
  EXPECT_EQ(Wal::open(disk, small_segments()).error().code, Code::kNotFound);
  ASSERT_TRUE(create_small(disk));
  EXPECT_TRUE(*Wal::exists(disk, kFolder));
  EXPECT_EQ(create_small(disk).error().code, Code::kAlreadyExists);
}

TEST(Wal, GivesBackWhatWasAppended) {
  MemoryDisk disk;
  Model model;
  auto wal = *create_small(disk);
  const std::vector<WalBatch> batches = {
      {.hard_state = HardState{1, 11, 0}},
      {.hard_state = HardState{1, 11, 0}, .entries = {make_entry(1, 1, ""), make_entry(2, 1, "two")}},
      {.hard_state = HardState{1, 11, 2},
       .entries = {make_entry(3, 1, Bytes(1000, 'x'))},
       .mark = StoreMark{2, 5, 6, 7, true}},
      {}};
  for (const auto& batch : batches) {
    ASSERT_TRUE(wal->append(batch));
    model.apply(batch);
  }
  wal.reset();
  const auto opened = *Wal::open(disk, small_segments());
  EXPECT_TRUE(model.equals(opened.contents, 0));
  EXPECT_TRUE(opened.contents.notes.empty());
  EXPECT_EQ(opened.wal->hard_state(), (HardState{1, 11, 2}));
  EXPECT_EQ(opened.wal->last_index(), 3u);
}

TEST(Wal, AConflictSupersedesAcrossSegments) {
  MemoryDisk disk;
  auto wal = *create_small(disk);
  for (uint64_t index = 1; index <= 20; ++index) ASSERT_TRUE(wal->append(one(index, 1, Bytes(1000, 'a'))));
  ASSERT_GT(wal->segment_count(), 4u);
  ASSERT_TRUE(wal->append(one(3, 2, "new three")));
  ASSERT_TRUE(wal->append(one(4, 2, "new four")));
  const auto contents = Wal::open(disk, small_segments())->contents;
  EXPECT_EQ(contents.last_index(), 4u);
  EXPECT_EQ(*contents.entries[1].data, Bytes(1000, 'a'));
  EXPECT_EQ(*contents.entries[2].data, "new three");
  EXPECT_EQ(contents.entries[3].term, 2u);
}

TEST(Wal, OneBatchMayHoldAConflictOfJoinedHandOvers) {
  MemoryDisk disk;
  auto wal = *create_small(disk);
  ASSERT_TRUE(wal->append({.entries = {make_entry(1, 1, "a"), make_entry(2, 1, "b"), make_entry(2, 2, "c")}}));
  EXPECT_EQ(*Wal::open(disk, small_segments())->contents.entries.at(1).data, "c");
}

TEST(Wal, ABatchLargerThanASegmentGetsALargerOne) {
  MemoryDisk disk;
  auto wal = *create_small(disk);
  ASSERT_TRUE(wal->append(one(1, 1, "small")));
  ASSERT_TRUE(wal->append(one(2, 1, Bytes(100'000, 'b'))));
  ASSERT_TRUE(wal->append(one(3, 1, "small again")));
  const auto contents = Wal::open(disk, small_segments())->contents;
  ASSERT_EQ(contents.last_index(), 3u);
  EXPECT_EQ(contents.entries[1].data->size(), 100'000u);
}

TEST(Wal, LimitsAreRefusedAndNothingHappens) {
  MemoryDisk disk;
  auto wal = *create_small(disk);
  EXPECT_EQ(wal->append(one(1, 1, Bytes(kEntryBytesMax + 1, 'x'))).error().code, Code::kInvalidArgument);
  const auto large = std::make_shared<const Bytes>(kEntryBytesMax, 'x');
  WalBatch batch;
  for (uint64_t index = 1; index <= 3; ++index) batch.entries.push_back({.index = index, .term = 1, .data = large});
  EXPECT_EQ(wal->append(batch).error().code, Code::kInvalidArgument);
  EXPECT_EQ(wal->append({.snapshot = SnapshotRecord{1, 1, Bytes(kNoteBytesMax + 1, 'x')}}).error().code,
            Code::kInvalidArgument);
  batch.entries.resize(1);
  ASSERT_TRUE(wal->append(batch));
  EXPECT_EQ(Wal::open(disk, small_segments())->contents.last_index(), 1u);
}

TEST(Wal, ASnapshotRecordEmptiesTheLog) {
  MemoryDisk disk;
  auto wal = *create_small(disk);
  for (uint64_t index = 1; index <= 10; ++index) ASSERT_TRUE(wal->append(one(index, 1, Bytes(900, 'a'))));
  ASSERT_TRUE(wal->append({.hard_state = HardState{3, 0, 8}, .snapshot = SnapshotRecord{8, 2, "members"}}));
  ASSERT_TRUE(wal->append(one(9, 3, "nine")));
  EXPECT_EQ(wal->base_index(), 8u);
  ASSERT_TRUE(wal->drop_before(9));
  EXPECT_EQ(wal->base_index(), 8u);
  const auto contents = Wal::open(disk, small_segments())->contents;
  EXPECT_EQ(contents.base_index, 8u);
  EXPECT_EQ(contents.base_term, 2u);
  ASSERT_EQ(contents.entries.size(), 1u);
  EXPECT_EQ(contents.snapshot->data, "members");
}

TEST(Wal, DroppingKeepsWhatIsNeededAndRestatesTheRest) {
  MemoryDisk disk;
  auto wal = *create_small(disk);
  ASSERT_TRUE(wal->append({.hard_state = HardState{4, 11, 0}, .mark = StoreMark{40, 1, 2, 3, true}}));
  ASSERT_TRUE(wal->append({.hard_state = HardState{4, 11, 5}, .snapshot = SnapshotRecord{5, 4, "at five"}}));
  for (uint64_t index = 6; index <= 40; ++index) {
    ASSERT_TRUE(
        wal->append({.hard_state = HardState{4, 11, index}, .entries = {make_entry(index, 4, Bytes(700, 'a'))}}));
  }
  const uint64_t before = wal->bytes_on_disk();
  ASSERT_TRUE(wal->drop_before(30));
  EXPECT_LT(wal->bytes_on_disk(), before);
  EXPECT_LT(wal->base_index(), 30u);
  EXPECT_GT(wal->base_index(), 20u);
  auto contents = Wal::open(disk, small_segments())->contents;
  EXPECT_EQ(contents.base_index, wal->base_index());
  EXPECT_EQ(contents.base_term, 4u);
  EXPECT_EQ(contents.last_index(), 40u);
  EXPECT_EQ(contents.hard_state, (HardState{4, 11, 40}));
  EXPECT_EQ(contents.mark, (StoreMark{40, 1, 2, 3, true}));
  EXPECT_EQ(contents.snapshot->data, "at five");
  ASSERT_TRUE(wal->drop_before(41));
  EXPECT_EQ(wal->segment_count(), 1u);  // the newest stays
  EXPECT_EQ(Wal::open(disk, small_segments())->contents.last_index(), 40u);
}

TEST(Wal, RandomWorkWithManyReopensMatchesTheModel) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    SeededRandom random(seed);
    MemoryDisk disk;
    Model model;
    uint64_t droppable = 0;
    auto wal = *create_small(disk);
    for (int step = 0; step < 300; ++step) {
      const WalBatch batch = random_batch(model, random, 400);
      ASSERT_TRUE(wal->append(batch));
      model.apply(batch);
      if (random.below(10) == 0) {
        ASSERT_TRUE(wal->prepare());
      }
      if (random.below(10) == 0) {
        ASSERT_TRUE(wal->seal());
      }
      if (random.below(20) == 0) {
        droppable = std::max(droppable, model.hard_state.commit);
        ASSERT_TRUE(wal->drop_before(model.hard_state.commit));
      }
      if (random.below(15) != 0) continue;
      const uint64_t base = wal->base_index();
      wal.reset();
      if (random.below(2) == 0) disk.crash(random);
      auto opened = Wal::open(disk, small_segments());
      ASSERT_TRUE(opened) << opened.error().message;
      ASSERT_TRUE(model.equals(opened->contents, droppable));
      ASSERT_EQ(opened->contents.base_index, base);
      ASSERT_TRUE(opened->contents.notes.empty());
      wal = std::move(opened->wal);
      ASSERT_EQ(wal->base_index(), base);
    }
  }
}

TEST(Wal, PreparingAheadLeavesNothingToDoForTheCut) {
  MemoryDisk disk;
  const Options options = small_segments(8 * kSpareStepBytes);
  SeededRandom random(1);
  auto wal = *Wal::create(disk, options, kIdentity, random);
  EXPECT_FALSE(*wal->prepare());  // less than half full
  uint64_t index = 0;
  uint64_t writes_max = 0;
  for (int i = 0; i < 40; ++i) {
    const uint64_t before = disk.calls(MemoryDisk::Operation::kWrite);
    ASSERT_TRUE(wal->append(one(++index, 1, Bytes(kSpareStepBytes / 4, 'x'))));
    writes_max = std::max(writes_max, disk.calls(MemoryDisk::Operation::kWrite) - before);
  }
  EXPECT_EQ(wal->segment_count(), 2u);
  EXPECT_LE(writes_max,
            2u);  // never more than one step of filling (or the new segment's start) beside the batch itself
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(wal->append(one(++index, 1, Bytes(kSpareStepBytes / 4, 'x'))));
  int steps = 1;
  while (*wal->prepare()) ++steps;
  EXPECT_GE(steps, 3);
  EXPECT_FALSE(*wal->prepare());
}

// --- what is refused

TEST(Wal, ANewerFormatIsRefusedUntouched) {
  MemoryDisk disk;
  auto wal = *create_small(disk);
  for (uint64_t index = 1; index <= 9; ++index) ASSERT_TRUE(wal->append(one(index, 1, Bytes(900, 'a'))));
  const std::string path = newest_segment(disk);
  Bytes content = *disk.content(path);
  content[8] = 2;
  content[12] = 2;
  const uint32_t crc = crc32c(as_bytes(std::string_view(content).substr(0, kSegmentHeaderBytes - 4)));
  std::memcpy(content.data() + kSegmentHeaderBytes - 4, &crc, 4);
  disk.put(path, as_bytes(content));
  const uint64_t changes = disk.changes();
  const auto refused = Wal::open(disk, small_segments());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().message, HasSubstr("format 2"));
  EXPECT_EQ(disk.changes(), changes);
}

TEST(Wal, AMissingSegmentIsDamage) {
  MemoryDisk disk;
  auto wal = *create_small(disk);
  for (uint64_t index = 1; index <= 20; ++index) ASSERT_TRUE(wal->append(one(index, 1, Bytes(900, 'a'))));
  const auto names = *disk.list(kFolder);
  ASSERT_TRUE(disk.remove(std::string(kFolder) + "/" + names[2]));
  const auto refused = Wal::open(disk, small_segments());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDataLoss);
  EXPECT_THAT(refused.error().message, HasSubstr("segment 3 before it is missing"));
}

TEST(Wal, ACutFileIsDamage) {
  MemoryDisk disk;
  auto wal = *create_small(disk);
  ASSERT_TRUE(wal->append(one(1, 1, "a")));
  const std::string path = newest_segment(disk);
  for (const uint64_t size : {uint64_t{0}, uint64_t{100}, kSegmentHeaderBytes, uint64_t{300}, kSegmentBytesMin - 1}) {
    Bytes content = *disk.content(path);
    const auto copy = disk.clone();
    content.resize(size);
    copy->put(path, as_bytes(content));
    EXPECT_EQ(Wal::open(*copy, small_segments()).error().code, Code::kDataLoss) << size;
  }
}

TEST(Wal, ASegmentOfAnotherLogIsDamage) {
  MemoryDisk disk;
  MemoryDisk other;
  SeededRandom random(1);
  auto wal = *create_small(disk);
  auto foreign = *Wal::create(other, small_segments(), kIdentity, random);  // the same member, another salt
  for (uint64_t index = 1; index <= 20; ++index) {
    ASSERT_TRUE(wal->append(one(index, 1, Bytes(900, 'a'))));
    ASSERT_TRUE(foreign->append(one(index, 1, Bytes(900, 'a'))));
  }
  const std::string path = newest_segment(disk);
  disk.put(path, as_bytes(*other.content(path)));
  const auto refused = Wal::open(disk, small_segments());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("belongs to another log"));
}

TEST(Wal, ALogThatEndsBelowItsCommitIsDamage) {
  MemoryDisk disk;
  auto wal = *create_small(disk);
  ASSERT_TRUE(
      wal->append({.hard_state = HardState{1, 1, 2}, .entries = {make_entry(1, 1, "a"), make_entry(2, 1, "b")}}));
  ASSERT_TRUE(wal->append({.entries = {make_entry(3, 2, "c")}}));
  wal.reset();
  // As if batch 3 had come from another history: rebuild it with a commit index that the log does not reach.
  const std::string path = newest_segment(disk);
  Bytes content = *disk.content(path);
  const auto header = read_segment_header(std::as_writable_bytes(std::span(content)))->header;
  uint64_t offset = kSegmentHeaderBytes;
  for (uint64_t batch = header.first_batch; batch < 3; ++batch) {
    offset = read_frame(std::as_writable_bytes(std::span(content)), offset, header.salt, batch)->end;
  }
  Bytes frame(kFrameHeaderBytes, '\0');
  append_integer(frame, uint32_t{1});
  append_integer(frame, uint32_t{24});
  append_integer(frame, uint64_t{1});
  append_integer(frame, uint64_t{1});
  append_integer(frame, uint64_t{9});
  finish_frame(header.salt, 3, 0, frame);
  content.replace(offset, frame.size(), frame);
  disk.put(path, as_bytes(content));
  const auto refused = Wal::open(disk, small_segments());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("entries up to 9 are committed, but the log ends at 2"));
}

}  // namespace
}  // namespace wal
