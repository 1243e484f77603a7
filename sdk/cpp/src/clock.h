// Time as the SDK counts it: CLOCK_BOOTTIME, which also runs while the machine sleeps, as the server's leases do.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "conclave/call.h"

namespace conclave::inline v1::internal {

struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept {
    timespec t{};
    clock_gettime(CLOCK_BOOTTIME, &t);
    return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
  }
};
using TimePoint = BootClock::time_point;

constexpr TimePoint kNever = TimePoint::max();
// Longer timeouts are no limit: their sum with now would overflow.
constexpr std::chrono::hours kTimeoutMax{24 * 365 * 10};

inline TimePoint after(std::chrono::milliseconds timeout) {
  if (timeout > kTimeoutMax) return kNever;
  return BootClock::now() + timeout;
}
inline TimePoint deadline_of(const CallOptions& call, std::optional<std::chrono::milliseconds> usual) {
  if (call.timeout) return after(*call.timeout);
  return usual ? after(*usual) : kNever;
}
// What is left of a call's time, for one of its parts. Rounded up, but no time left is no time.
inline CallOptions rest_of(TimePoint deadline, const std::stop_token& stop) {
  if (deadline == kNever) return {.timeout = std::chrono::milliseconds::max(), .stop = stop};
  return {.timeout = std::chrono::ceil<std::chrono::milliseconds>(deadline - BootClock::now()), .stop = stop};
}

}  // namespace conclave::inline v1::internal
