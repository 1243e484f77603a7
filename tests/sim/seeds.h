// How the tests of this folder run over seeds. CONCLAVE_SIM_SEEDS: how many (default 60, tests that cost more take a
// share); CONCLAVE_SIM_FIRST: the first one. A failing seed is printed; running it alone replays it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/workload.h"

namespace sim {

inline uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

template <class Body>
void for_seeds(uint64_t share, Body body) {
  const uint64_t first = setting("CONCLAVE_SIM_FIRST", 1);
  const uint64_t seeds = std::max<uint64_t>(1, setting("CONCLAVE_SIM_SEEDS", 60) / share);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    body(seed);
    if (testing::Test::HasFailure()) {
      std::printf("failing seed: %llu\n", static_cast<unsigned long long>(seed));
      return;
    }
  }
}

inline void expect_no_faults(const Workload& workload) {
  for (const std::string& fault : workload.faults()) ADD_FAILURE() << fault;
}

inline bool leads(Simulation& simulation) {
  return simulation.run_until([&] { return simulation.member().linearizable_now(); }, std::chrono::seconds(20));
}

inline void work(Simulation& simulation, Workload& workload, int actions) {
  for (int i = 0; i < actions && !simulation.failure(); ++i) {
    if (simulation.random.below(3) == 0) workload.act();
    simulation.step();
  }
}

}  // namespace sim
