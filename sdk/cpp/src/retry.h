// Back-off and the budget of retries.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <stop_token>

#include "clock.h"

namespace conclave::inline v1::internal {

// 50 ms, doubled to at most 2 s (or less), each time a random part of that ("full jitter").
class Backoff {
 public:
  explicit Backoff(std::chrono::milliseconds max = std::chrono::milliseconds(2000)) : max_(max) {}
  std::chrono::milliseconds next();
  void reset() { attempt_ = 0; }

 private:
  std::chrono::milliseconds max_;
  int attempt_ = 0;
};

// In the caller's thread.
void pause_until(TimePoint until, const std::stop_token& stop);

// For members that answer badly. Retries are at most a tenth of the calls of the last minute, plus ten.
class RetryBudget {
 public:
  void called(TimePoint now);
  bool take(TimePoint now);  // false: this retry would be over the budget

 private:
  static constexpr std::size_t kSlots = 12;  // of 5 s
  struct Slot {
    std::int64_t number = -1;
    std::int64_t calls = 0;
    std::int64_t retries = 0;
  };
  Slot& slot(TimePoint now);

  std::mutex mutex_;
  std::array<Slot, kSlots> slots_;
};

}  // namespace conclave::inline v1::internal
