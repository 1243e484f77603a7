// What the core takes and hands out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/entry.h"
#include "raft/message.h"
#include "raft/progress.h"

namespace raft {

enum class BatchNumber : uint64_t {};  // names one hand-over to the log on disk; grows by one
enum class Role : uint8_t { kFollower, kPreCandidate, kCandidate, kLeader };
const char* name(Role role);

struct SoftState {
  uint64_t leader = kNobody;
  Role role = Role::kFollower;
  uint64_t term = 0;
  friend bool operator==(const SoftState&, const SoftState&) = default;
};

struct ReadState {
  uint64_t context = 0;
  uint64_t index = 0;  // serve the read once this index is applied
};

// The state after this entry.
struct SnapshotPoint {
  uint64_t index = 0;
  uint64_t term = 0;
  friend bool operator==(const SnapshotPoint&, const SnapshotPoint&) = default;
};

struct SnapshotOffer {
  uint64_t from = kNobody;  // the leader that has it
  SnapshotPoint point;
  friend bool operator==(const SnapshotOffer&, const SnapshotOffer&) = default;
};

struct Ready {
  BatchNumber batch{};
  // A snapshot was installed: the log on disk is emptied and goes on above it. To be persisted before `entries` and
  // `hard_state`, and after everything that was handed over before: it is never joined with earlier entries.
  std::optional<SnapshotPoint> snapshot;
  std::optional<HardState> hard_state;       // term or vote changed, or commit together with entries
  std::vector<LogEntry> entries;             // first index may be at or below the previous hand-over's: it supersedes
  std::vector<Message> messages_now;         // need nothing to be durable
  std::vector<Message> messages_after_sync;  // promise what this hand-over and all before it hold
  std::vector<LogEntry> committed;  // durable here and decided; apply in order, no-ops and memberships included
  std::vector<ReadState> read_states;
  std::vector<uint64_t> reads_dropped;            // contexts whose leader is gone: the caller may ask again
  std::vector<uint64_t> snapshots_needed;         // leader: members that the driver should offer a snapshot to
  std::optional<SnapshotOffer> snapshot_offered;  // follower: fetch it, then install()
  std::optional<SoftState> soft_state;            // when changed

  // Goes through the wal stage. One with only messages needs no sync of its own but keeps its place in the row.
  bool persists() const {
    return snapshot.has_value() || hard_state.has_value() || !entries.empty() || !messages_after_sync.empty();
  }
  bool empty() const {
    return !persists() && messages_now.empty() && committed.empty() && read_states.empty() && reads_dropped.empty() &&
           snapshots_needed.empty() && !snapshot_offered && !soft_state;
  }
};

struct Proposal {
  EntryType type = EntryType::kCommand;
  std::shared_ptr<const Bytes> data;
};

// Where proposals went. An entry is "mine" when it is applied with this term; another term at the index means it was
// lost.
struct Proposed {
  uint64_t first_index = 0;
  uint64_t last_index = 0;
  uint64_t term = 0;
};

// One member as its leader sees it.
struct MemberProgress {
  uint64_t id = kNobody;
  bool learner = false;
  Progress::State state = Progress::State::kProbe;
  uint64_t match = 0;
  bool recently_active = false;  // has answered within an election timeout (the leader itself: always)
};

}  // namespace raft
