// Text to values, for Fields (fields.h). Errors say what is wrong with the text; the caller names the field.
#include "conclave/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace conclave {
inline namespace v1 {
namespace internal {
namespace {

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string out(1, '"');
  out += text.substr(0, kShown);
  out += text.size() > kShown ? "...\"" : "\"";
  return out;
}

template <class Number>
Result<Number> parse_number(std::string_view text, const char* wanted) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return fail(Code::kInvalidArgument, quoted(text) + " is out of range");
  if (error != std::errc{} || end != text.data() + text.size()) {
    return fail(Code::kInvalidArgument, quoted(text) + " is not " + wanted);
  }
  return value;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Nanoseconds of a unit; 0: none of ours.
double unit_of(std::string_view name) {
  if (name == "ns") return 1;
  if (name == "us") return 1e3;
  if (name == "ms") return 1e6;
  if (name == "s") return 1e9;
  if (name == "m" || name == "min") return 60e9;
  if (name == "h") return 3600e9;
  return 0;
}

}  // namespace

Result<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off") return false;
  return fail(Code::kInvalidArgument, quoted(text) + " is neither true nor false");
}

Result<std::int64_t> parse_int(std::string_view text) { return parse_number<std::int64_t>(text, "a whole number"); }

Result<std::uint64_t> parse_uint(std::string_view text) {
  return parse_number<std::uint64_t>(text, "a whole number of zero or more");
}

Result<double> parse_double(std::string_view text) {
  auto value = parse_number<double>(text, "a number");
  if (value && !std::isfinite(*value)) return fail(Code::kInvalidArgument, quoted(text) + " is not a finite number");
  return value;
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto malformed = [text] {
    return fail(Code::kInvalidArgument, quoted(text) + " is not a duration with a unit, as 500ms, 2s or 1m30s");
  };
  if (text.empty()) return malformed();
  double total = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t digits = rest.find_first_not_of("0123456789.");
    if (digits == 0 || digits == std::string_view::npos) return malformed();
    const auto count = parse_number<double>(rest.substr(0, digits), "a number");
    rest.remove_prefix(digits);
    const std::size_t letters = std::min(rest.find_first_of("0123456789."), rest.size());
    const double unit = unit_of(rest.substr(0, letters));
    if (!count || unit == 0) return malformed();
    total += *count * unit;
    rest.remove_prefix(letters);
  }
  constexpr double kMax = 9e18;
  if (total > kMax) return fail(Code::kInvalidArgument, quoted(text) + " is out of range");
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::llround(total)));
}

Result<std::vector<std::string>> parse_list(std::string_view text) {
  std::vector<std::string> parts;
  if (trimmed(text).empty()) return parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string format_duration(std::chrono::nanoseconds value) {
  constexpr std::pair<const char*, std::int64_t> kUnits[] = {
      {"h", 3'600'000'000'000}, {"m", 60'000'000'000}, {"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}};
  for (const auto& [name, unit] : kUnits)
    if (value.count() != 0 && value.count() % unit == 0) return std::to_string(value.count() / unit) + name;
  return std::to_string(value.count()) + "ns";
}

}  // namespace internal
}  // namespace v1
}  // namespace conclave
