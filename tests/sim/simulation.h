// One member, whole: the real loop, log, apply, key space, store, leases and watches, in one thread over a simulated
// disk and a virtual clock. A seed decides everything: which stage steps next, how long things take, when the power
// goes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/memory_disk.h"
#include "base/world.h"
#include "member/member.h"
#include "metrics/registry.h"

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

class Simulation {
 public:
  explicit Simulation(uint64_t seed, std::unique_ptr<MemoryDisk> disk = std::make_unique<MemoryDisk>());

  // Opens the member on what the disk has. An error is the member's own refusal (or the power that went meanwhile).
  Status open(const member::Options& options);
  // The process is gone, the disk is not. What it had asked for is never answered.
  void kill();
  // Stops it in order.
  void close();
  // One step of one stage, chosen by the seed among those that want to run; if none does, the clock moves on.
  void step();
  // Steps until `done`, at most for so much virtual time. False: that time passed (or the member failed).
  template <class Done>
  bool run_until(Done done, std::chrono::nanoseconds within) {
    const auto end = clock.monotonic() + within;
    while (!done()) {
      if (clock.monotonic() >= end || failure_) return false;
      step();
    }
    return true;
  }

  member::Member& member() { return *member_; }
  bool is_open() const { return member_ != nullptr; }
  const std::optional<Error>& failure() const { return failure_; }

  const uint64_t seed;
  SeededRandom random;
  SimClock clock;

 private:
  const std::unique_ptr<MemoryDisk> disk_;

 public:
  MemoryDisk& disk;

 private:
  struct Slot {
    member::Stage* stage = nullptr;
    bool woken = true;
    member::Time due = member::kWhenWoken;
  };
  World world_;
  std::unique_ptr<metrics::Registry> metrics_;
  std::optional<Error> failure_;
  std::unique_ptr<member::Member> member_;
  std::vector<Slot> slots_;
};

member::Options default_options();

}  // namespace sim
