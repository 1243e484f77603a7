// A cluster that a test leads by hand to the place where a fault would show: requests that are waited for or left open,
// watches that are held against everything that happened. What must hold after every step is held after every step
// (cluster_invariants.h); whatever is wrong in the end fails the test.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster.h"
#include "sim/cluster_invariants.h"
#include "sim/watch_client.h"

namespace sim {

namespace command {  // short ways to write them
conclavepb::Entry put(const std::string& key, const std::string& value, int64_t lease = 0);
conclavepb::Entry erase(const std::string& key, const std::string& end = "");
conclavepb::Entry txn(etcdserverpb::TxnRequest request);
conclavepb::Entry compaction(int64_t revision, bool physical = false);
conclavepb::Entry grant(int64_t id, int64_t ttl);
conclavepb::Entry revoke(int64_t id);
}  // namespace command

// To a request: empty until it is there, and for ever if the member went down.
template <class T>
using Answer = std::shared_ptr<std::optional<T>>;

class Scenario {
 public:
  static constexpr std::chrono::seconds kPatience{30};
  struct Setup {
    size_t nodes = 3;
    size_t members = 0;  // of them, at first; the others are not wanted yet. 0: all
    uint64_t seed = 1;
    std::function<void(member::Options&)> options = [](member::Options&) {};
    std::vector<std::unique_ptr<MemoryDisk>> disks = {};  // what the machines begin with; none: empty ones
  };
  explicit Scenario(Setup setup);
  ~Scenario();

  // False: not in time, or a fault.
  template <class Done>
  bool until(Done done, std::chrono::nanoseconds within = kPatience) {
    return cluster.run_until(done, within);
  }
  void run_for(std::chrono::nanoseconds time) { cluster.run_for(time); }

  member::Member& member(size_t node);  // that is there
  MemoryDisk& disk(size_t node) { return cluster.node(node).machine->disk(); }
  mvcc::Published published(size_t node) { return member(node).state().published; }
  // One that has applied an entry of its own term.
  std::optional<size_t> ready_leader();
  size_t await_leader();  // fails the test if there is none in time
  // All that are wanted are up and have applied the same, and nothing is under way.
  bool all_equal();
  bool await_equal() {
    return until([this] { return all_equal(); });
  }
  size_t follower(size_t leader, size_t which = 0) const;  // one that is not it

  // Frames between it and all others are lost, until network.heal_all().
  void cut_off(size_t node);
  void stop(size_t node);                              // the process, until start()
  void power_off(size_t node, MemoryDisk::Loss loss);  // the machine, until start()
  void start(size_t node);
  // Writes so much, and starts the others again: their logs no longer have what it lacks, and it needs a snapshot once
  // it hears of them. The last revision.
  int64_t leave_behind(size_t node);
  uint64_t power_cuts(size_t node) const { return power_cuts_[node]; }  // by MemoryDisk::cut_power_at()

  Answer<Result<apply::Message>> ask(size_t node, conclavepb::Entry command);
  // Waits for the answer; the revision of its header.
  Result<int64_t> write(size_t node, conclavepb::Entry command);
  // Which must go well.
  int64_t must(size_t node, conclavepb::Entry command);
  // `count` puts of values of `bytes`, some at a time, through whoever leads; the last revision.
  int64_t fill(int count, size_t bytes, const std::string& prefix = "fill/");
  Answer<Status> change(size_t node, conclavepb::MembershipChange change);

  // Linearizable; the value as the answer tells it (empty: no such key).
  Answer<Result<std::string>> read(size_t node, const std::string& key);
  std::string look(size_t node, const std::string& key);  // at what the member has now
  Answer<Result<int64_t>> keep_alive(size_t node, int64_t lease);

  WatchClient& watch(const WatchClient::What& what);
  // Takes note of what happened since the last time: before anything compacts it, and before the checks.
  void learn();
  const history::Events& events() const { return events_; }
  // Each watch was told what happened, in order and once; `complete`: all of it by now.
  void check_watches(bool complete);

  Cluster cluster;
  Invariants invariants;

 private:
  std::vector<std::unique_ptr<WatchClient>> watches_;
  history::Events events_;
  int64_t learnt_ = 1;
  uint64_t filled_ = 0;
  std::vector<uint64_t> power_cuts_;
};

// What two members that have applied the same differ in; empty: nothing.
std::string difference(member::Member& one, member::Member& other);

}  // namespace sim
