// The Raft core: no clock, disk, network or thread. It is told of ticks, messages, proposals and of what became
// durable, and answers with what to persist, send and apply. Rules: "In Search of an Understandable Consensus
// Algorithm" (figure 2, sections 5 and 8); the hand-over of work follows etcd/raft's asynchronous storage writes
// (raft/doc.go).
//
// The driver's loop:
//
//   node.tick() / step(message) / propose(...) / read_index(...) / persisted(batch) / applied(index)
//   while (auto ready = node.take_ready()) {
//     send(ready->messages_now);
//     if (ready->persists()) wal_stage.push(batch, hard_state, entries, messages_after_sync);  // in order
//     apply_stage.push(ready->committed);                                                      // in order
//     ...
//   }
//
// The wal stage makes hand-overs durable in order (several may share one sync), then the driver sends their
// messages_after_sync and calls persisted(batch). Committed entries are only ever handed out when they are in this
// member's own durable log: applied <= handed to apply <= min(commit, durable) <= last.
//
// Thread: the loop's. Nothing here blocks or takes longer than the entries it is given.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/entry.h"
#include "base/result.h"
#include "base/world.h"
#include "raft/log.h"
#include "raft/membership.h"
#include "raft/message.h"
#include "raft/progress.h"
#include "raft/read_index.h"

namespace raft {

enum class BatchNumber : uint64_t {};  // names one hand-over to the log on disk; grows by one
enum class Role : uint8_t { kFollower, kCandidate, kLeader };
const char* name(Role role);

struct Config {
  uint64_t id = kNobody;
  uint32_t election_ticks = 10;  // a follower waits between this and twice this for its leader
  uint32_t heartbeat_ticks = 1;  // below election_ticks

  uint64_t uncommitted_bytes_max = 64 << 20;  // of proposals that are not committed yet; then propose is refused
  uint64_t unapplied_entries_max = 5000;      // between applied and commit; then propose is refused (etcd has the same)
  uint64_t batch_bytes_max = 4 << 20;         // of entries in one hand-over (one entry may be larger)
  uint64_t apply_bytes_max = 4 << 20;         // of committed entries in one Ready (one entry may be larger)
  uint64_t message_bytes_max = 1 << 20;       // of entries in one append message (one entry may be larger)
  uint32_t inflight_messages_max = 256;       // appends on the way to one follower
  uint64_t waiting_reads_max = 100'000;       // reads that wait for their index; then read_index is refused
  LogLimits kept = {};                        // applied entries kept in memory for followers
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

struct Ready {
  BatchNumber batch{};
  std::optional<HardState> hard_state;       // term or vote changed, or commit together with entries
  std::vector<LogEntry> entries;             // first index may be at or below the previous hand-over's: it supersedes
  std::vector<Message> messages_now;         // need nothing to be durable
  std::vector<Message> messages_after_sync;  // promise what this hand-over and all before it hold
  std::vector<LogEntry> committed;  // durable here and decided; apply in order, no-ops and memberships included
  std::vector<ReadState> read_states;
  std::vector<uint64_t> reads_dropped;  // contexts whose leader stepped down: the caller may ask again
  std::optional<SoftState> soft_state;  // when changed

  // Goes through the wal stage. One with only messages needs no sync of its own but keeps its place in the row.
  bool persists() const { return hard_state.has_value() || !entries.empty() || !messages_after_sync.empty(); }
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

class Node {
 public:
  // The sole voter campaigns at once, without waiting for a tick. CHECKs that what was restored agrees with itself.
  Node(Config config, Restored restored, Random& random);

  void tick();  // one unit of logical time
  // A message from a peer. kInvalidArgument for one that no correct member sends (the peer is broken; nothing changed).
  Status step(Message message);

  // All or nothing, in the given order. kUnavailable "etcdserver: no leader" or kFailedPrecondition "raft: this member
  // is not the leader": nothing happened. kResourceExhausted "etcdserver: too many requests": a limit is reached.
  Result<Proposed> propose(std::span<const Proposal> proposals);

  // Asks for an index that holds everything that was answered before this call (section 8). The answer comes as a
  // ReadState or in reads_dropped, one for each context. Errors as propose. Before the leader has committed an entry of
  // its term the read waits.
  Status read_index(uint64_t context);

  std::optional<Ready> take_ready();  // empty when idle
  void persisted(BatchNumber batch);  // this hand-over, and all before it, are durable
  void applied(uint64_t index);       // everything up to here is applied (in the caller's own sense)
  // An applied membership entry took effect. Call before applied() of its index.
  void set_membership(Membership membership);

  uint64_t id() const { return config_.id; }
  uint64_t term() const { return term_; }
  Role role() const { return role_; }
  uint64_t leader() const { return leader_; }
  uint64_t commit_index() const { return commit_; }
  uint64_t durable_index() const { return durable_; }
  uint64_t applied_index() const { return applied_; }
  uint64_t last_index() const { return log_.last_index(); }
  // With the newest commit index, which is not handed over by itself: write it with whatever is written anyway.
  HardState hard_state() const { return {term_, vote_, commit_}; }
  const Membership& membership() const { return membership_; }
  const Log& log() const { return log_; }
  const std::map<uint64_t, Progress>& progress() const { return progress_; }  // leader only; for status and tests
  bool committed_in_term() const;  // the leader has committed an entry of its own term

 private:
  struct HandOver {
    BatchNumber batch;
    uint64_t last_index;  // lowered when a conflict rewrites what was handed over
    uint64_t term;
    uint64_t vote;
  };

  // node.cc
  void check_invariants() const;
  bool is_alone() const { return membership_.voters.size() == 1 && membership_.voters[0] == config_.id; }
  void append_own(EntryType type, std::shared_ptr<const Bytes> data);
  void advance_commit(uint64_t index);
  Message reply_to(const Message& message, MessageType type) const;

  // election.cc
  void reset_election_timer();
  bool may_campaign() const;
  void campaign();
  void campaign_if_alone();
  void count_votes();
  void become_follower(uint64_t term, uint64_t leader);
  void become_leader();
  void on_vote(const Message& message);
  void on_vote_response(const Message& message);

  // replication.cc
  Status on_append(Message& message);
  Status on_append_response(const Message& message);
  Status on_heartbeat(const Message& message);
  void on_heartbeat_response(const Message& message);
  Status check_sender(const Message& message) const;
  void send_appends();
  void send_heartbeats();
  void commit_what_a_majority_has();

  // ready.cc
  void start_and_answer_reads();
  void take_persistent(Ready& ready);
  void take_committed(Ready& ready);

  const Config config_;
  Random& random_;

  uint64_t term_;
  uint64_t vote_;
  uint64_t commit_;
  Log log_;
  Membership membership_;

  Role role_ = Role::kFollower;
  uint64_t leader_ = kNobody;
  uint32_t ticks_ = 0;  // since the last heartbeat sent (leader) or heard of
  uint32_t election_timeout_ticks_ = 0;
  std::map<uint64_t, bool> votes_;         // candidate: answers by voter; its own once it is durable
  std::map<uint64_t, Progress> progress_;  // leader: every member
  uint64_t uncommitted_bytes_ = 0;         // leader: of entries above commit
  ReadQueue reads_;                        // leader

  // Hand-overs to the log on disk: durable_ <= handed_ <= last.
  uint64_t next_batch_ = 1;
  uint64_t handed_;
  uint64_t durable_;
  HardState handed_state_;
  uint64_t durable_term_;
  uint64_t durable_vote_;
  std::deque<HandOver> hand_overs_;  // not durable yet

  // Hand-overs to apply: applied_ <= delivered_ <= min(commit_, durable_).
  uint64_t delivered_;
  uint64_t applied_;

  std::vector<Message> messages_now_;
  std::vector<Message> messages_after_sync_;
  std::vector<ReadState> read_states_;
  std::vector<uint64_t> reads_dropped_;
  SoftState told_;  // the last soft state given out
};

}  // namespace raft
