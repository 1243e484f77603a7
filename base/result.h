// Result<T>: a value or an Error. The one place that names tl::expected; the day the compilers have std::expected, only
// this header changes. Codes are gRPC's numbers, so a front end copies the code and nothing translates it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

enum class Code : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,  // also: the disk is full, or no descriptor is free for a file
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,  // something on disk does not match its checksum
  kUnauthenticated = 16,
};

// Made once, complete, where the fault is found; layers above pass it on and do not re-word it. `message` is etcd's
// exact text wherever a client may match on it.
struct Error {
  Code code = Code::kUnknown;
  std::string message;
  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(tl::expected<T, Error> other) : tl::expected<T, Error>(std::move(other)) {}
};
using Status = Result<void>;

inline tl::unexpected<Error> fail(Code code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

// TRY(expr): returns the error of `expr` from this function, if it has one.
// TRY_ASSIGN(auto x, expr): the same, else declares `x` from the value.
#define CONCLAVE_CONCAT_(a, b) a##b
#define CONCLAVE_CONCAT(a, b) CONCLAVE_CONCAT_(a, b)
#define TRY(expr)                                                  \
  do {                                                             \
    if (auto try_result = (expr); !try_result) {                   \
      return tl::unexpected<Error>(std::move(try_result.error())); \
    }                                                              \
  } while (false)
#define TRY_ASSIGN(declaration, expr) TRY_ASSIGN_(CONCLAVE_CONCAT(try_value_, __LINE__), declaration, expr)
#define TRY_ASSIGN_(temporary, declaration, expr)                             \
  auto temporary = (expr);                                                    \
  if (!temporary) return tl::unexpected<Error>(std::move(temporary.error())); \
  declaration = std::move(*temporary)
