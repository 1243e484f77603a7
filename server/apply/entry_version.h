// The version of conclavepb::Entry that this build writes, and the newest that it can apply. It grows with any change
// of what applying an entry does; an entry of a newer version stops a member that cannot know what it means.
#pragma once

#include <cstdint>

namespace apply {

inline constexpr uint32_t kEntryVersion = 1;

}  // namespace apply
