// Two ways into the parser: the records of a batch as they are, and a whole folder with one segment whose bytes come
// from the fuzzer on top of a good one. Neither may crash; what decodes must encode to something that decodes to the
// same.
#include <cstdlib>

#include "base/check.h"
#include "base/memory_disk.h"
#include "wal/record.h"
#include "wal/segment.h"
#include "wal/wal.h"

namespace {

constexpr char kFolder[] = "/wal";

void decode_records(BytesView input) {
  for (const bool skip_unknown : {false, true}) {
    const auto records = wal::decode(input, skip_unknown);
    if (!records || records->entries.empty()) continue;
    wal::WalBatch batch{.hard_state = records->hard_state, .snapshot = records->snapshot, .mark = records->mark};
    for (const auto& record : records->entries) {
      if (record.entry.index > 0) batch.entries.push_back(record.entry);
    }
    wal::Terms terms;
    Bytes again;
    wal::encode(batch, terms, again);
    const auto same = wal::decode(as_bytes(again), false);
    CHECK(same.has_value());
    CHECK(same->entries.size() == batch.entries.size());
    CHECK(same->hard_state == batch.hard_state);
  }
}

// The first two bytes choose where the rest goes.
void open_damaged(BytesView input) {
  if (input.size() < 3) return;
  static const MemoryDisk* const good = [] {
    auto* disk = new MemoryDisk;
    SeededRandom random(1);
    auto log = *wal::Wal::create(*disk, {.folder = kFolder, .segment_bytes = wal::kSegmentBytesMin}, {1, 2}, random);
    for (uint64_t index = 1; index <= 8; ++index) {
      const Bytes data(20 * index, 'x');
      CHECK(log->append({.entries = {{.index = index, .term = 1, .data = std::make_shared<const Bytes>(data)}}})
                .has_value());
    }
    return disk;
  }();
  const auto disk = good->clone();
  const std::string path = std::string(kFolder) + "/" + wal::file_name({.sequence = 1, .first_index = 1});
  Bytes content = *disk->content(path);
  const size_t at = load_integer<uint16_t>(input) % content.size();
  const std::string_view bytes = as_text(input.subspan(2)).substr(0, content.size() - at);
  content.replace(at, bytes.size(), bytes);
  disk->put(path, as_bytes(content));
  const auto opened = wal::Wal::open(*disk, {.folder = kFolder, .segment_bytes = wal::kSegmentBytesMin});
  if (opened) CHECK(opened->contents.last_index() <= 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const BytesView input(reinterpret_cast<const std::byte*>(data), size);
  decode_records(input);
  open_damaged(input);
  return 0;
}
