// Several cores in one test, each with a driver: messages, syncs, applying, snapshots and crashes are steps that the
// test (or a seed) takes in any order. After every step the paper's rules (figure 3) are checked.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/memory_disk.h"  // SeededRandom
#include "raft/node.h"

namespace raft {

// What a member's log on disk holds: hand-overs in order, of which a crash keeps those that were synced.
struct TestDisk {
  HardState hard_state;
  SnapshotPoint base;
  std::deque<LogEntry> entries;

  uint64_t last_index() const { return base.index + entries.size(); }
  uint64_t term_at(uint64_t index) const;  // 0: not here
  void write(const Ready& ready);
  std::vector<LogEntry> all() const { return {entries.begin(), entries.end()}; }
};

struct TestMember {
  struct ToApply {
    std::optional<SnapshotPoint> snapshot;  // replace the store, or
    LogEntry entry;                         // apply this
  };
  Config config;
  TestDisk disk;
  // The store: the state after this index (what that is, all members agree on). A crash takes it back, not further than
  // store_durable.
  uint64_t stored = 0;
  uint64_t store_durable = 0;
  std::deque<Ready> syncing;
  std::deque<ToApply> to_apply;
  std::deque<uint64_t> snapshots_needed;
  std::optional<SnapshotOffer> fetching;
  bool disk_stands_still = false;
  bool apply_stands_still = false;
  std::unique_ptr<Node> node;  // empty: down
};

// "1,2,3 4": voters, then learners. Data of a membership entry, which says who takes part from then on.
std::string text_of(const Membership& membership);
Membership membership_of(const std::string& text);

class TestCluster {
 public:
  TestCluster(uint64_t size, uint64_t seed) : TestCluster(all_voters(size), size, seed) {}
  // Members 1..size exist and are started; those outside `membership` wait to be added.
  TestCluster(Membership membership, uint64_t size, uint64_t seed, const Config& config = small());
  static Config small();  // limits so small that they are met
  static Membership all_voters(uint64_t size);

  Node& node(uint64_t id) { return *members.at(id).node; }
  bool is_up(uint64_t id) { return members.at(id).node != nullptr; }

  // --- single steps; false: nothing to do
  void start(uint64_t id);  // or a crash and a restart in one
  void crash(uint64_t id, uint64_t store_back = 0);
  void take(uint64_t id);  // everything the core wants to have done is queued; what needs no sync is sent
  bool sync_one(uint64_t id);
  bool apply_one(uint64_t id);
  bool serve_snapshot(uint64_t id);  // offers what a member needs
  bool fetch_snapshot(uint64_t id);  // what was offered arrives
  bool fail_snapshot(uint64_t id);   // or does not
  void deliver(size_t number);
  void tick(uint64_t id);
  Result<Proposed> propose(uint64_t id, std::vector<std::string> texts);
  Result<Proposed> propose(uint64_t id, const Membership& membership);
  Status transfer(uint64_t id, uint64_t to);
  Status read(uint64_t id, const std::vector<uint64_t>& contexts);

  // --- many steps
  // Everything is delivered, synced and applied, except to members that are down or in `down`.
  void settle(const std::set<uint64_t>& down = {});
  // Makes a member leader, as if an earlier one had asked it to campaign.
  void elect(uint64_t id, const std::set<uint64_t>& down = {});
  void tick_all(uint64_t times, const std::set<uint64_t>& down = {});  // and settles after each
  uint64_t leader() const;                                             // of the highest term, kNobody: none

  const LogEntry& decided(uint64_t index) const { return decided_.at(index - 1).entry; }
  uint64_t decided_count() const { return decided_.size(); }
  const Membership& membership_at(uint64_t index) const;

  std::map<uint64_t, TestMember> members;
  std::deque<Message> network;
  std::set<std::pair<uint64_t, uint64_t>> cut;  // from, to: what is delivered there is lost
  std::map<uint64_t, uint64_t> answered_reads;
  std::set<uint64_t> dropped_reads;
  uint64_t installs = 0;
  std::function<void(const Message&, bool lost)> on_delivery;

 private:
  struct Decided {
    LogEntry entry;
    uint64_t term;  // of the member that knew it first: when it was decided, or later
    Membership membership;
  };
  struct Written {
    uint64_t previous_term;
    std::shared_ptr<const Bytes> data;
  };
  void check_written(uint64_t id, const Ready& ready);
  void check_leader(uint64_t id);
  void check_read(const ReadState& read);
  void decide(uint64_t id, const LogEntry& entry);

  SeededRandom random_;
  Membership first_membership_;
  std::map<uint64_t, uint64_t> leaders_;           // by term
  std::vector<Decided> decided_;                   // from index 1 on
  std::unordered_map<uint64_t, Written> written_;  // by term and index: log matching, incrementally
  std::map<uint64_t, uint64_t> reads_;             // context: what was decided when it was asked for
};

}  // namespace raft
