// Terms, votes and roles (paper, 5.2 and 5.4.1).
#include <algorithm>

#include "base/check.h"
#include "raft/node.h"
#include "raft/quorum.h"

namespace raft {

void Node::reset_election_timer() {
  ticks_ = 0;
  election_timeout_ticks_ = config_.election_ticks + static_cast<uint32_t>(random_.next() % config_.election_ticks);
}

// With a membership change that is committed but not applied, this member would count the votes of the wrong voters.
bool Node::may_campaign() const {
  if (role_ == Role::kLeader || !membership_.is_voter(config_.id)) return false;
  for (uint64_t index = applied_ + 1; index <= commit_; ++index) {
    if (log_.at(index).type == EntryType::kMembership) return false;
  }
  return true;
}

void Node::campaign_if_alone() {
  if (is_alone() && role_ == Role::kFollower && may_campaign()) campaign();
}

void Node::campaign() {
  ++term_;
  vote_ = config_.id;
  role_ = Role::kCandidate;
  leader_ = kNobody;
  votes_.clear();
  reset_election_timer();
  for (const uint64_t voter : membership_.voters) {
    if (voter == config_.id) continue;  // its own vote counts when it is durable: persisted()
    Message message;
    message.type = MessageType::kVote;
    message.from = config_.id;
    message.to = voter;
    message.term = term_;
    message.log_index = log_.last_index();
    message.log_term = log_.last_term();
    messages_after_sync_.push_back(std::move(message));
  }
}

void Node::on_vote(const Message& message) {
  const bool free_to_vote = vote_ == message.from || (vote_ == kNobody && leader_ == kNobody);
  Message reply = reply_to(message, MessageType::kVoteResponse);
  reply.reject = !free_to_vote || !log_.is_outdated_by(message.log_index, message.log_term);
  if (!reply.reject) {
    CHECK(role_ == Role::kFollower, name(role_), term_);  // others have voted for themselves
    vote_ = message.from;
    reset_election_timer();
  }
  messages_after_sync_.push_back(std::move(reply));
}

void Node::on_vote_response(const Message& message) {
  if (role_ != Role::kCandidate) return;
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
      // The others' votes may be heard of before the own one; persisted() counts again.
      if (votes_.contains(config_.id)) become_leader();
      return;
    case Tally::kLost:
      become_follower(term_, kNobody);
      return;
  }
}

void Node::become_follower(uint64_t term, uint64_t leader) {
  CHECK(term >= term_, term, term_);
  if (term > term_) {
    term_ = term;
    vote_ = kNobody;
  }
  if (role_ == Role::kLeader) {
    const auto dropped = reads_.drop_all();
    reads_dropped_.insert(reads_dropped_.end(), dropped.begin(), dropped.end());
    progress_.clear();
    uncommitted_bytes_ = 0;
  }
  role_ = Role::kFollower;
  leader_ = leader;
  votes_.clear();
  reset_election_timer();
}

void Node::become_leader() {
  CHECK(role_ == Role::kCandidate, name(role_));
  CHECK(durable_term_ == term_, durable_term_, term_);
  CHECK(durable_vote_ == config_.id, durable_vote_);
  role_ = Role::kLeader;
  leader_ = config_.id;
  ticks_ = 0;
  votes_.clear();
  for (const auto* ids : {&membership_.voters, &membership_.learners}) {
    for (const uint64_t id : *ids) progress_[id] = Progress{.next = log_.last_index() + 1};
  }
  progress_[config_.id].match = durable_;
  uncommitted_bytes_ = 0;
  for (uint64_t index = commit_ + 1; index <= log_.last_index(); ++index) {
    uncommitted_bytes_ += entry_bytes(log_.at(index));
  }
  // Entries of earlier terms are committed only along with one of this term (5.4.2).
  append_own(EntryType::kCommand, std::make_shared<const Bytes>());
}

}  // namespace raft
