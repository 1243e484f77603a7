// Clients of a simulated member, and what they hold it to.
//
// Every written value is unique, so the history of the key space tells what happened to each request: what was
// acknowledged is there, at the revision it was told, whole; what was not answered is there whole or not at all, once.
// A watcher that resumes by revision sees exactly that history. No lease ends before the time that was promised.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/simulation.h"

namespace sim {

class Workload {
 public:
  explicit Workload(Simulation& simulation) : sim_(simulation) {}
  ~Workload() { disconnect(); }

  bool compacts = true;  // sometimes

  // Sends one random request (or reads from the watch).
  void act();
  // The connections are gone: to be called before the member is killed or closed.
  void disconnect();
  // Reads the whole history that is left and holds every promise against it.
  void check();
  // Lets go of all leases and waits until they ended; the last check of a run.
  void check_leases_end();
  // Waits until every request is answered.
  bool settle();
  // Waits until the watcher has seen everything, and holds it against the history.
  void check_watch();

  // Revision by revision: key -> value, "" deleted.
  using Change = std::map<std::string, std::string>;
  const std::map<int64_t, Change>& history() const { return history_; }
  const std::map<std::string, std::string>& latest() const { return expected_; }

  uint64_t acknowledged() const { return acknowledged_; }
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  struct Write {
    std::map<std::string, std::string> puts;  // key -> value; "" deletes
    int64_t revision = 0;                     // 0: not acknowledged
    bool found = false;
  };
  struct LeaseState {
    int64_t ttl = 0;
    std::chrono::nanoseconds promised{};  // alive until then at the least
    std::chrono::nanoseconds renew_at{};
    bool ended = false;
    std::string key;
  };
  void write();
  void lease();
  void compact();
  void follow();
  void send(conclavepb::Entry command, std::shared_ptr<Write> write);
  void fault(const std::string& text);
  void learn_history();
  void hold_against(const Write& write);

  Simulation& sim_;
  uint64_t next_value_ = 1;
  uint64_t acknowledged_ = 0;
  std::vector<std::shared_ptr<Write>> writes_;
  std::map<std::string, std::shared_ptr<Write>> by_value_;
  std::map<int64_t, LeaseState> leases_;
  std::map<int64_t, Change> history_;            // revision -> change; only grows
  std::map<std::string, std::string> expected_;  // what the history amounts to
  int64_t known_ = 1;                            // history up to here
  std::shared_ptr<watch::Stream> stream_;
  int64_t seen_ = 1;             // by the watcher
  uint64_t reads_left_out_ = 0;  // it is busy with something else, and its buffer fills up
  std::map<int64_t, Change> watched_;
  uint64_t epoch_ = 0;  // answers to an earlier connection do not arrive
  std::vector<std::string> faults_;
};

}  // namespace sim
