// A JSON value, for the gateway's messages, the registry's records and the copies on disk. Parsed by cpprestsdk (in
// http/json.cc), kept in types of our own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "conclave/result.h"

namespace conclave::inline v1::internal {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in the order written; parsed ones by name

  Json() = default;
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  static Json object() { return Json(Object{}); }
  static Json array() { return Json(Array{}); }

  // kInvalidArgument with the position. Nested deeper than cpprestsdk allows is refused too.
  static Result<Json> parse(std::string_view text);
  std::string dump() const;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_double() const { return std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // Reading never fails: what is absent or of another kind reads as null, empty, zero or false.
  const Json& operator[](std::string_view key) const;
  bool has(std::string_view key) const { return !(*this)[key].is_null(); }
  const Array& items() const;
  const Object& members() const;
  const std::string& text() const;
  std::int64_t integer() const;            // a number, or a decimal string as the gateway writes 64-bit ones
  std::uint64_t unsigned_integer() const;  // the same, for ids
  double floating() const;
  bool boolean() const;

  Json& set(std::string key, Json value) &;  // adds, or replaces; makes an object of a null
  Json&& set(std::string key, Json value) && { return std::move(set(std::move(key), std::move(value))); }
  Json& push(Json value) &;  // makes an array of a null
  Json&& push(Json value) && { return std::move(push(std::move(value))); }

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

std::string base64_encode(std::string_view bytes);
Result<std::string> base64_decode(std::string_view text);

}  // namespace conclave::inline v1::internal
