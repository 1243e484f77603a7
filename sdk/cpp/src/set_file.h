// The last good set of a ConfigReloader on disk: JSON with a checksum, replaced as a whole, so that a program can start
// when no member answers. Blocks: not for the timer thread.
#pragma once

#include <string>

#include "conclave/result.h"
#include "conclave/types.h"
#include "prefix_view.h"

namespace conclave::inline v1::internal {

constexpr std::size_t kSetFileBytesMax = 64u << 20;

Status write_set_file(const std::string& path, const std::string& prefix, const PrefixView::State& state);
// kNotFound: no such file. kDataLoss: not what was written. kInvalidArgument: it holds another prefix.
Result<PrefixView::State> read_set_file(const std::string& path, const std::string& prefix);

}  // namespace conclave::inline v1::internal
