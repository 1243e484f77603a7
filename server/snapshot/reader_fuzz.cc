// Three ways into the parsers: a file as it is, the payloads without their checksums, and a whole good file into which
// a payload of the fuzzer's is put with right checksums, so that what lies behind them is reached. Nothing may crash;
// rows that decode must encode to the same bytes.
#include "base/check.h"
#include "base/crc32c.h"
#include "base/memory_disk.h"
#include "snapshot/reader.h"

namespace {

using namespace snapshot;

void read_file(const Bytes& file) {
  MemoryDisk disk;
  disk.put("/snap", as_bytes(file));
  auto reader = Reader::open(disk, "/snap");
  if (!reader) return;
  Reader::Chunk chunk;
  for (uint64_t chunks = 0;; ++chunks) {
    CHECK(chunks <= file.size());
    const auto more = (*reader)->next(chunk);
    if (!more || !*more) return;
  }
}

void decode_payloads(BytesView input) {
  std::vector<Row> rows;
  if (decode_rows(input, rows)) {
    Bytes again;
    for (const Row& row : rows) encode(row, again);
    CHECK(again == as_text(input));
  }
  std::vector<Lease> leases;
  if (decode_leases(input, leases)) {
    Bytes again;
    for (const Lease& lease : leases) encode(lease, again);
    CHECK(again == as_text(input));
  }
  for (const bool newer : {false, true}) {
    const auto manifest = decode_manifest(input, newer);
    if (!manifest || newer) continue;
    Bytes again;
    encode(*manifest, again);
    CHECK(again == as_text(input));
  }
}

// The first byte: which format the file has, and which chunk is the fuzzer's.
void read_with_payload(BytesView input) {
  if (input.empty()) return;
  const auto choice = static_cast<uint8_t>(input[0]);
  Bytes file;
  encode(Header{.format = kFormat + (choice & 1), .oldest_reader = kFormat}, file);
  const auto append = [&](ChunkType type, uint32_t number, std::string_view payload) {
    Bytes chunk(kChunkHeaderBytes, '\0');
    chunk += payload;
    finish_chunk(type, number, chunk);
    file += chunk;
  };
  const std::string_view payload = as_text(input.subspan(1));
  if ((choice & 2) != 0) {
    append(ChunkType::kManifest, 0, payload);
  } else {
    Bytes manifest;
    encode(Manifest{}, manifest);
    append(ChunkType::kManifest, 0, manifest);
    append(static_cast<ChunkType>(choice >> 2 & 7), 1, payload);
  }
  Bytes trailer;
  encode(Trailer{.file_bytes = file.size() + kTrailerBytes, .counts = {.chunks = 2}, .crc = crc32c(as_bytes(file))},
         trailer);
  read_file(file + trailer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const BytesView input(reinterpret_cast<const std::byte*>(data), size);
  read_file(Bytes(as_text(input)));
  decode_payloads(input);
  read_with_payload(input);
  return 0;
}
