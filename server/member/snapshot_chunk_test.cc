#include "member/snapshot_chunk.h"

#include <gtest/gtest.h>

#include "base/memory_disk.h"
#include "member/snapshot_files.h"

namespace member {
namespace {

constexpr Time kTime = std::chrono::seconds(7);

class SnapshotChunksTest : public testing::Test {
 protected:
  SnapshotChunksTest() {
    for (size_t i = 0; i < 3'000'000; ++i) content_ += static_cast<char>(i * i >> 7);
    disk_.put("data/snap/3-40.snap", as_bytes(content_));
  }
  PieceAnswer read(const Generation& snapshot, uint64_t offset, uint32_t bytes) {
    auto answer = chunks_.read({.snapshot = snapshot, .offset = offset, .bytes = bytes}, kTime);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : PieceAnswer{};
  }
  Bytes content_;
  MemoryDisk disk_;
  SnapshotChunks chunks_{disk_, "data"};
};

TEST_F(SnapshotChunksTest, GivesAnyPiece) {
  for (const uint64_t offset : {0UL, 1UL, 1'000'000UL, 2'999'999UL, 3'000'000UL, 9'000'000UL}) {
    const PieceAnswer answer = read({3, 40}, offset, 1000);
    EXPECT_EQ(answer.status, PieceAnswer::Status::kHere);
    EXPECT_EQ(answer.file_bytes, content_.size());
    EXPECT_EQ(answer.offset, offset);
    EXPECT_EQ(answer.bytes, offset < content_.size() ? content_.substr(offset, 1000) : Bytes()) << offset;
  }
  EXPECT_EQ(read({3, 40}, 5, 4'000'000'000U).bytes.size(), kSnapshotPieceBytesMax) << "no more than the limit";
}

TEST_F(SnapshotChunksTest, SaysWhatIsGone) {
  EXPECT_EQ(read({3, 41}, 0, 10).status, PieceAnswer::Status::kGone);
  EXPECT_EQ(read({4, 40}, 0, 10).status, PieceAnswer::Status::kGone);
}

TEST_F(SnapshotChunksTest, KeepsFewFilesOpen) {
  for (uint64_t index = 100; index < 120; ++index) {
    disk_.put(snapshot_path("data", {1, index}), as_bytes(std::to_string(index)));
  }
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t index = 100; index < 120; ++index) {
      EXPECT_EQ(read({1, index}, 0, 10).bytes, std::to_string(index));
      EXPECT_EQ(chunks_.last_use({1, index}), kTime);
    }
  }
  EXPECT_EQ(chunks_.last_use({1, 100}), std::nullopt) << "closed for others";
}

TEST(SnapshotFrames, ReadBackWhatWasWritten) {
  const PieceRequest request{.snapshot = {7, 1ULL << 60}, .offset = 12, .bytes = 345};
  const auto read = decode_piece_request(as_bytes(encode(request)));
  ASSERT_TRUE(read);
  EXPECT_TRUE(is_piece_request(as_bytes(encode(request))));
  EXPECT_EQ(read->snapshot, request.snapshot);
  EXPECT_EQ(read->offset, request.offset);
  EXPECT_EQ(read->bytes, request.bytes);
  const PieceAnswer answer{
      .status = PieceAnswer::Status::kGone, .snapshot = {1, 2}, .offset = 3, .file_bytes = 4, .bytes = "five"};
  const auto heard = decode_piece_answer(as_bytes(encode(answer)));
  ASSERT_TRUE(heard);
  EXPECT_FALSE(is_piece_request(as_bytes(encode(answer))));
  EXPECT_EQ(heard->status, answer.status);
  EXPECT_EQ(heard->snapshot, answer.snapshot);
  EXPECT_EQ(heard->offset, answer.offset);
  EXPECT_EQ(heard->file_bytes, answer.file_bytes);
  EXPECT_EQ(heard->bytes, answer.bytes);
}

TEST(SnapshotFrames, WhatIsCutOrOfAnotherVersionIsNoFrame) {
  const Bytes request = encode(PieceRequest{.snapshot = {1, 2}, .offset = 3, .bytes = 4});
  const Bytes answer = encode(PieceAnswer{.snapshot = {1, 2}, .bytes = "abc"});
  for (size_t bytes = 0; bytes < request.size(); ++bytes) {
    EXPECT_FALSE(decode_piece_request(as_bytes(request).first(bytes)));
  }
  for (size_t bytes = 0; bytes < answer.size(); ++bytes) {
    EXPECT_FALSE(decode_piece_answer(as_bytes(answer).first(bytes)));
  }
  EXPECT_FALSE(decode_piece_answer(as_bytes(answer + "x")));
  EXPECT_FALSE(decode_piece_answer(as_bytes(request)));
  EXPECT_FALSE(decode_piece_request(as_bytes(answer)));
  Bytes other = answer;
  other[1] = 9;
  EXPECT_FALSE(decode_piece_answer(as_bytes(other)));
  other = answer;
  other[2] = 7;
  EXPECT_FALSE(decode_piece_answer(as_bytes(other))) << "no such status";
}

TEST(SnapshotFiles, NamesAreReadAsTheyAreWritten) {
  EXPECT_EQ(Generation::parse("12-345"), (Generation{12, 345}));
  EXPECT_EQ((Generation{12, 345}).name(), "12-345");
  for (const char* name : {"", "-", "1", "1-", "-1", "01-2", "1-02", "1-2x", "x1-2", "+1-2", "1--2", "1-2-3",
                           "99999999999999999999-1", "1-99999999999999999999"}) {
    EXPECT_EQ(Generation::parse(name), std::nullopt) << name;
  }
}

TEST(SnapshotFiles, ListsWhatIsOneInTheOrderOfIndexes) {
  MemoryDisk disk;
  EXPECT_TRUE(list_snapshots(disk, "data")->empty());
  for (const char* name : {"2-9.snap", "10-100.snap", "3-20.snap", "making.tmp", "x.snap", ".snap",
                           "incoming-4-50.part", "incoming-.part"}) {
    disk.put("data/snap/" + std::string(name), {});
  }
  EXPECT_EQ(*list_snapshots(disk, "data"), (std::vector<Generation>{{2, 9}, {3, 20}, {10, 100}}));
  EXPECT_EQ(*list_incoming(disk, "data"), (std::vector<Generation>{{4, 50}}));
}

}  // namespace
}  // namespace member
