// What the server knows of the outside: clock, randomness, disk. The real ones are made in main.cc; the simulator gives
// its own. (The network joins with the cluster.)
#pragma once

#include <chrono>
#include <cstdint>

#include "base/disk.h"

class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back, runs also while the machine sleeps. The only clock that decides anything.
  virtual std::chrono::nanoseconds monotonic() = 0;
  // Since 1970. For logs, audit and time-to-revision only.
  virtual std::chrono::nanoseconds wall() = 0;
};

class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t next() = 0;  // 64 uniformly random bits; any thread
};

struct World {
  Clock& clock;
  Random& random;
  Disk& disk;
};

// The machine's own. Alive for the whole process.
World& real_world();
