#include "raft/node.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace raft {

const char* name(Role role) {
  switch (role) {
    case Role::kFollower:
      return "follower";
    case Role::kPreCandidate:
      return "pre-candidate";
    case Role::kCandidate:
      return "candidate";
    case Role::kLeader:
      return "leader";
  }
  return "unknown";
}

const char* name(Progress::State state) {
  switch (state) {
    case Progress::State::kProbe:
      return "probe";
    case Progress::State::kReplicate:
      return "replicate";
    case Progress::State::kSnapshot:
      return "snapshot";
  }
  return "unknown";
}

Node::Node(Config config, Restored restored, Random& random)
    : config_(std::move(config)),
      random_(random),
      term_(restored.hard_state.term),
      vote_(restored.hard_state.vote),
      // The commit index is written lazily; what is applied was committed.
      commit_(std::max(restored.hard_state.commit, restored.applied)),
      log_(restored.base_index, restored.base_term, std::move(restored.entries)),
      membership_(std::move(restored.membership)),
      handed_(log_.last_index()),
      durable_(log_.last_index()),
      handed_state_(restored.hard_state),
      durable_term_(term_),
      durable_vote_(vote_),
      delivered_(restored.applied),
      applied_(restored.applied) {
  CHECK(config_.id != kNobody);
  CHECK(config_.heartbeat_ticks > 0);
  CHECK(config_.heartbeat_ticks < config_.election_ticks, config_.heartbeat_ticks, config_.election_ticks);
  CHECK(applied_ >= log_.base_index(), applied_, log_.base_index());
  CHECK(commit_ <= log_.last_index(), commit_, log_.last_index());
  CHECK(term_ >= log_.last_term(), term_, log_.last_term());
  check_membership(membership_);
  told_.term = term_;
  trim_log();
  reset_election_timer();
  campaign_if_alone();
}

void Node::check_invariants() const {
  CHECK(applied_ <= delivered_, applied_, delivered_);
  CHECK(delivered_ <= commit_, delivered_, commit_);
  CHECK(delivered_ <= durable_, delivered_, durable_);
  CHECK(durable_ <= handed_, durable_, handed_);
  CHECK(handed_ <= log_.last_index(), handed_, log_.last_index());
  CHECK(commit_ <= log_.last_index(), commit_, log_.last_index());
  CHECK(log_.base_index() <= applied_, log_.base_index(), applied_);
  CHECK(term_ >= log_.last_term(), term_, log_.last_term());
}

void Node::tick() {
  ++now_;
  ++ticks_;
  if (role_ == Role::kLeader) {
    tick_leader();
    return;
  }
  ask_leader_again();
  if (ticks_ >= election_timeout_ticks_) {
    election_timed_out();
  } else {
    ask_again_for_pre_votes();
  }
}

void Node::tick_leader() {
  if (!hears_of_quorum()) {
    become_follower(term_, kNobody);
    return;
  }
  for (auto& [id, progress] : progress_) {
    const bool silent = now_ - progress.heard_tick >= kSnapshotSilenceElectionsMax * config_.election_ticks;
    if (!silent || id == config_.id) continue;
    progress.keep_above = 0;
    if (progress.state == Progress::State::kSnapshot) progress.begin_probe();
  }
  watch_transfer_and_disk();
  if (ticks_ < config_.heartbeat_ticks) return;
  ticks_ = 0;
  continue_transfer();
  send_heartbeats();
  for (const auto& [id, progress] : progress_) send_offer(id, progress);
}

Status Node::step(Message message) {
  const auto refuse = [&](const char* why) {
    return fail(Code::kInvalidArgument, std::string("raft: ") + name(message.type) + " from member " +
                                            std::to_string(message.from) + ": " + why);
  };
  if (message.to != config_.id) return refuse("meant for another member");
  if (message.from == config_.id) return refuse("no such sender");
  if (const char* fault = fault_of(message)) return refuse(fault);
  if (is_baseless(message)) return refuse("it is no member, and speaks of entries that were never acknowledged to it");
  if (!adopt_term(message)) return {};
  switch (message.type) {
    case MessageType::kVote:
      on_vote(message);
      return {};
    case MessageType::kVoteResponse:
      on_vote_response(message);
      return {};
    case MessageType::kAppend:
      return on_append(message);
    case MessageType::kAppendResponse:
      TRY(on_append_response(message));
      step_down_if_removed();
      return {};
    case MessageType::kHeartbeat:
      return on_heartbeat(message);
    case MessageType::kHeartbeatResponse:
      on_heartbeat_response(message);
      step_down_if_removed();
      return {};
    case MessageType::kPreVote:
      on_pre_vote(message);
      return {};
    case MessageType::kPreVoteResponse:
      on_pre_vote_response(message);
      return {};
    case MessageType::kTimeoutNow:
      on_timeout_now();
      return {};
    case MessageType::kReadIndex:
      on_read_index(message);
      return {};
    case MessageType::kReadIndexResponse:
      on_read_index_response(message);
      return {};
    case MessageType::kSnapshot:
      return on_snapshot(message);
  }
  return refuse("of an unknown type");
}

// A leader's heartbeat speaks of what this member acknowledged: when that is not here, it is lost, and this member
// stops (on_heartbeat). Not for somebody who is no member as far as is known here. (A leader of whom this member has
// not heard yet knows of no acknowledgement before it has sent entries.)
bool Node::is_baseless(const Message& message) const {
  return message.type == MessageType::kHeartbeat && message.commit > log_.last_index() &&
         !membership_.contains(message.from);
}

// False: the message is of no use here.
bool Node::adopt_term(const Message& message) {
  const bool pre_vote = message.type == MessageType::kPreVote;
  const bool from_leader = message.type == MessageType::kAppend || message.type == MessageType::kHeartbeat ||
                           message.type == MessageType::kSnapshot;
  if (message.term > term_) {
    const bool asks = pre_vote || message.type == MessageType::kVote;
    if (asks && !message.forced && hears_of_leader()) return false;
    const bool of_the_future = pre_vote || (message.type == MessageType::kPreVoteResponse && !message.reject);
    if (of_the_future) return true;
    if (message.term - term_ > kTermLeapMax) {  // no answer: what is true is repeated
      become_follower(term_ + kTermLeapMax, kNobody);
      return false;
    }
    become_follower(message.term, from_leader ? message.from : kNobody);
    return true;
  }
  if (message.term == term_) return true;
  // An old leader or candidate learns of the term from the answer; an old answer is of no use. (Without it, a member
  // that is ahead in terms and ignored by everybody would never get back in.)
  if (from_leader || message.type == MessageType::kVote) {
    Message reply = reply_to(message, from_leader ? MessageType::kAppendResponse : MessageType::kVoteResponse);
    reply.reject = true;
    reply.log_index = message.log_index;
    messages_after_sync_.push_back(std::move(reply));
  } else if (pre_vote) {
    Message reply = reply_to(message, MessageType::kPreVoteResponse);
    reply.reject = true;
    messages_now_.push_back(std::move(reply));
  }
  return false;
}

void Node::applied(uint64_t index) {
  if (index <= installed_) return;
  CHECK(index >= applied_, index, applied_);
  CHECK(index <= delivered_, index, delivered_);
  applied_ = index;
  trim_log();
  campaign_if_alone();
}

std::vector<MemberProgress> Node::member_progress() const {
  std::vector<MemberProgress> list;
  for (const auto& [id, progress] : progress_) {
    const bool active = id == config_.id || is_recently_active(progress);
    list.push_back({id, membership_.is_learner(id), progress.state, progress.match, active});
  }
  return list;
}

bool Node::committed_in_term() const { return role_ == Role::kLeader && log_.term_at(commit_) == term_; }

Message Node::message_to(uint64_t to, MessageType type) const {
  Message message;
  message.type = type;
  message.from = config_.id;
  message.to = to;
  message.term = term_;
  return message;
}

}  // namespace raft
