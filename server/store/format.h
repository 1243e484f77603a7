// What is fixed in the files of a store, for good or for a format version. docs/format-store.md says it in words.
#pragma once

#include <cstddef>
#include <cstdint>

namespace store {

inline constexpr const char* kDatabaseName = "store.db";
inline constexpr const char* kWalName = "store.db-wal";         // SQLite's choice: the database's name and a suffix
inline constexpr const char* kUnfinishedName = "store.db.new";  // a database that is being made

// SQLite fixes page size, reserved bytes and auto_vacuum with the first table.
inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kReservedBytes = 8;  // CRC32C, page number
inline constexpr size_t kChecksumOffset = kPageBytes - kReservedBytes;

inline constexpr uint32_t kApplicationId = 0x436f6e63;  // "Conc"
// In the database header's user_version: the oldest format whose programs can read the files in the upper half, the
// format in the lower.
inline constexpr uint32_t kFormat = 1;
inline constexpr uint32_t kOldestReader = 1;
inline constexpr uint32_t kUserVersion = kOldestReader << 16 | kFormat;

// Of SQLite's database header (https://sqlite.org/fileformat2.html, 1.3).
inline constexpr size_t kUserVersionOffset = 60;
inline constexpr size_t kApplicationIdOffset = 68;

// Of SQLite's -wal (the same page, 4.1). Frames count from 1.
inline constexpr size_t kWalHeaderBytes = 32;
inline constexpr size_t kFrameHeaderBytes = 24;
inline constexpr size_t kFrameBytes = kFrameHeaderBytes + kPageBytes;
inline constexpr uint64_t frame_offset(uint64_t frame) { return kWalHeaderBytes + (frame - 1) * kFrameBytes; }
inline constexpr uint64_t wal_bytes_of(uint64_t frames) { return frames == 0 ? 0 : frame_offset(frames + 1); }

inline constexpr const char* kAdviceDamage =
    "; the disk has changed or lost data: remove this member from the cluster and add it again with an empty data "
    "folder, "
    "or restore a backup";

// An integer as SQLite keeps them on disk.
inline uint32_t load_big32(const void* from) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  return static_cast<uint32_t>(bytes[0]) << 24 | static_cast<uint32_t>(bytes[1]) << 16 |
         static_cast<uint32_t>(bytes[2]) << 8 | bytes[3];
}

}  // namespace store
