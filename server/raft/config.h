// What a Raft core is made with.
#pragma once

#include <cstdint>
#include <vector>

#include "base/entry.h"
#include "raft/log.h"
#include "raft/membership.h"
#include "raft/message.h"

namespace raft {

struct Config {
  uint64_t id = kNobody;
  uint32_t election_ticks = 10;  // a follower waits between this and twice this for its leader
  uint32_t heartbeat_ticks = 1;  // below election_ticks
  bool pre_vote = true;          // ask whether an election could be won before beginning a term (dissertation, 9.6)

  uint64_t uncommitted_bytes_max = 64 << 20;  // of proposals that are not committed yet; then propose is refused
  // Between applied and commit: then propose is refused (etcd has the same), and no more is handed to apply (but one
  // Ready).
  uint64_t unapplied_entries_max = 5000;
  // Follower: of its log in memory. Beyond it takes no entries while committed ones wait to be applied.
  uint64_t unapplied_bytes_max = 256 << 20;
  uint64_t batch_bytes_max = 4 << 20;      // of entries in one hand-over (one entry may be larger)
  uint64_t apply_bytes_max = 4 << 20;      // of committed entries in one Ready (one entry may be larger)
  uint64_t message_bytes_max = 1 << 20;    // of entries in one append message (one entry may be larger)
  uint32_t inflight_messages_max = 256;    // appends on the way to one follower,
  uint64_t inflight_bytes_max = 64 << 20;  // and of entries in them (one message may be larger)
  uint64_t waiting_reads_max = 100'000;    // reads that wait for their index; then read_index is refused
  LogLimits kept = {};                     // applied entries kept in memory for followers
  // The same while a follower is sent a snapshot and then catches up: it would be for nothing if the log went on
  // without it.
  LogLimits kept_for_catching_up = {.entries_max = 1'000'000, .bytes_max = 256 << 20};
};

// What the log on disk and the store remember.
struct Restored {
  HardState hard_state = {};
  uint64_t base_index = 0;  // the entry before the first of `entries`
  uint64_t base_term = 0;
  std::vector<LogEntry> entries = {};  // all durable
  uint64_t applied = 0;                // in [base_index, last]; what lies above and is committed is handed out again
  Membership membership = {};          // at `applied`
};

}  // namespace raft
