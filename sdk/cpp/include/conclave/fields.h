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
    static_assert(!sizeof(T), "Fields cannot read this type: give one_of(...) or a parser as third argument");
  }
}

}  // namespace internal

// Limits, both inclusive: `between(1, 64)`, `between(10ms, 10s)`.
template <class V>
struct Between {
  V low;
  V high;
};
template <class A, class B>
Between<std::common_type_t<A, B>> between(A low, B high) {
  using V = std::common_type_t<A, B>;
  return {static_cast<V>(std::move(low)), static_cast<V>(std::move(high))};
}

// The names of an enum's values: `one_of<Level>({{"low", Level::kLow}, {"high", Level::kHigh}})`.
template <class V>
struct OneOf {
  std::map<std::string, V, std::less<>> names;
};
template <class V>
OneOf<V> one_of(std::map<std::string, V, std::less<>> names) {
  return {std::move(names)};
}

namespace internal {

std::string format_duration(std::chrono::nanoseconds value);  // "500ms", "2s"

template <class V>
std::string format_limit(const V& value) {
  if constexpr (IsDuration<V>::value) {
    return format_duration(std::chrono::duration_cast<std::chrono::nanoseconds>(value));
  } else if constexpr (std::is_arithmetic_v<V>) {
    std::string text = std::to_string(value);
    if constexpr (std::is_floating_point_v<V>) text.erase(text.find_last_not_of('0') + 1);
    return text;
  } else {
    return std::string(value);
  }
}

template <class A, class B>
bool less(const A& a, const B& b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    return std::cmp_less(a, b);
  } else {
    return a < b;
  }
}

template <class Member>
struct Unwrap {
  using Type = Member;
};
template <class V>
struct Unwrap<std::optional<V>> {
  using Type = V;
};

// How a text becomes a member: by its type alone, by its type within limits, by a table, or by the user's parser
// (`Result<Member>(std::string_view)`).
struct ByType {};

template <class Member>
Result<Member> read_value(std::string_view text, const ByType&) {
  return parse_value<Member>(text);
}
template <class Member, class V>
Result<Member> read_value(std::string_view text, const Between<V>& limits) {
  auto parsed = parse_value<typename Unwrap<Member>::Type>(text);
  if (!parsed) return fail(std::move(parsed.error()));
  if (less(*parsed, limits.low) || less(limits.high, *parsed))
    return fail(Code::kInvalidArgument,
                "outside of its limits, " + format_limit(limits.low) + " to " + format_limit(limits.high));
  return Member(std::move(*parsed));
}
template <class Member, class V>
Result<Member> read_value(std::string_view text, const OneOf<V>& table) {
  if (const auto it = table.names.find(text); it != table.names.end()) return Member(it->second);
  std::string names;
  for (const auto& [name, value] : table.names) names += (names.empty() ? "" : ", ") + name;
  return fail(Code::kInvalidArgument, "not one of " + names);
}
template <class Member, class Parser>
requires std::is_invocable_r_v < Result<Member>,
const Parser&, std::string_view > Result<Member> read_value(std::string_view text, const Parser& parser) {
  return parser(text);
}

}  // namespace internal

template <class T>
class Fields {
 public:
  // `rule`: between(...), one_of(...), or a parser; left out, the member's type alone decides.
  template <class Member, class Rule = internal::ByType>
  Fields& required(std::string name, Member T::*member, Rule rule = {}) {
    return add(std::move(name), true, member, std::move(rule));
  }
  // A key that is missing leaves the member as T has it.
  template <class Member, class Rule = internal::ByType>
  Fields& optional(std::string name, Member T::*member, Rule rule = {}) {
    return add(std::move(name), false, member, std::move(rule));
  }

  // Names of the set that no field reads are left alone. kInvalidArgument with the first field that is missing or
  // wrong.
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
  struct Field {
    std::string name;
    bool required;
    std::function<Status(T&, std::string_view)> read;
  };

  template <class Member, class Rule>
  Fields& add(std::string name, bool required, Member T::*member, Rule rule) {
    auto read = [member, rule = std::move(rule)](T& into, std::string_view text) -> Status {
      auto parsed = internal::read_value<Member>(text, rule);
      if (!parsed) return fail(std::move(parsed.error()));
      into.*member = std::move(*parsed);
      return {};
    };
    fields_.push_back({std::move(name), required, std::move(read)});
    return *this;
  }
  std::vector<Field> fields_;
};

}  // namespace v1
}  // namespace conclave
