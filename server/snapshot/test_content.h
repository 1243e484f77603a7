// For the tests of this folder: a content to write, and what a file holds.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/memory_disk.h"
#include "snapshot/reader.h"
#include "snapshot/writer.h"

namespace snapshot::test {

struct Content {
  Manifest manifest;
  std::vector<Lease> leases;
  std::vector<Row> rows;
  std::deque<Bytes> bytes;  // that the rows view
};

inline Manifest some_manifest() {
  return {.cluster_id = 0x1234567890abcdef,
          .index = 77,
          .term = 5,
          .revision = 900,
          .compacted = 12,
          .compaction_finished = -1,
          .content_hash = ~uint64_t{0},
          .membership = "the members",
          .alarms = ""};
}

inline Content random_content(SeededRandom& random, int leases, int rows, uint64_t value_bytes_max) {
  Content content;
  content.manifest = some_manifest();
  int64_t id = -5;
  for (int i = 0; i < leases; ++i) {
    id += static_cast<int64_t>(1 + random.below(1000));
    content.leases.push_back({id, static_cast<int64_t>(random.below(100)), static_cast<int64_t>(random.below(50))});
  }
  id = 0;
  const auto any_bytes = [&](uint64_t below) {
    Bytes bytes(random.below(below), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.next());
    return std::string_view(content.bytes.emplace_back(std::move(bytes)));
  };
  for (int i = 0; i < rows; ++i) {
    id += static_cast<int64_t>(1 + random.below(1 << 20));
    Row row{.id = id};
    row.key = any_bytes(30);
    if (random.below(5) != 0) {  // else a tombstone
      row.create_revision = id / 2;
      row.version = static_cast<int64_t>(random.below(9));
      row.lease = static_cast<int64_t>(random.below(3));
      row.value = any_bytes(value_bytes_max);
    }
    content.rows.push_back(row);
  }
  return content;
}

inline Status write(Disk& disk, const std::string& path, const Content& content) {
  TRY_ASSIGN(auto writer, Writer::create(disk, path, content.manifest));
  const auto add_all = [&](const auto& items) -> Status {
    for (const auto& item : items) {
      writer->add(item);
      if (writer->full()) TRY(writer->flush());
    }
    return writer->flush();
  };
  TRY(add_all(content.leases));
  TRY(add_all(content.rows));
  return writer->finish();
}

// Reads all of it and holds it against `content`.
inline Status read_and_compare(Disk& disk, const std::string& path, const Content& content) {
  TRY_ASSIGN(auto reader, Reader::open(disk, path));
  EXPECT_EQ(reader->manifest(), content.manifest);
  EXPECT_EQ(reader->counts().rows, content.rows.size());
  EXPECT_EQ(reader->counts().leases, content.leases.size());
  size_t leases = 0;
  size_t rows = 0;
  Reader::Chunk chunk;
  while (true) {
    TRY_ASSIGN(const bool more, reader->next(chunk));
    if (!more) break;
    for (const Lease& lease : chunk.leases) EXPECT_EQ(lease, content.leases.at(leases++));
    for (const Row& row : chunk.rows) EXPECT_EQ(row, content.rows.at(rows++));
  }
  EXPECT_EQ(leases, content.leases.size());
  EXPECT_EQ(rows, content.rows.size());
  return {};
}

}  // namespace snapshot::test
