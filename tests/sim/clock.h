// Virtual time, shared by everything in a simulation.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/world.h"

namespace sim {

class SimClock final : public Clock {
 public:
  std::chrono::nanoseconds monotonic() override { return now_; }
  std::chrono::nanoseconds wall() override { return now_ + std::chrono::hours(24 * 365 * 50); }
  void advance(std::chrono::nanoseconds by) { now_ += by; }
  void advance_to(std::chrono::nanoseconds to) { now_ = std::max(now_, to); }

 private:
  std::chrono::nanoseconds now_{std::chrono::seconds(1)};
};

}  // namespace sim
