// Whatever happens to the file: it is refused, with its name, and never read as something else.
#include <gmock/gmock.h>

#include "snapshot/test_content.h"

namespace snapshot {
namespace {

using testing::HasSubstr;
using Operation = MemoryDisk::Operation;

constexpr const char* kPath = "/snap";

Status read_all(Disk& disk) {
  TRY_ASSIGN(auto reader, Reader::open(disk, kPath));
  Reader::Chunk chunk;
  while (true) {
    TRY_ASSIGN(const bool more, reader->next(chunk));
    if (!more) return {};
  }
}

void expect_refused(Disk& disk, const std::string& what) {
  const Status read = read_all(disk);
  ASSERT_FALSE(read) << what;
  EXPECT_EQ(read.error().code, Code::kDataLoss) << what << ": " << read.error().message;
  EXPECT_THAT(read.error().message, HasSubstr(kPath)) << what;
}

class SnapshotDamage : public testing::Test {
 protected:
  SnapshotDamage() {
    SeededRandom random(3);
    const auto content = test::random_content(random, 3, 12, 60);
    EXPECT_TRUE(test::write(disk_, kPath, content));
    file_ = *disk_.content(kPath);
  }
  MemoryDisk disk_;
  Bytes file_;
};

TEST_F(SnapshotDamage, EveryFlippedBitIsRefused) {
  for (uint64_t bit = 0; bit < file_.size() * 8; ++bit) {
    disk_.flip_bit(kPath, bit);
    expect_refused(disk_, "bit " + std::to_string(bit));
    disk_.flip_bit(kPath, bit);
    if (HasFailure()) return;
  }
  EXPECT_TRUE(read_all(disk_));
}

TEST_F(SnapshotDamage, EveryCutIsRefused) {
  for (size_t bytes = 0; bytes < file_.size(); ++bytes) {
    disk_.put(kPath, as_bytes(file_).first(bytes));
    expect_refused(disk_, "cut after " + std::to_string(bytes));
    if (HasFailure()) return;
  }
  disk_.put(kPath, as_bytes(file_ + "x"));
  expect_refused(disk_, "a byte too many");
}

TEST_F(SnapshotDamage, EveryStretchOfZerosIsRefused) {
  SeededRandom random(1);
  for (int i = 0; i < 2000; ++i) {
    Bytes torn = file_;
    const size_t begin = random.below(torn.size());
    const size_t bytes = std::min<size_t>(1 + random.below(700), torn.size() - begin);
    torn.replace(begin, bytes, bytes, '\0');
    if (torn == file_) continue;
    disk_.put(kPath, as_bytes(torn));
    expect_refused(disk_, std::to_string(bytes) + " zeros at " + std::to_string(begin));
    if (HasFailure()) return;
  }
}

// Chunks whose checksums are right in a row that is not.
TEST_F(SnapshotDamage, AMissingOrRepeatedChunkIsRefused) {
  SeededRandom random(5);
  const auto content = test::random_content(random, 40, 4000, 300);
  ASSERT_TRUE(test::write(disk_, kPath, content));
  file_ = *disk_.content(kPath);
  std::vector<size_t> chunks;
  for (size_t at = kHeaderBytes; at < file_.size() - kTrailerBytes;) {
    chunks.push_back(at);
    at += kChunkHeaderBytes + decode_chunk_header(as_bytes(file_).subspan(at)).bytes;
  }
  ASSERT_GT(chunks.size(), 4u);
  chunks.push_back(file_.size() - kTrailerBytes);
  const auto with_length = [&](Bytes made) {  // and with the trailer's checksums right
    auto end = *decode_trailer(as_bytes(made).subspan(made.size() - kTrailerBytes));
    end.file_bytes = made.size();
    end.crc = crc32c(as_bytes(made).first(made.size() - kTrailerBytes));
    Bytes trailer;
    encode(end, trailer);
    return made.replace(made.size() - kTrailerBytes, kTrailerBytes, trailer);
  };
  for (size_t i = 0; i + 1 < chunks.size(); ++i) {
    Bytes made = file_;
    made.erase(chunks[i], chunks[i + 1] - chunks[i]);
    disk_.put(kPath, as_bytes(with_length(made)));
    expect_refused(disk_, "without chunk " + std::to_string(i));
    made = file_;
    made.insert(chunks[i], file_.substr(chunks[i], chunks[i + 1] - chunks[i]));
    disk_.put(kPath, as_bytes(with_length(made)));
    expect_refused(disk_, "chunk " + std::to_string(i) + " twice");
  }
}

TEST(SnapshotFaults, AnErrorOfTheDiskAtAnyCallIsPassedOn) {
  SeededRandom random(1);
  const auto content = test::random_content(random, 10, 3000, 400);
  for (const Code code : {Code::kDataLoss, Code::kResourceExhausted}) {
    for (const Operation operation : {Operation::kOpen, Operation::kWrite, Operation::kSync, Operation::kTruncate}) {
      MemoryDisk whole;
      ASSERT_TRUE(test::write(whole, kPath, content));
      for (uint64_t n = 1; n <= whole.calls(operation); ++n) {
        MemoryDisk disk;
        disk.inject({.operation = operation, .nth = n, .code = code, .path = {}, .partial_bytes = n});
        const Status written = test::write(disk, kPath, content);
        ASSERT_FALSE(written);
        EXPECT_EQ(written.error().code, code);
        if (operation != Operation::kSync && *disk.exists(kPath)) expect_refused(disk, "after a failed write");
      }
    }
  }
}

// What finish() said is durable is; what it did not say is refused, or whole.
TEST(SnapshotFaults, APowerCutAtAnyChangeLeavesAWholeFileOrOneThatIsRefused) {
  SeededRandom random(1);
  const auto content = test::random_content(random, 10, 3000, 400);
  MemoryDisk whole;
  ASSERT_TRUE(test::write(whole, kPath, content));
  for (uint64_t cut = 0; cut < whole.changes(); ++cut) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      MemoryDisk disk;
      disk.cut_power_at(cut);
      ASSERT_FALSE(test::write(disk, kPath, content));
      SeededRandom losses(seed * 1000 + cut);
      disk.crash(losses);
      if (!*disk.exists(kPath)) continue;
      const Status read = read_all(disk);
      if (read) {
        EXPECT_TRUE(test::read_and_compare(disk, kPath, content));
      } else {
        EXPECT_EQ(read.error().code, Code::kDataLoss);
      }
    }
  }
}

}  // namespace
}  // namespace snapshot
