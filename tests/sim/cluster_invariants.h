// What must hold after every step, whatever happens. From Raft's dissertation, figure 3.2, and our own contracts.
//
//   election safety        a term has one leader
//   log matching           an index that is applied has the same term on every member that applied it
//   state machine safety   equal applied index: equal revision and compaction; now and then the whole content
//   leader completeness    who becomes leader has everything that was committed before
//   monotonic              term, commit and applied index, revision and compaction of a running member never go back;
//                          a restarted one has not forgotten a term
//   applied <= commit <= last index
#pragma once

#include <map>
#include <vector>

#include "sim/cluster.h"

namespace sim {

class Invariants {
 public:
  explicit Invariants(Cluster& cluster) : cluster_(cluster), seen_(cluster.size()) {}

  // After a step of this node.
  void check(size_t node);
  // The node is a new machine: nothing is expected of it.
  void is_another(size_t node) { seen_[node] = {}; }
  // A client was answered: whoever leads a later term must know of it.
  void acknowledged(int64_t revision) { acknowledged_ = std::max(acknowledged_, revision); }
  int64_t highest_acknowledged() const { return acknowledged_; }

  // When everything is quiet: all members have applied the same and have the same content.
  void check_equal();

  uint64_t checks() const { return checks_; }
  uint64_t contents_compared() const { return contents_compared_; }
  uint64_t leaders() const { return leaders_.size(); }

 private:
  struct Seen {
    uint64_t starts = 0;
    uint64_t term = 0;
    member::RaftStatus raft = {};
    mvcc::Published published = {};
  };
  struct Applied {
    uint64_t term = 0;
    int64_t revision = 0;
    int64_t compacted = 0;
    size_t node = 0;
    std::optional<uint64_t> content = {};
  };
  static constexpr size_t kAppliedKept = 5000;  // indexes; older ones are forgotten
  static constexpr uint64_t kContentEvery = 16;

  void fault(size_t node, const std::string& text);
  void check_raft(size_t node, Seen& seen, const member::RaftStatus& raft);
  void check_applied(size_t node, Seen& seen, const mvcc::Published& published);
  std::optional<uint64_t> content_of(size_t node);

  Cluster& cluster_;
  std::vector<Seen> seen_;
  std::map<uint64_t, size_t> leaders_;   // term -> node
  std::map<uint64_t, Applied> applied_;  // index -> what it led to
  uint64_t committed_ = 0;               // the highest index that anybody knows to be committed,
  uint64_t committed_term_ = 0;          // and the term in which that was known
  int64_t acknowledged_ = 0;
  uint64_t checks_ = 0;
  uint64_t contents_compared_ = 0;
};

}  // namespace sim
