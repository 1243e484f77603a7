// Random numbers for jitter and ids. Safe from all threads.
#pragma once

#include <cstdint>
#include <string>

namespace conclave::inline v1::internal {

std::uint64_t random_number();
inline std::uint64_t random_below(std::uint64_t limit) { return random_number() % limit; }
std::string hex(std::uint64_t number);       // lower case, no padding
std::string random_hex(std::size_t digits);  // at most 16

}  // namespace conclave::inline v1::internal
