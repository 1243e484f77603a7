// One member, whole: the real loop, log, apply, key space, store, leases and watches, in one thread over a simulated
// disk and a virtual clock. A seed decides everything: which stage steps next, how long things take, when the power
// goes.
#pragma once

#include <memory>
#include <optional>

#include "sim/machine.h"

namespace sim {

class Simulation {
 public:
  explicit Simulation(uint64_t seed, std::unique_ptr<MemoryDisk> disk = std::make_unique<MemoryDisk>());

  // As Machine's.
  Status open(const member::Options& options) { return machine_.open(options); }
  void kill() { machine_.kill(); }
  void close() { machine_.close(); }
  // One step of one stage, chosen by the seed among those that want to run; if none does, the clock moves on.
  void step();
  // Steps until `done`, at most for so much virtual time. False: that time passed (or the member failed).
  template <class Done>
  bool run_until(Done done, std::chrono::nanoseconds within) {
    const auto end = clock.monotonic() + within;
    while (!done()) {
      if (clock.monotonic() >= end || failure()) return false;
      step();
    }
    return true;
  }

  member::Member& member() { return machine_.member(); }
  bool is_open() const { return machine_.is_open(); }
  const std::optional<Error>& failure() const { return machine_.failure(); }

  const uint64_t seed;
  SeededRandom random;
  SimClock clock;

 private:
  Machine machine_;

 public:
  MemoryDisk& disk;
};

}  // namespace sim
