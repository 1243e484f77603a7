// What every function of the binding does the same way: errors, options, strings, and no exception to the caller.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "conclave/call.h"
#include "conclave/kv.h"
#include "conclave/result.h"
#include "conclave_c/kv.h"
#include "conclave_c/types.h"

struct conclave_stop {
  std::stop_source source;
};

namespace conclave::c {

// No struct of ours gets near it: a larger size was never set.
constexpr std::size_t kStructSizeMax = 4096;

conclave_code succeeded(conclave_error* error) noexcept;
conclave_code failed(const Error& why, conclave_error* error) noexcept;
void fill(const Error& why, conclave_error& error) noexcept;
// Of the exception that is being handled; memory that is used up ends the program.
Error caught() noexcept;

// Runs `body`, which gives a Status, and turns what comes out of it into a code.
template <class Body>
conclave_code guarded(conclave_error* error, Body&& body) noexcept {
  try {
    Status done = std::forward<Body>(body)();
    return done ? succeeded(error) : failed(done.error(), error);
  } catch (...) {
    return failed(caught(), error);
  }
}

// Clears what a failing function must not leave undefined, and refuses NULL where a handle or its place is needed.
struct Needed {
  const char* name;
  const void* pointer;
};
Status need(std::initializer_list<Needed> all);

inline std::string_view view(conclave_str text) noexcept {
  return text.data != nullptr ? std::string_view(text.data, text.size) : std::string_view();
}
inline std::string text(conclave_str from) { return std::string(view(from)); }
inline conclave_str borrow(std::string_view from) noexcept { return {from.data(), from.size()}; }

CallOptions call_of(std::int64_t timeout_ms, const conclave_stop* stop = nullptr);

// Copies the part of `given` that is there over `defaults`. The rule for old and new callers is in conclave_c/types.h.
Status read_sized(const void* given, void* known, std::size_t known_size, std::size_t alignment, const char* name);

template <class Options>
Result<Options> options_of(const Options* given, Options defaults, const char* name) {
  // No padding: else a member added later could lie where an old caller left garbage.
  static_assert(std::has_unique_object_representations_v<Options>);
  static_assert(std::is_trivially_copyable_v<Options>);
  static_assert(sizeof(Options) <= kStructSizeMax);
  if (given == nullptr) return defaults;
  auto read = read_sized(given, &defaults, sizeof(Options), alignof(Options), name);
  if (!read) return fail(std::move(read.error()));
  return defaults;
}

// A number of the interface as an enum of the SDK, whose values are 0 to `last`.
template <class Enum>
Result<Enum> enum_of(std::int64_t value, Enum last, const char* name) {
  if (value < 0 || value > static_cast<std::int64_t>(last))
    return fail(Code::kInvalidArgument, std::string(name) + ": " + std::to_string(value) + " is no value of it");
  return static_cast<Enum>(value);
}

inline conclave_key_value borrow(const KeyValue& kv) noexcept {
  return {borrow(std::string_view(kv.key)),
          borrow(std::string_view(kv.value)),
          number(kv.create_revision),
          number(kv.mod_revision),
          kv.version,
          number(kv.lease)};
}

// What a callback with a buffer for its reason wrote.
constexpr std::size_t kReasonSize = 256;
std::string reason_of(const char (&buffer)[kReasonSize]);

}  // namespace conclave::c
