// Several cores in one test: messages, syncs and applying are steps that the test (or a seed) takes in any order.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "base/memory_disk.h"  // SeededRandom
#include "raft/node.h"

namespace raft {

// What a member's disk holds: hand-overs in order, of which a crash keeps those that were synced.
struct TestDisk {
  HardState hard_state;
  std::map<uint64_t, LogEntry> entries;

  void write(const Ready& ready) {
    if (ready.hard_state) hard_state = *ready.hard_state;
    for (const LogEntry& entry : ready.entries) {
      entries.erase(entries.lower_bound(entry.index), entries.end());
      entries[entry.index] = entry;
    }
  }
  std::vector<LogEntry> all() const {
    std::vector<LogEntry> list;
    for (const auto& [index, entry] : entries) list.push_back(entry);
    return list;
  }
};

struct TestMember {
  Config config;
  Membership membership;
  TestDisk disk;
  std::deque<Ready> syncing;
  std::deque<LogEntry> to_apply;
  std::vector<LogEntry> applied;  // from index 1 on
  std::unique_ptr<Node> node;
};

class TestCluster {
 public:
  TestCluster(uint64_t size, uint64_t seed) : random_(seed) {
    Membership membership;
    for (uint64_t id = 1; id <= size; ++id) membership.voters.push_back(id);
    for (uint64_t id = 1; id <= size; ++id) {
      TestMember& member = members[id];
      member.config.id = id;
      member.config.message_bytes_max = 400;
      member.config.batch_bytes_max = 600;
      member.config.apply_bytes_max = 600;
      member.config.inflight_messages_max = 4;
      member.membership = membership;
      start(id);
    }
  }

  Node& node(uint64_t id) { return *members.at(id).node; }

  void start(uint64_t id) {
    TestMember& member = members.at(id);
    member.syncing.clear();
    member.to_apply.clear();
    member.node = std::make_unique<Node>(member.config,
                                         Restored{.hard_state = member.disk.hard_state,
                                                  .entries = member.disk.all(),
                                                  .applied = member.applied.size(),
                                                  .membership = member.membership},
                                         random_);
    take(id);
  }

  // Everything the core wants to have done is queued; what needs no sync is sent.
  void take(uint64_t id) {
    TestMember& member = members.at(id);
    while (auto ready = member.node->take_ready()) {
      for (auto& message : ready->messages_now) network.push_back(std::move(message));
      for (auto& entry : ready->committed) member.to_apply.push_back(std::move(entry));
      for (const auto& read : ready->read_states) answered_reads[read.context] = read.index;
      for (const uint64_t context : ready->reads_dropped) dropped_reads.insert(context);
      if (ready->persists()) member.syncing.push_back(std::move(*ready));
    }
    check(id);
  }

  bool sync_one(uint64_t id) {
    TestMember& member = members.at(id);
    if (member.syncing.empty()) return false;
    Ready ready = std::move(member.syncing.front());
    member.syncing.pop_front();
    member.disk.write(ready);
    for (auto& message : ready.messages_after_sync) network.push_back(std::move(message));
    member.node->persisted(ready.batch);
    take(id);
    return true;
  }

  bool apply_one(uint64_t id) {
    TestMember& member = members.at(id);
    if (member.to_apply.empty()) return false;
    LogEntry entry = std::move(member.to_apply.front());
    member.to_apply.pop_front();
    EXPECT_EQ(entry.index, member.applied.size() + 1);
    // Own durable log first.
    EXPECT_TRUE(member.disk.entries.contains(entry.index));
    EXPECT_EQ(member.disk.entries[entry.index].term, entry.term);
    // State machine safety: no two members apply different entries at one index.
    const auto [decided, fresh] = decided_.try_emplace(entry.index, entry);
    EXPECT_EQ(decided->second.term, entry.term) << "index " << entry.index;
    EXPECT_EQ(*decided->second.data, *entry.data) << "index " << entry.index;
    member.applied.push_back(entry);
    member.node->applied(entry.index);
    take(id);
    return true;
  }

  void deliver(size_t number) {
    Message message = std::move(network[number]);
    network.erase(network.begin() + static_cast<std::ptrdiff_t>(number));
    const uint64_t to = message.to;
    EXPECT_TRUE(node(to).step(std::move(message)));
    take(to);
  }

  void tick(uint64_t id) {
    node(id).tick();
    take(id);
  }

  Result<Proposed> propose(uint64_t id, std::vector<std::string> texts) {
    std::vector<Proposal> proposals;
    for (auto& text : texts) proposals.push_back({.data = std::make_shared<const Bytes>(std::move(text))});
    auto result = node(id).propose(proposals);
    take(id);
    return result;
  }

  // Everything is delivered, synced and applied, except to members in `down`.
  void settle(const std::set<uint64_t>& down = {}) {
    for (bool busy = true; busy;) {
      busy = false;
      for (auto& [id, member] : members) {
        if (down.contains(id)) continue;
        while (sync_one(id) || apply_one(id)) busy = true;
      }
      std::erase_if(network, [&](const Message& m) { return down.contains(m.to) || down.contains(m.from); });
      if (!network.empty()) {
        deliver(0);
        busy = true;
      }
    }
  }

  // Ticks one member until it leads (the others are silent, so nobody competes).
  void elect(uint64_t id, const std::set<uint64_t>& down = {}) {
    for (int i = 0; i < 1000 && node(id).role() != Role::kLeader; ++i) {
      tick(id);
      settle(down);
    }
    ASSERT_EQ(node(id).role(), Role::kLeader);
  }

  std::map<uint64_t, TestMember> members;
  std::deque<Message> network;
  std::map<uint64_t, uint64_t> answered_reads;
  std::set<uint64_t> dropped_reads;

 private:
  // Election safety and, between the logs, log matching.
  void check(uint64_t id) {
    const Node& changed = node(id);
    if (changed.role() == Role::kLeader) {
      const auto [leader, fresh] = leaders_.try_emplace(changed.term(), id);
      EXPECT_EQ(leader->second, id) << "two leaders in term " << changed.term();
      // Leader completeness: it holds everything that was ever decided before its term.
      for (const auto& [index, entry] : decided_) {
        if (entry.term >= changed.term() || index <= changed.log().base_index()) continue;
        EXPECT_EQ(changed.log().term_at(index), entry.term) << "index " << index;
      }
    }
    for (const auto& [other_id, other] : members) {
      if (other_id == id || !other.node) continue;
      const Log& a = changed.log();
      const Log& b = other.node->log();
      bool equal = false;  // from the end: once a term is equal, everything before it is
      for (uint64_t index = std::min(a.last_index(), b.last_index()); index > std::max(a.base_index(), b.base_index());
           --index) {
        const bool same = a.at(index).term == b.at(index).term;
        EXPECT_TRUE(same || !equal) << "logs of " << id << " and " << other_id << " differ at " << index;
        if (same) {
          EXPECT_EQ(*a.at(index).data, *b.at(index).data);
        }
        equal = equal || same;
      }
    }
  }

  SeededRandom random_;
  std::map<uint64_t, uint64_t> leaders_;  // by term
  std::map<uint64_t, LogEntry> decided_;
};

}  // namespace raft
