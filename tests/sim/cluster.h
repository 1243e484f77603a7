// Many members in one thread: each with its own machine (disk, random numbers), all on one virtual clock and one
// simulated network. A seed picks the next step: a stage of some member, or an event of the network.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/machine.h"
#include "sim/network.h"

namespace sim {

class Cluster {
 public:
  struct Node {
    std::unique_ptr<SeededRandom> random;
    std::unique_ptr<Machine> machine;
    member::Options options;
    uint64_t starts = 0;
    bool paused = false;
    bool joining = false;                               // may be refused until others know of it
    bool wanted = true;                                 // is to be started again when it is down
    std::chrono::nanoseconds start_at{};                // when it is down
    MemoryDisk::Loss loss = MemoryDisk::Loss::kRandom;  // of what is not synced, when the power goes in a step
    std::optional<Error> refused = {};                  // by the last start
    bool is_open() const { return machine->is_open(); }
  };

  Cluster(uint64_t seed, size_t nodes, std::function<member::Options(size_t node, size_t nodes)> options);
  ~Cluster();

  size_t size() const { return nodes_.size(); }
  Node& node(size_t index) { return *nodes_[index]; }
  member::Member& member(size_t index) { return nodes_[index]->machine->member(); }
  bool is_up(size_t index) const { return nodes_[index]->is_open() && !nodes_[index]->paused; }

  // Opens it now. Errors are the member's own.
  Status start(size_t index);
  void kill(size_t index);                                                      // the process
  void crash(size_t index, MemoryDisk::Loss loss = MemoryDisk::Loss::kRandom);  // the machine
  void close(size_t index);                                                     // in order
  // Another machine in its place, which is down.
  void replace_machine(size_t index, std::unique_ptr<MemoryDisk> disk);
  void wipe(size_t index) { replace_machine(index, std::make_unique<MemoryDisk>()); }
  void pause(size_t index);
  void resume(size_t index);

  // Does the next thing that is due; nothing is: time goes on. A machine whose power goes, or whose member gives up,
  // in this step is down after it, and started again later.
  void step();
  // Steps until `done`, at most for so much virtual time.
  template <class Done>
  bool run_until(Done done, std::chrono::nanoseconds within) {
    const auto end = clock.monotonic() + within;
    while (!done()) {
      if (clock.monotonic() >= end || stopped()) return false;
      step();
    }
    return true;
  }
  void run_for(std::chrono::nanoseconds time) {
    run_until([] { return false; }, time);
  }

  // The member that leads the highest term, in its own opinion.
  std::optional<size_t> leader();

  // What is wrong. The simulation stops at the first.
  void fault(const std::string& text);
  bool stopped() const { return !faults_.empty(); }
  const std::vector<std::string>& faults() const { return faults_; }

  // Called after each step with the node that did something (size(): the network). For invariants.
  std::function<void(size_t node, const char* what)> after_step = [](size_t, const char*) {};
  // Called before a member is gone: connections end.
  std::function<void(size_t node)> before_down = [](size_t) {};

  uint64_t trace() const { return trace_ ^ network.trace(); }
  uint64_t steps() const { return steps_; }
  uint64_t replacements() const { return replacements_; }  // members that took a snapshot's store
  // How the members stand, and the last things that happened, for a failing seed.
  std::string recent();

  const uint64_t seed;
  SeededRandom random;
  SimClock clock;
  SimulatedNetwork network;

 private:
  void down(size_t index, std::chrono::nanoseconds for_so_long);
  void start_the_wanted();
  void run_member(const Machine::Choice& choice);
  void replace(size_t index);
  void note(size_t node, const char* what);

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::string> faults_;
  uint64_t trace_ = 0;
  uint64_t steps_ = 0;
  uint64_t replacements_ = 0;
  struct Happened {
    std::chrono::nanoseconds at{};
    size_t node = 0;
    const char* what = "";
  };
  static constexpr size_t kRecentMax = 40;
  std::vector<Happened> recent_;
};

// Member `node` of a new cluster of so many.
member::Options cluster_options(size_t node, size_t nodes);

}  // namespace sim
