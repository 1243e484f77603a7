// Durations as Go writes them: "300ms", "1.5h", "2h45m", "-10s", "0".
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace config {

// Nothing for what Go's time.ParseDuration refuses, and for more than about 292 years.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

}  // namespace config
