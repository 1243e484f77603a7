#include "json.h"

#include <charconv>
#include <cstdio>

namespace conclave::inline v1::internal {

namespace {

const Json kNull;
const Json::Array kNoItems;
const Json::Object kNoMembers;
const std::string kNoText;

void write_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  out += '"';
}

template <class Number>
void write_number(std::string& out, Number number) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

void write(std::string& out, const Json& json) {
  if (json.is_null()) {
    out += "null";
  } else if (json.is_bool()) {
    out += json.boolean() ? "true" : "false";
  } else if (json.is_integer()) {
    write_number(out, json.integer());
  } else if (json.is_double()) {
    write_number(out, json.floating());
  } else if (json.is_string()) {
    write_string(out, json.text());
  } else if (json.is_array()) {
    out += '[';
    bool first = true;
    for (const Json& item : json.items()) {
      if (!first) out += ',';
      first = false;
      write(out, item);
    }
    out += ']';
  } else {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : json.members()) {
      if (!first) out += ',';
      first = false;
      write_string(out, key);
      out += ':';
      write(out, value);
    }
    out += '}';
  }
}

}  // namespace

std::string Json::dump() const {
  std::string out;
  write(out, *this);
  return out;
}

const Json& Json::operator[](std::string_view key) const {
  for (const auto& [name, value] : members())
    if (name == key) return value;
  return kNull;
}

const Json::Array& Json::items() const {
  const auto* array = std::get_if<Array>(&value_);
  return array != nullptr ? *array : kNoItems;
}

const Json::Object& Json::members() const {
  const auto* object = std::get_if<Object>(&value_);
  return object != nullptr ? *object : kNoMembers;
}

const std::string& Json::text() const {
  const auto* string = std::get_if<std::string>(&value_);
  return string != nullptr ? *string : kNoText;
}

std::int64_t Json::integer() const {
  if (const auto* number = std::get_if<std::int64_t>(&value_)) return *number;
  std::int64_t number = 0;
  const std::string& digits = text();
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

std::uint64_t Json::unsigned_integer() const {
  if (const auto* number = std::get_if<std::int64_t>(&value_)) return static_cast<std::uint64_t>(*number);
  std::uint64_t number = 0;
  const std::string& digits = text();
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

double Json::floating() const {
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  return static_cast<double>(integer());
}

bool Json::boolean() const {
  const auto* flag = std::get_if<bool>(&value_);
  return flag != nullptr && *flag;
}

Json& Json::set(std::string key, Json value) & {
  if (is_null()) value_ = Object{};
  auto& object = std::get<Object>(value_);
  for (auto& [name, old] : object) {
    if (name != key) continue;
    old = std::move(value);
    return *this;
  }
  object.emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::push(Json value) & {
  if (is_null()) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

}  // namespace conclave::inline v1::internal
