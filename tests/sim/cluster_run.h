// One run of a simulated cluster: clients at work while faults come and go, then quiet, then every check.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster_clients.h"
#include "sim/cluster_faults.h"
#include "sim/cluster_invariants.h"
#include "sim/cluster_locks.h"
#include "sim/cluster_membership.h"
#include "sim/cluster_sessions.h"

namespace sim {

struct RunOptions {
  uint64_t seed = 1;
  size_t nodes = 1;
  size_t members = 0;  // of them, at first; the others join later. 0: all, and that does not change
  uint64_t steps = 40'000;
  uint64_t steps_per_fault = 1500;
  std::optional<Faults::Kinds> faults = {};  // not set: as the seed decides
};

struct RunResult {
  std::vector<std::string> faults;  // empty: all is well
  std::string recent;               // steps before the first fault
  uint64_t trace = 0;
  uint64_t steps = 0;
  std::chrono::nanoseconds virtual_time{};
  uint64_t operations = 0;
  uint64_t acknowledged = 0;
  uint64_t faults_injected = 0;
  uint64_t leaders = 0;
  uint64_t contents_compared = 0;
  uint64_t membership_changes = 0;
  uint64_t replacements = 0;  // members that took a snapshot's store
  history::Record record;
};

RunResult run_cluster(const RunOptions& options);

}  // namespace sim
