#include "config/duration.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

namespace config {

namespace {

constexpr std::array<std::pair<std::string_view, int64_t>, 8> kUnits = {{
    {"ns", 1},
    {"us", 1'000},
    {"\xc2\xb5s", 1'000},  // the micro sign
    {"\xce\xbcs", 1'000},  // the Greek letter
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60'000'000'000},
    {"h", 3'600'000'000'000},
}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  bool negative = false;
  if (text.starts_with('-') || text.starts_with('+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (text == "0") return std::chrono::nanoseconds(0);
  if (text.empty()) return std::nullopt;

  long double total = 0;  // 64 bits of mantissa: exact over the whole range
  while (!text.empty()) {
    long double number = 0;
    long double fraction = 1;
    bool any = false;
    for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1), any = true) {
      number = number * 10 + (text.front() - '0');
    }
    if (text.starts_with('.')) {
      text.remove_prefix(1);
      for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1), any = true) {
        fraction /= 10;
        number += fraction * (text.front() - '0');
      }
    }
    if (!any) return std::nullopt;
    size_t unit_length = 0;
    while (unit_length < text.size() && !is_digit(text[unit_length]) && text[unit_length] != '.') ++unit_length;
    int64_t unit_ns = 0;
    for (const auto& [name, ns] : kUnits) {
      if (name == text.substr(0, unit_length)) unit_ns = ns;
    }
    if (unit_ns == 0) return std::nullopt;
    total += number * unit_ns;
    text.remove_prefix(unit_length);
  }
  total = std::floor(total + 1e-6L);
  if (!(total <= static_cast<long double>(INT64_MAX))) return std::nullopt;
  const auto count = static_cast<int64_t>(total);
  return std::chrono::nanoseconds(negative ? -count : count);
}

}  // namespace config
