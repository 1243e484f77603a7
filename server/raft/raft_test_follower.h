// A follower whose leader the test plays.
#pragma once

#include <utility>
#include <vector>

#include "base/memory_disk.h"  // SeededRandom
#include "raft/node.h"

namespace raft {

inline LogEntry make_entry(uint64_t index, uint64_t term) {
  return {.index = index, .term = term, .data = std::make_shared<const Bytes>("entry")};
}

constexpr uint64_t kLeader = 2;

// A follower of member 2 with this log, of which everything is durable.
class Follower {
 public:
  explicit Follower(std::vector<LogEntry> entries, uint64_t commit = 0)
      : node({.id = 1},
             {.hard_state = {3, 0, commit}, .entries = std::move(entries), .membership = {.voters = {1, 2, 3}}},
             random) {}

  Status step(Message message) {
    message.from = kLeader;
    message.to = 1;
    message.term = 3;
    return node.step(std::move(message));
  }
  Status offer(uint64_t index, uint64_t term) {
    return step({.type = MessageType::kSnapshot, .log_index = index, .log_term = term});
  }
  Status append(uint64_t index, uint64_t term, std::vector<LogEntry> entries, uint64_t commit = 0) {
    return step({.type = MessageType::kAppend,
                 .log_index = index,
                 .log_term = term,
                 .commit = commit,
                 .entries = std::move(entries)});
  }

  SeededRandom random{1};
  Node node;
};

}  // namespace raft
