// Power cuts and kills under a whole member: nothing acknowledged is lost, nothing is half there.
#include "sim/seeds.h"

namespace sim {
namespace {

// Opens after the power came back; the power may go again meanwhile.
void recover(Simulation& simulation, Workload& workload) {
  while (true) {
    if (simulation.random.below(4) == 0)
      simulation.disk.cut_power_at(simulation.disk.changes() + simulation.random.below(40));
    const Status opened = simulation.open(default_options());
    if (opened && leads(simulation)) break;
    ASSERT_TRUE(simulation.disk.power_cut()) << (!opened                ? opened.error().message
                                                 : simulation.failure() ? simulation.failure()->message
                                                                        : "no leader");
    workload.disconnect();
    simulation.kill();
    simulation.disk.crash(simulation.random);
  }
}

TEST(Power, NothingAcknowledgedIsLostAtACut) {
  for_seeds(1, [](uint64_t seed) {
    Simulation simulation(seed);
    Workload workload(simulation);
    recover(simulation, workload);
    for (int cut = 0; cut < 20 && !testing::Test::HasFatalFailure(); ++cut) {
      simulation.disk.cut_power_at(simulation.disk.changes() + simulation.random.below(300));
      work(simulation, workload, 6000);
      if (!simulation.disk.power_cut()) simulation.disk.cut_power();
      workload.disconnect();
      simulation.kill();
      simulation.disk.crash(simulation.random);
      recover(simulation, workload);
      if (testing::Test::HasFatalFailure()) return;
      workload.check();
      if (!workload.faults().empty()) break;
    }
    if (simulation.is_open() && workload.faults().empty()) {
      simulation.disk.cut_power_at(~uint64_t{0});
      workload.check_watch();
      workload.check_leases_end();
    }
    expect_no_faults(workload);
    EXPECT_GT(workload.acknowledged(), 0U);
  });
}

TEST(Power, AKilledProcessLosesNothing) {
  for_seeds(2, [](uint64_t seed) {
    Simulation simulation(seed);
    Workload workload(simulation);
    recover(simulation, workload);
    for (int kill = 0; kill < 10 && !testing::Test::HasFatalFailure(); ++kill) {
      work(simulation, workload, static_cast<int>(simulation.random.below(4000)));
      if (simulation.random.below(3) == 0 && !simulation.disk.power_cut()) {
        workload.disconnect();
        simulation.close();
        simulation.disk.restart();
      } else {
        workload.disconnect();
        simulation.kill();
        if (simulation.disk.power_cut()) simulation.disk.crash(simulation.random);
      }
      recover(simulation, workload);
      if (testing::Test::HasFatalFailure()) return;
      workload.check();
    }
    simulation.disk.cut_power_at(~uint64_t{0});
    workload.check_watch();
    expect_no_faults(workload);
  });
}

// The same seed, the same run: a failure can be replayed.
TEST(Simulation, ASeedReplaysExactly) {
  const auto trace = [](uint64_t seed) {
    Simulation simulation(seed);
    Workload workload(simulation);
    EXPECT_TRUE(simulation.open(default_options()));
    EXPECT_TRUE(leads(simulation));
    work(simulation, workload, 20'000);
    const auto seen = std::tuple(simulation.clock.monotonic(), simulation.disk.calls(), workload.acknowledged(),
                                 simulation.member().reader()->at().revision, simulation.random.next());
    workload.disconnect();
    simulation.close();  // tells the workload's writes, which must be there
    return seen;
  };
  EXPECT_EQ(trace(7), trace(7));
  EXPECT_NE(trace(7), trace(8));
}

}  // namespace
}  // namespace sim
