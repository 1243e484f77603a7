#include "conclave/result.h"

#include <cstdio>
#include <cstdlib>

namespace conclave {
inline namespace v1 {

std::string_view to_string(Code code) noexcept {
  switch (code) {
    case Code::kCancelled:
      return "cancelled";
    case Code::kUnknown:
      return "unknown";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kDeadlineExceeded:
      return "deadline exceeded";
    case Code::kNotFound:
      return "not found";
    case Code::kAlreadyExists:
      return "already exists";
    case Code::kPermissionDenied:
      return "permission denied";
    case Code::kResourceExhausted:
      return "resource exhausted";
    case Code::kFailedPrecondition:
      return "failed precondition";
    case Code::kAborted:
      return "aborted";
    case Code::kOutOfRange:
      return "out of range";
    case Code::kUnimplemented:
      return "unimplemented";
    case Code::kInternal:
      return "internal";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kDataLoss:
      return "data loss";
    case Code::kUnauthenticated:
      return "unauthenticated";
  }
  return "unknown";
}

std::string_view to_string(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kNothingHappened:
      return "nothing happened";
    case Outcome::kMayHaveHappened:
      return "may have happened";
    case Outcome::kNeverWorks:
      return "never works as sent";
  }
  return "unknown";
}

std::string to_string(const Error& error) {
  std::string text{to_string(error.code)};
  text += ": " + error.message + " (";
  if (!error.endpoint.empty()) text += error.endpoint + "; ";
  text += to_string(error.outcome);
  text += ')';
  return text;
}

Outcome usual_outcome(Code code) noexcept {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kOutOfRange:
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
    case Code::kUnimplemented:
      return Outcome::kNeverWorks;
    default:
      return Outcome::kNothingHappened;
  }
}

namespace internal {

void stop_program(const Error& error) noexcept {
  std::fprintf(stderr, "conclave: the value of a failed Result was used: %s\n", to_string(error).c_str());
  std::abort();
}

}  // namespace internal
}  // namespace v1
}  // namespace conclave
