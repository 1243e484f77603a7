// Who takes part changes while everything else goes on: leadership moves, machines join as learners with an empty disk,
// are promoted, removed and come back as other members.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <vector>

#include "sim/cluster.h"
#include "sim/cluster_invariants.h"

namespace sim {

class Membership {
 public:
  // The nodes from `members` on are spare machines.
  Membership(Cluster& cluster, Invariants& invariants, size_t members);

  // Perhaps a change, and whatever follows from earlier ones. Call it now and then.
  void act();
  // No more changes are asked for; act() only finishes what was.
  void stop() { stopped_ = true; }
  // Every machine is a member that is up or a spare one, as somebody who is up to date knows.
  bool is_settled() const;
  uint64_t changes() const { return changes_; }
  uint64_t transfers() const { return transfers_; }

 private:
  using View = std::vector<apply::Member>;
  void look();
  void follow(const View& view);
  void change(const View& view);
  void ask(size_t through, conclavepb::MembershipChange change);
  void join(size_t node, const View& view);
  void put_aside(size_t node);
  const apply::Member* find(const View& view, size_t node) const;
  std::optional<size_t> some_member();

  Cluster& cluster_;
  Invariants& invariants_;
  std::set<size_t> spare_;
  std::optional<View> view_;  // confirmed by a linearizable read
  std::chrono::nanoseconds looked_{};
  std::chrono::nanoseconds known_at_{};     // when something about the members was heard last
  std::chrono::nanoseconds asked_until_{};  // one change at a time; its answer may be lost
  bool stopped_ = false;
  uint64_t changes_ = 0;
  uint64_t transfers_ = 0;
};

}  // namespace sim
