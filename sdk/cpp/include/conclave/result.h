// Result<T>: a value, or an Error that says whether anything happened. Every fallible function of the SDK returns one;
// `or_throw()` turns it into a value or an exception for those who prefer that. The library itself never throws.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace conclave {
inline namespace v1 {

// gRPC's numbers.
enum class Code : std::uint8_t {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// What an error means for the one who asked.
enum class Outcome : std::uint8_t {
  kNothingHappened,  // repeat at will
  kMayHaveHappened,  // look before repeating
  kNeverWorks,       // not as sent: the arguments or the permission are wrong
};

struct Error {
  Code code = Code::kUnknown;
  Outcome outcome = Outcome::kNothingHappened;
  std::string message = {};   // the server's text where it gave one
  std::string endpoint = {};  // which member said so; empty if none did
  friend bool operator==(const Error&, const Error&) = default;
};

std::string_view to_string(Code code) noexcept;        // "unavailable"
std::string_view to_string(Outcome outcome) noexcept;  // "nothing happened"
std::string to_string(const Error& error);  // "unavailable: etcdserver: no leader (http://a:2379; nothing happened)"

// kNeverWorks for kInvalidArgument, kOutOfRange, kPermissionDenied, kUnauthenticated and kUnimplemented, else
// kNothingHappened.
Outcome usual_outcome(Code code) noexcept;

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
inline tl::unexpected<Error> fail(Code code, std::string message, Outcome outcome) {
  return tl::unexpected<Error>(Error{.code = code, .outcome = outcome, .message = std::move(message)});
}
inline tl::unexpected<Error> fail(Code code, std::string message) {
  return fail(code, std::move(message), usual_outcome(code));
}

// What `or_throw()` throws.
class Exception : public std::exception {
 public:
  explicit Exception(Error error) : error_(std::move(error)), text_(to_string(error_)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
  std::string text_;
};

namespace internal {
// Writes the error's text to stderr and aborts: someone used the value of a Result that holds an error.
[[noreturn]] void stop_program(const Error& error) noexcept;
}  // namespace internal

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
  using Base = tl::expected<T, Error>;

 public:
  using Base::Base;
  Result(Base other) : Base(std::move(other)) {}

  T& operator*() & { return checked(), Base::operator*(); }
  const T& operator*() const& { return checked(), Base::operator*(); }
  T&& operator*() && { return checked(), std::move(*this).Base::operator*(); }
  T* operator->() { return checked(), Base::operator->(); }
  const T* operator->() const { return checked(), Base::operator->(); }

#if defined(__cpp_exceptions)
  T or_throw() && {
    if (!*this) throw Exception(std::move(this->error()));
    return std::move(*this).Base::operator*();
  }
#endif

 private:
  void checked() const {
    if (!*this) internal::stop_program(this->error());
  }
};

template <>
class [[nodiscard]] Result<void> : public tl::expected<void, Error> {
  using Base = tl::expected<void, Error>;

 public:
  using Base::Base;
  Result(Base other) : Base(std::move(other)) {}

#if defined(__cpp_exceptions)
  void or_throw() && {
    if (!*this) throw Exception(std::move(this->error()));
  }
#endif
};

using Status = Result<void>;

}  // namespace v1
}  // namespace conclave
