// What the members' Raft cores say to each other. Plain values: `peer` puts them on the wire, the simulator passes them
// on.
#pragma once

#include <cstdint>
#include <vector>

#include "base/entry.h"

namespace raft {

constexpr uint64_t kNobody = 0;  // no member has this id

enum class MessageType : uint8_t {
  kVote = 1,               // log_index, log_term: the end of the candidate's log
  kVoteResponse = 2,       // reject
  kAppend = 3,             // log_index, log_term: the entry before `entries`; commit
  kAppendResponse = 4,     // log_index: the last that matches; or reject with log_index, hint_index, hint_term
  kHeartbeat = 5,          // commit (never above what the receiver is known to have), read_round
  kHeartbeatResponse = 6,  // read_round as received
};

struct Message {
  MessageType type = MessageType::kHeartbeat;
  uint64_t from = kNobody;
  uint64_t to = kNobody;
  uint64_t term = 0;  // the sender's
  uint64_t log_index = 0;
  uint64_t log_term = 0;
  uint64_t commit = 0;
  std::vector<LogEntry> entries = {};
  bool reject = false;
  uint64_t hint_index = 0;  // kAppendResponse with reject: the largest index at which the logs may still match,
  uint64_t hint_term = 0;   // and the receiver's term there
  uint64_t read_round = 0;
};

const char* name(MessageType type);

}  // namespace raft
