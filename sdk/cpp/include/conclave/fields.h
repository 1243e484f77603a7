// From text to a struct: which key fills which member, with which limits. Used as ConfigReloader's `bind`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "conclave/result.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

// All values below a prefix at one revision; names are what follows the prefix.
class ConfigSet {
 public:
  ConfigSet() = default;
  ConfigSet(std::map<std::string, std::string, std::less<>> values, Revision revision)
      : values_(std::move(values)), revision_(revision) {}
  const std::string* find(std::string_view name) const {
    const auto it = values_.find(name);
    return it == values_.end() ? nullptr : &it->second;
  }
  const std::map<std::string, std::string, std::less<>>& values() const { return values_; }
  Revision revision() const { return revision_; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
  Revision revision_{};
};

namespace internal {

Result<bool> parse_bool(std::string_view text);
Result<std::int64_t> parse_int(std::string_view text);
Result<std::uint64_t> parse_uint(std::string_view text);
Result<double> parse_double(std::string_view text);
// "500ms", "2s", "1m30s"; a bare number is refused.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);
Result<std::vector<std::string>> parse_list(std::string_view text);  // comma-separated, blanks trimmed

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsDuration : std::false_type {};
template <class R, class P>
struct IsDuration<std::chrono::duration<R, P>> : std::true_type {};

template <class T>
Result<T> parse_value(std::string_view text) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(text);
  } else if constexpr (std::is_same_v<T, bool>) {
    return parse_bool(text);
  } else if constexpr (std::is_integral_v<T>) {
    auto parsed = [&] {
      if constexpr (std::is_signed_v<T>) {
        return parse_int(text);
      } else {
        return parse_uint(text);
      }
    }();
    if (!parsed) return fail(std::move(parsed.error()));
    if (!std::in_range<T>(*parsed)) return fail(Code::kInvalidArgument, "out of range");
    return static_cast<T>(*parsed);
  } else if constexpr (std::is_floating_point_v<T>) {
    auto parsed = parse_double(text);
    if (!parsed) return fail(std::move(parsed.error()));
    return static_cast<T>(*parsed);
  } else if constexpr (IsDuration<T>::value) {
    auto parsed = parse_duration(text);
    if (!parsed) return fail(std::move(parsed.error()));
    const auto rounded = std::chrono::duration_cast<T>(*parsed);
    if (rounded != *parsed) return fail(Code::kInvalidArgument, "finer than the unit of this setting");
    return rounded;
  } else if constexpr (IsOptional<T>::value) {
    auto parsed = parse_value<typename T::value_type>(text);
    if (!parsed) return fail(std::move(parsed.error()));
    return T(std::move(*parsed));
  } else if constexpr (IsVector<T>::value) {
    auto parts = parse_list(text);
    if (!parts) return fail(std::move(parts.error()));
    T list;
    for (const std::string& part : *parts) {
      auto parsed = parse_value<typename T::value_type>(part);
      if (!parsed) return fail(std::move(parsed.error()));
      list.push_back(std::move(*parsed));
    }
    return list;
  } else {
    static_assert(!sizeof(T), "Fields cannot read this type: give a parser as third argument");
  }
}

}  // namespace internal

// Limits, both inclusive: `between(1, 64)`, `between(10ms, 10s)`.
template <class V>
struct Between {
  V low;
  V high;
};
template <class V>
Between<V> between(V low, V high) {
  return {std::move(low), std::move(high)};
}

template <class T>
class Fields {
 public:
  template <class Member>
  Fields& required(std::string name, Member T::*member) {
    return add(std::move(name), true, reader<Member>(member));
  }
  template <class Member, class V>
  Fields& required(std::string name, Member T::*member, Between<V> limits) {
    return add(std::move(name), true, reader<Member>(member, std::move(limits)));
  }
  template <class Member>
  Fields& optional(std::string name, Member T::*member) {
    return add(std::move(name), false, reader<Member>(member));
  }
  template <class Member, class V>
  Fields& optional(std::string name, Member T::*member, Between<V> limits) {
    return add(std::move(name), false, reader<Member>(member, std::move(limits)));
  }

  // Names of the set that no field reads are left alone.
  Result<T> operator()(const ConfigSet& set) const {
    T value{};
    for (const Field& field : fields_) {
      const std::string* text = set.find(field.name);
      if (text == nullptr) {
        if (field.required) return fail(Code::kInvalidArgument, field.name + ": missing");
        continue;
      }
      if (auto read = field.read(value, *text); !read)
        return fail(Code::kInvalidArgument, field.name + ": " + read.error().message);
    }
    return value;
  }

 private:
  using Read = std::function<Status(T&, std::string_view)>;
  struct Field {
    std::string name;
    bool required;
    Read read;
  };

  template <class Member>
  static Read reader(Member T::*member) {
    return [member](T& into, std::string_view text) -> Status {
      auto parsed = internal::parse_value<Member>(text);
      if (!parsed) return fail(std::move(parsed.error()));
      into.*member = std::move(*parsed);
      return {};
    };
  }
  template <class Member, class V>
  static Read reader(Member T::*member, Between<V> limits) {
    return [member, limits](T& into, std::string_view text) -> Status {
      auto parsed = internal::parse_value<Member>(text);
      if (!parsed) return fail(std::move(parsed.error()));
      if (*parsed < limits.low || limits.high < *parsed) return fail(Code::kInvalidArgument, "outside of its limits");
      into.*member = std::move(*parsed);
      return {};
    };
  }
  Fields& add(std::string name, bool required, Read read) {
    fields_.push_back({std::move(name), required, std::move(read)});
    return *this;
  }
  std::vector<Field> fields_;
};

}  // namespace v1
}  // namespace conclave
