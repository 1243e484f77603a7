#include "random.h"

#include <cstdio>
#include <random>

namespace conclave::inline v1::internal {

std::uint64_t random_number() {
  thread_local std::mt19937_64 generator = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return generator();
}

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(number));
  return text;
}

std::string random_hex(std::size_t digits) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(random_number()));
  return std::string(text).substr(16 - digits);
}

}  // namespace conclave::inline v1::internal
