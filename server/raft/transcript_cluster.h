// Scenarios of a whole cluster as text (testdata/cluster). Commands, one a line:
//
//   cluster VOTERS [LEARNERS] [members=N] [kept=N] [message-bytes=N] [pre-vote=off]   all are started
//   log ID term=T [vote=V] [commit=C] entries=T,T,...   begins anew with this log on disk (before anything is decided)
//   elect ID        quietly makes it the leader
//   run N           quietly ticks everybody N times; everything is delivered, synced and applied in between
//   tick ID [N]     nothing else happens
//   deliver         delivers, syncs and applies until there is nothing left, and prints every message
//   settle          the same quietly
//   lose            what is on its way is lost
//   cut A B, cut A>B, isolate A, heal
//   crash ID, start ID, stall ID, unstall ID (its disk), hold ID, release ID (its apply)
//   propose ID TEXT..., propose-many ID COUNT, membership ID VOTERS [LEARNERS], transfer ID TO, read ID CONTEXT...
//   state [ID...], progress ID, reads
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "raft/raft_test_cluster.h"

namespace raft {

class ClusterScript {
 public:
  std::string run(const std::string& line);

 private:
  void make(std::istringstream& in);
  void restore(std::istringstream& in);
  void links(const std::string& command, std::istringstream& in);
  bool change_member(const std::string& command, uint64_t id, std::istringstream& in);
  bool ask_member(const std::string& command, uint64_t id, std::istringstream& in);
  void print_message(const Message& message, bool lost);
  void print_state(uint64_t id);
  void print_progress(uint64_t id);
  void print_status(const Status& status);

  std::ostringstream out_;
  std::unique_ptr<TestCluster> cluster_;
  bool loud_ = false;
};

}  // namespace raft
