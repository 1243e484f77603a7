// The Raft core: no clock, disk, network or thread. It is told of ticks, messages, proposals and of what became
// durable, and answers with what to persist, send and apply. Rules: "In Search of an Understandable Consensus
// Algorithm" (figure 2, sections 5 and 8) and Ongaro's dissertation (3.10 transfer, 4 membership, 6.4 reads, 9.6
// pre-vote); the hand-over of work follows etcd/raft's asynchronous storage writes (raft/doc.go), and where the papers
// leave a choice it is etcd/raft's.
//
// The driver's loop:
//
//   node.tick() / step(message) / propose(...) / read_index(...) / persisted(batch) / applied(index) / ...
//   while (auto ready = node.take_ready()) {
//     send(ready->messages_now);
//     if (ready->persists()) wal_stage.push(batch, snapshot, hard_state, entries, messages_after_sync);  // in order
//     apply_stage.push(ready->committed);                                                                // in order
//     for (member : ready->snapshots_needed) make or find a snapshot, then node.offer_snapshot(member, index, term);
//     if (ready->snapshot_offered) fetch it, then node.install(index, term, membership);
//     ...
//   }
//
// The wal stage makes hand-overs durable in order (several may share one sync), then the driver sends their
// messages_after_sync and calls persisted(batch). Committed entries are only ever handed out when they are in this
// member's own durable log: applied <= handed to apply <= min(commit, durable) <= last.
//
// A member without a leader asks for pre-votes before it begins a term. Whoever heard of a leader within an election
// timeout ignores (pre-)votes, unless the leader itself asked for the election; in return a leader that hears of no
// quorum for an election timeout steps down. So neither a member that was cut off nor a removed one disturbs a cluster
// that works. A leader whose own log makes no progress on disk for an election timeout hands over; a member in that
// state does not campaign.
//
// Snapshot, on the leader: `snapshots_needed` names a member that needs entries which are not in memory any more, once,
// when that member is reachable. From then on the log in memory is kept for it (within kept_for_catching_up). The
// driver makes a snapshot (its index is at least the applied index of then) and calls offer_snapshot; the offer is
// repeated with the heartbeats until the member answers. snapshot_failed begins anew.
// Snapshot, on the follower: `snapshot_offered` comes once for each new offer. The driver fetches and verifies the
// content while everything goes on, then calls install(). Only when that says yes the store is replaced: after all that
// was handed to apply before, and before the hand-over with Ready.snapshot reaches the log on disk (hold the row back
// until then). What the row says afterwards is only true with the new store.
//
// Thread: the loop's. Nothing here blocks or takes longer than the entries it is given.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/world.h"
#include "raft/config.h"
#include "raft/log.h"
#include "raft/membership.h"
#include "raft/message.h"
#include "raft/progress.h"
#include "raft/read_index.h"
#include "raft/ready.h"

namespace raft {

class Node {
 public:
  // The sole voter campaigns at once, without waiting for a tick. CHECKs that what was restored agrees with itself.
  Node(Config config, Restored restored, Random& random);

  void tick();  // one unit of logical time
  // A message from a peer. kInvalidArgument for one that no correct member sends (the peer is broken; nothing changed).
  // kDataLoss: this member acknowledged entries that it does not have, or has committed others than the leader; only a
  // member can say so.
  Status step(Message message);

  // All or nothing, in the given order. kUnavailable "etcdserver: no leader" (also while the leadership is being handed
  // over) or kFailedPrecondition "raft: this member is not the leader": nothing happened. kResourceExhausted
  // "etcdserver: too many requests": a limit is reached.
  // Membership changes go one at a time, at most one in a call: kFailedPrecondition with a text that says so while
  // another one is not applied here yet, or before an entry of this leader's own term is committed. Whether the change
  // is wise (enough members that are started and healthy) is the driver's to judge: see member_progress().
  Result<Proposed> propose(std::span<const Proposal> proposals);

  // Asks for an index that holds everything that was answered before this call (paper, section 8), on any member: a
  // follower or learner asks its leader, again with the ticks while there is no answer. The answer comes as a ReadState
  // or in reads_dropped (leader gone), one for each context. kUnavailable "etcdserver: no leader", kResourceExhausted
  // "etcdserver: too many requests". Before the leader has committed an entry of its term the read waits.
  Status read_index(uint64_t context);

  // Begins to hand the leadership over; 0: to the recently active voter that has most. Proposals are refused until the
  // new leader is heard of or an election timeout has passed, which ends the attempt. Nothing to do, if `to` leads or
  // is being handed to; another attempt is replaced. kFailedPrecondition "etcdserver: not leader" or "etcdserver: bad
  // leader transferee" (not a voter, or there is no other that is active).
  Status transfer_leadership(uint64_t to);
  uint64_t transfer_target() const { return transfer_to_; }  // kNobody: none is under way

  // Leader: a snapshot of the state after `index` can be fetched from here by `to`, of which snapshots_needed told.
  // kFailedPrecondition: it needs none (any more), or this member does not lead. kOutOfRange: what follows this
  // snapshot is not in memory; a newer one is needed. kInvalidArgument: there is no such state.
  Status offer_snapshot(uint64_t to, uint64_t index, uint64_t term);
  // Leader: what was needed or offered cannot be had. snapshots_needed names the member again if it still needs one.
  void snapshot_failed(uint64_t to);
  // Follower: what was offered could not be fetched. The next repetition of the offer is given out again.
  void fetch_failed();
  // Follower: a snapshot of the state after `index` is fetched, verified and can be put in place. The log is emptied;
  // commit, applied and durable index move there; the next hand-over carries Ready.snapshot, and the leader hears of it
  // when that is synced. kFailedPrecondition: it is not needed any more, because these entries are here by now; nothing
  // happened and the store must stay as it is. kInvalidArgument: no such state can exist. Notes of applied() from
  // before it are ignored.
  Status install(uint64_t index, uint64_t term, Membership membership);

  // Messages on the way to this member were lost (its connection broke): what is not acknowledged is sent again.
  // Without this call it is noticed after some heartbeats.
  void messages_lost(uint64_t to);

  std::optional<Ready> take_ready();  // empty when idle
  void persisted(BatchNumber batch);  // this hand-over, and all before it, are durable
  void applied(uint64_t index);       // everything up to here is applied (in the caller's own sense)
  // The membership entry at `index` took effect. Call before applied() of that index, in order. A leader that is no
  // voter any more takes no proposals, and steps down when a majority of the voters knows that this is committed.
  // Ignored if a snapshot was installed meanwhile. (As with etcd/raft, of two voters one can be removed only while the
  // other is there to hear that this is committed.)
  void set_membership(uint64_t index, Membership membership);

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
  const std::map<uint64_t, Progress>& progress() const { return progress_; }  // leader only; for tests
  std::vector<MemberProgress> member_progress() const;                        // leader only (else empty), by id
  bool committed_in_term() const;      // the leader has committed an entry of its own term
  bool is_membership_pending() const;  // leader: a change is in the log that is not applied here
  // The row to the log on disk has not moved for longer than an election timeout.
  bool is_disk_stuck() const;

 private:
  struct HandOver {
    BatchNumber batch;
    uint64_t last_index;  // lowered when a conflict or a snapshot rewrites what was handed over
    uint64_t term;
    uint64_t vote;
    uint64_t tick;  // when
  };

  // node.cc
  void check_invariants() const;
  bool is_alone() const { return membership_.voters.size() == 1 && membership_.voters[0] == config_.id; }
  bool is_baseless(const Message& message) const;
  bool adopt_term(const Message& message);
  void tick_leader();
  Message message_to(uint64_t to, MessageType type) const;
  Message reply_to(const Message& message, MessageType type) const { return message_to(message.from, type); }

  // propose.cc
  Status check_proposals(std::span<const Proposal> proposals) const;
  void append_own(EntryType type, std::shared_ptr<const Bytes> data);
  void advance_commit(uint64_t index);
  void step_down_if_removed();
  void release_if_caught_up(Progress& progress) const;
  void trim_log();

  // election.cc
  void reset_election_timer();
  void election_timed_out();
  bool may_campaign() const;
  bool hears_of_leader() const;
  void pre_campaign();
  void campaign(bool forced);
  void campaign_if_alone();
  void ask_again_for_pre_votes();
  void ask_for_votes(MessageType type, bool forced);
  void count_votes();
  void become_follower(uint64_t term, uint64_t leader);
  void become_leader();
  void set_leader(uint64_t leader);
  void on_vote(const Message& message);
  void on_pre_vote(const Message& message);
  void on_vote_response(const Message& message);
  void on_pre_vote_response(const Message& message);

  // replication.cc
  Status check_sender(const Message& message) const;
  Status on_append(Message& message);
  Status check_one_history(const Message& message) const;
  bool has_too_much_to_apply() const;
  void cut_log_from(uint64_t index);
  void acknowledge(uint64_t index);
  Status on_append_response(const Message& message);
  void arrived(uint64_t from, Progress& progress, uint64_t index);
  void on_append_rejected(const Message& message, Progress& progress);
  void send_appends();
  void send_appends(uint64_t to, Progress& progress);
  void commit_what_a_majority_has();

  // heartbeat.cc
  Status on_heartbeat(const Message& message);
  void on_heartbeat_response(const Message& message);
  void send_heartbeats();
  Progress* heard_from(const Message& message);
  uint64_t acknowledged_durably() const;
  bool is_recently_active(const Progress& progress) const;
  bool hears_of_quorum() const;

  // transfer.cc
  uint64_t best_successor(uint64_t match_min) const;
  void begin_transfer(uint64_t to);
  void continue_transfer();
  void watch_transfer_and_disk();
  void on_timeout_now();

  // snapshot.cc
  Status on_snapshot(const Message& message);
  void send_offer(uint64_t to, const Progress& progress);
  void snapshot_or_entries_arrived(uint64_t from, Progress& progress);

  // reads.cc
  void on_read_index(const Message& message);
  void on_read_index_response(const Message& message);
  void start_and_answer_reads();
  void ask_leader_for_reads();
  void ask_leader_again();
  void drop_reads(std::vector<uint64_t> contexts);

  // ready.cc
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
  uint64_t now_ = 0;           // ticks since the start
  uint64_t leader_heard_ = 0;  // follower: when, of leader_
  uint64_t acknowledged_ = 0;  // follower: to leader_ in this term: the logs agree through here
  uint32_t ticks_ = 0;         // since the last heartbeat sent (leader), heard of, or vote given
  uint32_t election_timeout_ticks_ = 0;
  std::map<uint64_t, bool> votes_;         // candidates: answers by voter; its own (real) one once it is durable
  std::map<uint64_t, Progress> progress_;  // leader: every member
  uint64_t uncommitted_bytes_ = 0;         // leader: of entries above commit
  uint64_t last_membership_ = 0;           // leader: index of the last membership entry that was not applied, or lower

  uint64_t removed_at_ = 0;  // leader: not 0: it is no voter any more, since this index

  uint64_t transfer_to_ = kNobody;  // leader
  uint64_t transfer_began_ = 0;
  uint64_t last_successor_ = kNobody;  // to whom a stuck disk made it hand over last; the next try is another one

  ReadQueue reads_;           // leader
  ForwardedReads forwarded_;  // the others
  uint64_t asked_tick_ = 0;   // when forwarded_ was asked for

  // Hand-overs to the log on disk: durable_ <= handed_ <= last.
  uint64_t next_batch_ = 1;
  uint64_t handed_;
  uint64_t durable_;
  HardState handed_state_;
  uint64_t durable_term_;
  uint64_t durable_vote_;
  std::deque<HandOver> hand_overs_;  // not durable yet
  uint64_t persisted_tick_ = 0;      // when one became durable last
  std::optional<SnapshotPoint> installed_unhanded_;
  BatchNumber installing_{};  // the last hand-over with a snapshot; not durable while persisted_ is below
  BatchNumber persisted_{};

  // Hand-overs to apply: applied_ <= delivered_ <= min(commit_, durable_).
  uint64_t delivered_;
  uint64_t applied_;
  uint64_t installed_ = 0;  // index of the last snapshot that was installed

  std::optional<SnapshotOffer> offered_;  // follower: the last one given out
  std::vector<Message> messages_now_;
  std::vector<Message> messages_after_sync_;
  std::vector<ReadState> read_states_;
  std::vector<uint64_t> reads_dropped_;
  std::vector<uint64_t> snapshots_needed_;
  std::optional<SnapshotOffer> snapshot_offered_;
  SoftState told_;  // the last soft state given out
};

}  // namespace raft
