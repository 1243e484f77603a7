// What the members' Raft cores say to each other. Plain values: `peer` puts them on the wire (wire.h), the simulator
// passes them on.
#pragma once

#include <cstdint>
#include <vector>

#include "base/entry.h"

namespace raft {

constexpr uint64_t kNobody = 0;  // no member has this id

// What no cluster reaches by electing and appending, so that a number from the wire plus one, or plus a number of
// entries, never overflows. A member that is told of more refuses it; one that finds more on its disk does not start.
constexpr uint64_t kTermMax = uint64_t{1} << 62;
constexpr uint64_t kIndexMax = uint64_t{1} << 62;
// A snapshot is the only thing that moves a log ahead in a leap: what follows it must stay below kIndexMax, too.
constexpr uint64_t kSnapshotIndexMax = kIndexMax / 2;
// A message moves a member's term by so much at most: whoever is further behind gets there with several. So nobody can
// use up the terms with one message.
constexpr uint64_t kTermLeapMax = uint64_t{1} << 32;

// The numbers are those of the wire format.
enum class MessageType : uint8_t {
  kVote = 1,                // log_index, log_term: the end of the candidate's log; forced: the leader asked for it
  kVoteResponse = 2,        // reject
  kAppend = 3,              // log_index, log_term: the entry before `entries`; commit
  kAppendResponse = 4,      // log_index: the last that matches; or reject with log_index and hint; commit
  kHeartbeat = 5,           // commit (never above what the receiver is known to have), read_round
  kHeartbeatResponse = 6,   // read_round as received; log_index: the log's end, durable or not; hint_index: the last
                            // that was or would be acknowledged; commit
  kPreVote = 7,             // as kVote; `term` is the one after the sender's: nobody takes it over
  kPreVoteResponse = 8,     // granted: `term` as received; reject: the sender's own
  kTimeoutNow = 9,          // the leader hands over: campaign at once
  kReadIndex = 10,          // read_round: the newest batch of reads that waits at the sender
  kReadIndexResponse = 11,  // read_round as received; log_index: answers that batch and all before it
  kSnapshot = 12,           // log_index, log_term: the leader has a snapshot of this state; its content is fetched
};

struct Message {
  MessageType type = MessageType::kHeartbeat;
  uint64_t from = kNobody;
  uint64_t to = kNobody;
  uint64_t term = 0;  // the sender's (but see kPreVote)
  uint64_t log_index = 0;
  uint64_t log_term = 0;
  uint64_t commit = 0;
  std::vector<LogEntry> entries = {};
  bool reject = false;
  bool forced = false;      // kVote: counts although a leader was heard of lately
  uint64_t hint_index = 0;  // kAppendResponse with reject: the largest index at which the logs may still match,
  uint64_t hint_term = 0;   // and the receiver's term there
  uint64_t read_round = 0;
};

const char* name(MessageType type);

// What is wrong with it, or nullptr: what no correct member sends, whatever the receiver's state. (Not checked: `to`.)
const char* fault_of(const Message& message);

}  // namespace raft
