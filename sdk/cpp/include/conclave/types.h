// The SDK's numbers, which do not mix, and what a key holds.
#pragma once

#include <cstdint>
#include <string>

namespace conclave {
inline namespace v1 {

namespace internal {
class Handle;   // keeps a client's threads running; held by every object made from it
struct Access;  // how the library looks into its own handles
}  // namespace internal

// A point in the history of the whole store; each write makes the next one. Zero: "not given", or the newest.
enum class Revision : std::int64_t {};
enum class LeaseId : std::int64_t {};
// A fencing token: positive, rising from holder to holder of one name, meaningless across names.
enum class Token : std::int64_t {};

constexpr std::int64_t number(Revision revision) noexcept { return static_cast<std::int64_t>(revision); }
constexpr std::int64_t number(LeaseId lease) noexcept { return static_cast<std::int64_t>(lease); }
constexpr std::int64_t number(Token token) noexcept { return static_cast<std::int64_t>(token); }

struct KeyValue {
  std::string key = {};  // any bytes
  std::string value = {};
  Revision create_revision{};  // when the key came into being
  Revision mod_revision{};     // its last change
  std::int64_t version = 0;    // 1 at creation, one more with each put
  LeaseId lease{};             // zero: none
  friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

}  // namespace v1
}  // namespace conclave
