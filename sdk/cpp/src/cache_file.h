// The last good state in a file of the user's choice (`cache_file`), for a start without any member. One line of JSON
// that names its kind and carries a checksum; replaced as a whole or not at all, and not used when it was damaged.
// Blocks: not for the timer thread.
#pragma once

#include <string>
#include <string_view>

#include "conclave/result.h"
#include "json.h"

namespace conclave::inline v1::internal {

constexpr std::size_t kCacheFileBytesMax = 64u << 20;

// For its owner only (0600): configuration may hold secrets. kUnavailable with the system's reason; kResourceExhausted:
// too large. The old file is still there then.
Status write_cache_file(const std::string& path, std::string_view kind, const Json& content);
// kNotFound: there is none. kDataLoss: not what was written, or of another kind.
Result<Json> read_cache_file(const std::string& path, std::string_view kind);

}  // namespace conclave::inline v1::internal
