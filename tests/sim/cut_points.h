// An episode of a simulated cluster that is run again and again from the same disks with the same seed, each time with
// the power of one member going at another call of its disk.
//
//   the others are up and agree; the victim starts; clients write all the time
//   1. until the victim is where the others are       (a snapshot is installed, or a conflict is cut off)
//   2. one of the others stands still: what is acknowledged now is on the victim's disk and on one more
//   3. the power of that one goes, the one that stood still goes on: nothing acknowledged may be missing
//   4. all are up: all are equal
//
// Calls that change nothing on the disk are no cut points: a cut at the next one that does finds the same disk, and
// more that was promised to others.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario.h"

namespace sim {

using Content = std::map<std::string, std::string>;
Content content_of(member::Member& member);

struct Episode {
  uint64_t seed = 1;
  size_t victim = 0;
  std::function<void(member::Options&)> options = [](member::Options&) {};
  std::vector<std::unique_ptr<MemoryDisk>> disks = {};  // what each run begins with
  Content content = {};                                 // that was acknowledged before
};

struct Cut {
  uint64_t change = 0;  // of the victim's disk, from its start on
  MemoryDisk::Loss loss = MemoryDisk::Loss::kRandom;
  bool again = false;  // soon after, while it starts
};

struct EpisodeRun {
  uint64_t changes_caught_up = 0;  // of the victim's disk until the end of 1.
  uint64_t changes = 0;            // until the end of 2.: the cut points
  uint64_t calls = 0;              // reads and the like included
  uint64_t replacements = 0;       // by a snapshot
};

// Whatever is wrong fails the test.
EpisodeRun run_episode(const Episode& episode, const std::optional<Cut>& cut);

}  // namespace sim
