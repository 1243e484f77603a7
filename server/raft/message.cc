#include "raft/message.h"

#include <algorithm>

namespace raft {

const char* name(MessageType type) {
  switch (type) {
    case MessageType::kVote:
      return "vote";
    case MessageType::kVoteResponse:
      return "vote-response";
    case MessageType::kAppend:
      return "append";
    case MessageType::kAppendResponse:
      return "append-response";
    case MessageType::kHeartbeat:
      return "heartbeat";
    case MessageType::kHeartbeatResponse:
      return "heartbeat-response";
    case MessageType::kPreVote:
      return "pre-vote";
    case MessageType::kPreVoteResponse:
      return "pre-vote-response";
    case MessageType::kTimeoutNow:
      return "timeout-now";
    case MessageType::kReadIndex:
      return "read-index";
    case MessageType::kReadIndexResponse:
      return "read-index-response";
    case MessageType::kSnapshot:
      return "snapshot";
  }
  return "unknown";
}

const char* fault_of(const Message& message) {
  if (message.from == kNobody) return "no sender";
  if (message.term == 0) return "without a term";
  if (std::max({message.term, message.log_term, message.hint_term}) > kTermMax) return "a term that no cluster reaches";
  if (std::max({message.log_index, message.commit, message.hint_index}) > kIndexMax) return "an index no log reaches";
  if (message.type == MessageType::kSnapshot) {
    if (message.log_index == 0 || message.log_term == 0) return "a snapshot of nothing";
    if (message.log_index > kSnapshotIndexMax) return "a snapshot at an index that no log reaches";
    if (message.log_term > message.term) return "a snapshot of a later term";
  }
  if (message.type != MessageType::kAppend) return message.entries.empty() ? nullptr : "with entries";
  uint64_t index = message.log_index;
  uint64_t term = message.log_term;
  for (const LogEntry& entry : message.entries) {
    if (entry.index != ++index) return "entries with a gap";
    if (entry.term < term) return "a term that goes back";
    if (entry.data == nullptr) return "an entry without data";
    term = entry.term;
  }
  return term > message.term ? "an entry of a later term" : nullptr;
}

}  // namespace raft
