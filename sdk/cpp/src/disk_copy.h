// The last good state on disk, for a start without any member. A file is replaced as a whole or not at all, and one
// that was damaged is not used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "conclave/result.h"

namespace conclave::inline v1::internal {

constexpr std::size_t kCopyBytesMax = 64u << 20;

// For its owner only (0600): configuration may hold secrets. kUnavailable with the system's reason.
Status save_file(const std::string& path, std::string_view text);
Result<std::string> load_file(const std::string& path);  // kNotFound: there is none

// FNV-1a over fields with their lengths: finds damage, not malice.
class Checksum {
 public:
  void add(std::string_view field);
  std::string text() const;  // 16 hex digits

 private:
  void add_bytes(std::string_view bytes);
  std::uint64_t state_ = 14695981039346656037u;
};

}  // namespace conclave::inline v1::internal
