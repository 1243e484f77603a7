#include "sim/simulation.h"

#include <utility>
#include <vector>

namespace sim {

Simulation::Simulation(uint64_t with_seed, std::unique_ptr<MemoryDisk> with_disk)
    : seed(with_seed),
      random(with_seed),
      machine_(clock, random, std::move(with_disk), Machine::DiskTime::kOfTheWorld),
      disk(machine_.disk()) {}

void Simulation::step() {
  std::vector<Machine::Choice> ready;
  member::Time next = member::kWhenWoken;
  machine_.collect(ready, next);
  if (ready.empty()) {
    clock.advance_to(next == member::kWhenWoken ? clock.monotonic() + std::chrono::milliseconds(1) : next);
    return;
  }
  machine_.run(ready[random.below(ready.size())].stage);
}

}  // namespace sim
