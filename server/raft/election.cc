// Terms, votes and roles (paper, 5.2 and 5.4.1; dissertation, 4.2.3 and 9.6).
#include <algorithm>

#include "base/check.h"
#include "raft/node.h"
#include "raft/quorum.h"

namespace raft {

void Node::reset_election_timer() {
  ticks_ = 0;
  election_timeout_ticks_ = config_.election_ticks + static_cast<uint32_t>(random_.next() % config_.election_ticks);
}

void Node::election_timed_out() {
  reset_election_timer();
  if (!may_campaign()) {
    if (role_ == Role::kFollower) set_leader(kNobody);  // it is gone all the same
  } else if (config_.pre_vote) {
    pre_campaign();
  } else {
    campaign(false);
  }
}

// With a membership change that is committed but not applied, this member would count the votes of the wrong voters.
// With a disk that takes nothing it could not become leader, and each further term of its own that it then asks votes
// for would only depose somebody who can.
bool Node::may_campaign() const {
  if (role_ == Role::kLeader || !membership_.is_voter(config_.id)) return false;
  if (term_ >= kTermMax) return false;  // nobody would listen to a later one
  if (durable_term_ != term_ || is_disk_stuck()) return false;
  for (uint64_t index = applied_ + 1; index <= commit_; ++index) {
    if (log_.at(index).type == EntryType::kMembership) return false;
  }
  return true;
}

// Within the minimum election timeout of hearing from a leader nobody helps to replace it.
bool Node::hears_of_leader() const {
  if (leader_ == kNobody) return false;
  return role_ == Role::kLeader || now_ - leader_heard_ < config_.election_ticks;
}

void Node::campaign_if_alone() {
  if (is_alone() && role_ == Role::kFollower && may_campaign()) campaign(false);
}

// Nothing is promised in this round: neither term nor vote changes, here or elsewhere.
void Node::pre_campaign() {
  role_ = Role::kPreCandidate;
  set_leader(kNobody);
  votes_ = {{config_.id, true}};
  ask_for_votes(MessageType::kPreVote, false);
  count_votes();
}

void Node::campaign(bool forced) {
  ++term_;
  vote_ = config_.id;
  role_ = Role::kCandidate;
  set_leader(kNobody);
  votes_.clear();
  reset_election_timer();
  ask_for_votes(MessageType::kVote, forced);  // its own vote counts when it is durable: persisted()
}

// Those that have not answered: most likely they still heard of the leader, a tick longer than this member did.
void Node::ask_again_for_pre_votes() {
  if (role_ == Role::kPreCandidate && ticks_ % config_.heartbeat_ticks == 0) {
    ask_for_votes(MessageType::kPreVote, false);
  }
}

void Node::ask_for_votes(MessageType type, bool forced) {
  const bool pre_vote = type == MessageType::kPreVote;
  for (const uint64_t voter : membership_.voters) {
    if (voter == config_.id || votes_.contains(voter)) continue;
    Message message = message_to(voter, type);
    if (pre_vote) ++message.term;
    message.log_index = log_.last_index();
    message.log_term = log_.last_term();
    message.forced = forced;
    (pre_vote ? messages_now_ : messages_after_sync_).push_back(std::move(message));
  }
}

// Learners and strangers vote as well: the candidate knows whose votes count, and this member may not have heard yet
// that it is a voter.
void Node::on_vote(const Message& message) {
  const bool free_to_vote = vote_ == message.from || (vote_ == kNobody && leader_ == kNobody);
  Message reply = reply_to(message, MessageType::kVoteResponse);
  reply.reject = !free_to_vote || !log_.is_outdated_by(message.log_index, message.log_term);
  if (!reply.reject) {
    // Others have voted for themselves.
    CHECK(role_ == Role::kFollower || role_ == Role::kPreCandidate, name(role_), term_);
    vote_ = message.from;
    reset_election_timer();
  }
  messages_after_sync_.push_back(std::move(reply));
}

void Node::on_pre_vote(const Message& message) {
  const bool could_vote = message.term > term_ || vote_ == message.from || (vote_ == kNobody && leader_ == kNobody);
  Message reply = reply_to(message, MessageType::kPreVoteResponse);
  reply.reject = !could_vote || !log_.is_outdated_by(message.log_index, message.log_term);
  if (!reply.reject) reply.term = message.term;  // so that the asking member does not take it for an old one
  messages_now_.push_back(std::move(reply));
}

void Node::on_vote_response(const Message& message) {
  if (role_ != Role::kCandidate) return;
  votes_.try_emplace(message.from, !message.reject);
  count_votes();
}

void Node::on_pre_vote_response(const Message& message) {
  if (role_ != Role::kPreCandidate) return;
  if (!message.reject && message.term != term_ + 1) return;
  votes_.try_emplace(message.from, !message.reject);
  count_votes();
}

void Node::count_votes() {
  size_t yes = 0;
  size_t no = 0;
  for (const auto& [voter, vote] : votes_) {
    if (membership_.is_voter(voter)) ++(vote ? yes : no);
  }
  switch (tally(membership_.voters.size(), yes, no)) {
    case Tally::kOpen:
      return;
    case Tally::kWon:
      if (role_ == Role::kPreCandidate) {
        if (may_campaign()) campaign(false);
      } else if (votes_.contains(config_.id)) {
        // The others' votes may be heard of before the own one; persisted() counts again.
        become_leader();
      }
      return;
    case Tally::kLost:
      become_follower(term_, kNobody);
      return;
  }
}

// Reads that another leader was asked for will not be answered.
void Node::set_leader(uint64_t leader) {
  if (leader != leader_) {
    drop_reads(forwarded_.drop_all());
    acknowledged_ = 0;
  }
  leader_ = leader;
  leader_heard_ = now_;
}

void Node::become_follower(uint64_t term, uint64_t leader) {
  CHECK(term >= term_, term, term_);
  if (term > term_) {
    term_ = term;
    vote_ = kNobody;
    set_leader(kNobody);
  }
  if (role_ == Role::kLeader) {
    drop_reads(reads_.drop_all());
    progress_.clear();
    snapshots_needed_.clear();
    uncommitted_bytes_ = 0;
    removed_at_ = 0;
    transfer_to_ = kNobody;
    last_successor_ = kNobody;
  }
  role_ = Role::kFollower;
  set_leader(leader);
  votes_.clear();
  reset_election_timer();
}

void Node::become_leader() {
  CHECK(role_ == Role::kCandidate, name(role_));
  CHECK(durable_term_ == term_, durable_term_, term_);
  CHECK(durable_vote_ == config_.id, durable_vote_);
  role_ = Role::kLeader;
  set_leader(config_.id);
  ticks_ = 0;
  votes_.clear();
  offered_.reset();
  for (const auto* ids : {&membership_.voters, &membership_.learners}) {
    for (const uint64_t id : *ids) progress_[id] = Progress{.next = log_.last_index() + 1, .heard_tick = now_};
  }
  progress_[config_.id].begin_replicate();
  progress_[config_.id].match = durable_;
  uncommitted_bytes_ = 0;
  for (uint64_t index = commit_ + 1; index <= log_.last_index(); ++index) {
    uncommitted_bytes_ += entry_bytes(log_.at(index));
  }
  last_membership_ = 0;
  for (uint64_t index = applied_ + 1; index <= log_.last_index(); ++index) {
    if (log_.at(index).type == EntryType::kMembership) last_membership_ = index;
  }
  // Entries of earlier terms are committed only along with one of this term (5.4.2).
  append_own(EntryType::kCommand, std::make_shared<const Bytes>());
}

}  // namespace raft
