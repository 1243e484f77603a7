#include <gmock/gmock.h>

#include "snapshot/test_content.h"

namespace snapshot {
namespace {

using test::random_content;
using testing::HasSubstr;

constexpr const char* kPath = "/snap";

TEST(Snapshot, ReadsBackWhatWasWritten) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SeededRandom random(seed);
    MemoryDisk disk;
    const auto content = random_content(random, static_cast<int>(random.below(200)),
                                        static_cast<int>(random.below(2000)), seed % 3 == 0 ? 3000 : 100);
    ASSERT_TRUE(test::write(disk, kPath, content));
    const Status same = test::read_and_compare(disk, kPath, content);
    ASSERT_TRUE(same) << same.error().message;
  }
}

TEST(Snapshot, AnEmptyStateIsAWholeFile) {
  MemoryDisk disk;
  const test::Content content{.manifest = test::some_manifest(), .leases = {}, .rows = {}, .bytes = {}};
  ASSERT_TRUE(test::write(disk, kPath, content));
  ASSERT_TRUE(test::read_and_compare(disk, kPath, content));
}

TEST(Snapshot, ARowLargerThanAChunkFits) {
  MemoryDisk disk;
  test::Content content{.manifest = test::some_manifest(), .leases = {}, .rows = {}, .bytes = {}};
  const Bytes value(3 * kChunkBytes, 'v');
  content.rows.push_back({.id = 1, .create_revision = 1, .version = 1, .lease = 0, .key = "k", .value = value});
  content.rows.push_back({.id = 2, .create_revision = 0, .version = 0, .lease = 0, .key = "k", .value = ""});
  ASSERT_TRUE(test::write(disk, kPath, content));
  ASSERT_TRUE(test::read_and_compare(disk, kPath, content));
}

TEST(Snapshot, ReplacesAnOlderFileOfThatName) {
  MemoryDisk disk;
  SeededRandom random(1);
  ASSERT_TRUE(test::write(disk, kPath, random_content(random, 10, 500, 100)));
  const auto small = random_content(random, 1, 2, 10);
  ASSERT_TRUE(test::write(disk, kPath, small));
  ASSERT_TRUE(test::read_and_compare(disk, kPath, small));
}

// Rewrites the header as a later version would.
Bytes with_header(const Bytes& file, const Header& header) {
  Bytes made;
  encode(header, made);
  made += file.substr(kHeaderBytes);
  // The trailer's checksum of everything before it, and its own.
  Bytes trailer;
  auto end = *decode_trailer(as_bytes(made).subspan(made.size() - kTrailerBytes));
  end.crc = crc32c(as_bytes(made).first(made.size() - kTrailerBytes));
  encode(end, trailer);
  return made.replace(made.size() - kTrailerBytes, kTrailerBytes, trailer);
}

TEST(Snapshot, ANewerFormatIsReadIfItSaysSoAndRefusedElse) {
  MemoryDisk disk;
  SeededRandom random(1);
  const auto content = random_content(random, 3, 20, 50);
  ASSERT_TRUE(test::write(disk, kPath, content));
  const Bytes file = *disk.content(kPath);
  disk.put(kPath, as_bytes(with_header(file, {.format = kFormat + 1, .oldest_reader = kFormat})));
  ASSERT_TRUE(test::read_and_compare(disk, kPath, content));
  disk.put(kPath, as_bytes(with_header(file, {.format = kFormat + 1, .oldest_reader = kFormat + 1})));
  const auto refused = Reader::open(disk, kPath);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().message, HasSubstr("needs a Conclave that reads format 2"));
}

TEST(Snapshot, TakesNoMoreMemoryThanAChunk) {
  MemoryDisk disk;
  uint64_t largest = 0;
  disk.set_hook([&](const MemoryDisk::Call& call) { largest = std::max(largest, call.bytes); });
  SeededRandom random(1);
  const auto content = random_content(random, 20'000, 3000, 1000);
  ASSERT_TRUE(test::write(disk, kPath, content));
  ASSERT_TRUE(test::read_and_compare(disk, kPath, content));
  EXPECT_LT(largest, kChunkBytes + 2000);
}

}  // namespace
}  // namespace snapshot
