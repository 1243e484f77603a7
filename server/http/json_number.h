// JSON numbers as integers, by the rules of Go's protojson: an exponent or a fraction is fine as long as the value is
// whole and has at most 20 digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace http::json {

// A number at the start of some text, by JSON's grammar.
struct Number {
  std::string_view text;
  bool plain = true;      // neither fraction nor exponent
  bool delimited = true;  // nothing that would make it another word follows, as in "1x" or "0x10"
};
// nullopt: there is none.
std::optional<Number> scan_number(std::string_view text);

// nullopt: not whole, or outside the type's range.
template <class Integer>
std::optional<Integer> to_integer(const Number& number);

extern template std::optional<int32_t> to_integer(const Number&);
extern template std::optional<int64_t> to_integer(const Number&);
extern template std::optional<uint32_t> to_integer(const Number&);
extern template std::optional<uint64_t> to_integer(const Number&);

}  // namespace http::json
