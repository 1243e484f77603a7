// What goes wrong in a simulated cluster: power cuts at any disk call, killed and paused processes, slow, failing and
// full disks, partitions in one or both directions, bad networks. As the seed decides, and all healed on demand.
#pragma once

#include <chrono>
#include <map>

#include "sim/cluster.h"

namespace sim {

class Faults {
 public:
  // Which kinds there are in a run; a run with few of them goes deeper into each.
  struct Kinds {
    bool power = true;
    bool kill = true;
    bool stop = true;  // in order
    bool pause = true;
    bool partition = true;
    bool bad_network = true;
    bool slow_disk = true;
    bool failing_disk = true;
    bool full_disk = true;
  };
  static Kinds some(SeededRandom& random);

  Faults(Cluster& cluster, const Kinds& kinds) : cluster_(cluster), kinds_(kinds) {}

  // Perhaps one more fault, or the end of one. Call it now and then.
  void act();
  void end_the_due();
  // Everything works from now on.
  void heal();
  uint64_t injected() const { return injected_; }

 private:
  void power(size_t node);
  void pause(size_t node);
  void partition(size_t node);
  void bad_network();
  void slow_disk(size_t node);
  void failing_disk(size_t node);
  void full_disk(size_t node);

  Cluster& cluster_;
  const Kinds kinds_;
  uint64_t injected_ = 0;
  std::map<size_t, std::chrono::nanoseconds> paused_until_;
  std::map<size_t, std::chrono::nanoseconds> full_until_;
  std::chrono::nanoseconds cut_until_{};
};

}  // namespace sim
