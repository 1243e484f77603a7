#include "http/json_number.h"

#include <charconv>
#include <string>

namespace http::json {
namespace {

constexpr size_t kDigitsMax = 20;  // of the largest uint64

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool continues_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.' ||
         c == '_';
}

template <class Integer>
std::optional<Integer> read(std::string_view digits) {
  Integer value;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// "-12.50e3" as "-12500"; nullopt when digits would be left behind the point.
std::optional<std::string> whole(std::string_view text) {
  const bool negative = text.front() == '-';
  if (negative) text.remove_prefix(1);
  long exponent = 0;
  if (const size_t at = text.find_first_of("eE"); at != std::string_view::npos) {
    std::string_view digits = text.substr(at + 1);
    if (digits.front() == '+') digits.remove_prefix(1);
    const auto value = read<int32_t>(digits);
    if (!value) return std::nullopt;
    exponent = *value;
    text = text.substr(0, at);
  }
  std::string_view fraction;
  if (const size_t at = text.find('.'); at != std::string_view::npos) {
    fraction = text.substr(at + 1);
    text = text.substr(0, at);
    while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  }
  if (text == "0") text = {};
  if (text.empty() && fraction.empty()) return "0";

  std::string digits = negative ? "-" : "";
  if (exponent >= 0) {
    const auto shift = static_cast<size_t>(exponent);
    if (fraction.size() > shift || text.size() + shift > kDigitsMax) return std::nullopt;
    digits.append(text).append(fraction).append(shift - fraction.size(), '0');
    return digits;
  }
  const auto shift = static_cast<size_t>(-exponent);
  if (!fraction.empty() || shift >= text.size()) return std::nullopt;
  if (text.substr(text.size() - shift).find_first_not_of('0') != std::string_view::npos) return std::nullopt;
  return digits.append(text.substr(0, text.size() - shift));
}

}  // namespace

std::optional<Number> scan_number(std::string_view text) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t before = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i > before;
  };
  Number number;
  if (i < text.size() && text[i] == '-') ++i;
  if (i < text.size() && text[i] == '0') {
    ++i;
  } else if (!digits()) {
    return std::nullopt;
  }
  if (i < text.size() && text[i] == '.') {
    ++i;
    number.plain = false;
    if (!digits()) return std::nullopt;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    number.plain = false;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (!digits()) return std::nullopt;
  }
  number.delimited = i == text.size() || !continues_word(text[i]);
  number.text = text.substr(0, i);
  return number;
}

template <class Integer>
std::optional<Integer> to_integer(const Number& number) {
  if (number.plain && number.text != "-0") return read<Integer>(number.text);
  const auto digits = whole(number.text);
  if (!digits) return std::nullopt;
  return read<Integer>(*digits);
}

template std::optional<int32_t> to_integer(const Number&);
template std::optional<int64_t> to_integer(const Number&);
template std::optional<uint32_t> to_integer(const Number&);
template std::optional<uint64_t> to_integer(const Number&);

}  // namespace http::json
