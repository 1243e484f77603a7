// A member alone, with the power going at one change of its disk after the other.
#pragma once

#include "sim/scenario.h"

namespace sim {

inline constexpr MemoryDisk::Loss kLosses[] = {MemoryDisk::Loss::kEverything, MemoryDisk::Loss::kNothing,
                                               MemoryDisk::Loss::kRandom};

// Started on what `from` has, does `act`: once whole, then with the power going at every `stride`-th change of its disk
// that this takes. Each time it is started again and `check` is held against it. The number of cuts.
template <class Act, class Check>
uint64_t cut_alone(uint64_t seed, const MemoryDisk& from, const std::function<void(member::Options&)>& options,
                   uint64_t stride, Act act, Check check) {
  const auto begin = [&] {
    Scenario::Setup setup{.nodes = 1, .seed = seed, .options = options};
    setup.disks.push_back(from.clone());
    auto scenario = std::make_unique<Scenario>(std::move(setup));
    scenario->await_leader();
    return scenario;
  };
  uint64_t first = 0;
  uint64_t last = 0;
  {
    const auto whole = begin();
    first = whole->disk(0).changes();
    act(*whole);
    last = whole->disk(0).changes();
    check(*whole);
  }
  uint64_t cuts = 0;
  for (uint64_t change = first + seed % stride; change < last && !testing::Test::HasFailure(); change += stride) {
    SCOPED_TRACE("the power goes at change " + std::to_string(change - first) + " of " + std::to_string(last - first));
    const auto scenario = begin();
    scenario->cluster.node(0).loss = kLosses[(change / stride) % std::size(kLosses)];
    scenario->disk(0).cut_power_at(change);
    act(*scenario);
    EXPECT_TRUE(scenario->until([&] { return scenario->power_cuts(0) > 0; })) << "the power did not go";
    scenario->await_leader();
    if (!testing::Test::HasFailure()) check(*scenario);
    ++cuts;
  }
  return cuts;
}

}  // namespace sim
