#include "store/wal_scan.h"

#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "store/format.h"

namespace store {

namespace {

// The magic number of a log whose checksums were made on a little-endian machine. The other one is not accepted: data
// folders do not move between byte orders, and a single flipped bit leads from one to the other.
constexpr uint32_t kMagic = 0x377f0682;
constexpr uint32_t kVersion = 3007000;
constexpr size_t kScanFrames = 256;  // a read of about 1 MiB

// SQLite's checksum: two sums that feed each other, over pairs of words.
struct Sums {
  uint32_t first = 0;
  uint32_t second = 0;
  void add(BytesView bytes) {
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      first += load_integer<uint32_t>(bytes, at) + second;
      second += load_integer<uint32_t>(bytes, at + 4) + first;
    }
  }
  bool matches(const std::byte* stored) const {
    return first == load_big32(stored) && second == load_big32(stored + 4);
  }
};

bool read_header(BytesView header, WalScan& scan, Sums& sums) {
  if (load_big32(&header[0]) != kMagic || load_big32(&header[4]) != kVersion || load_big32(&header[8]) != kPageBytes) {
    return false;
  }
  sums.add(header.first(24));
  if (!sums.matches(&header[24])) return false;
  scan.salt1 = load_big32(&header[16]);
  scan.salt2 = load_big32(&header[20]);
  return true;
}

}  // namespace

Result<WalScan> scan_wal(File& file, FrameTable& table) {
  WalScan scan;
  TRY_ASSIGN(scan.file_bytes, file.size());
  std::vector<std::byte> buffer(kScanFrames * kFrameBytes);
  TRY_ASSIGN(const size_t header_bytes, file.read(0, std::span(buffer).first(kWalHeaderBytes)));
  Sums sums;
  scan.header_valid =
      header_bytes == kWalHeaderBytes && read_header(std::span(buffer).first(kWalHeaderBytes), scan, sums);
  if (!scan.header_valid) return scan;
  std::optional<Bytes> first_page;  // of a transaction whose commit was not seen yet
  while (true) {
    TRY_ASSIGN(const size_t got, file.read(frame_offset(scan.frames + 1), buffer));
    for (size_t at = 0; at + kFrameBytes <= got; at += kFrameBytes) {
      const BytesView frame = std::span(buffer).subspan(at, kFrameBytes);
      const BytesView page = frame.subspan(kFrameHeaderBytes);
      const uint32_t number = load_big32(&frame[0]);
      if (number == 0 || load_big32(&frame[8]) != scan.salt1 || load_big32(&frame[12]) != scan.salt2) return scan;
      sums.add(frame.first(8));
      sums.add(page);
      if (!sums.matches(&frame[16])) return scan;
      table.set(++scan.frames, crc32c(page));
      if (number == 1) first_page = as_text(page);
      if (load_big32(&frame[4]) == 0) continue;
      scan.committed = scan.frames;
      if (first_page) scan.first_page = std::exchange(first_page, std::nullopt);
    }
    if (got < buffer.size()) return scan;
  }
}

Status check_mark(const WalScan& scan, const std::optional<Mark>& mark, const std::string& path) {
  if (!mark) return {};
  const bool same_log = scan.header_valid && scan.salt1 == mark->salt1 && scan.salt2 == mark->salt2;
  if (same_log && scan.committed >= mark->frames) return {};
  if (same_log) {
    return fail(Code::kDataLoss, path + ": frame " + std::to_string(scan.frames + 1) + " of at least " +
                                     std::to_string(mark->frames) + " is damaged or missing" + kAdviceDamage);
  }
  if (mark->done) return {};
  return fail(Code::kDataLoss,
              path + (scan.header_valid ? ": is another log than the one" : ": no valid header where one") +
                  " that was being copied into the database" + kAdviceDamage);
}

}  // namespace store
