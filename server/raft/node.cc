#include "raft/node.h"

#include <algorithm>
#include <string>

#include "base/check.h"

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
  }
  return "unknown";
}

const char* name(Role role) {
  switch (role) {
    case Role::kFollower:
      return "follower";
    case Role::kCandidate:
      return "candidate";
    case Role::kLeader:
      return "leader";
  }
  return "unknown";
}

namespace {

const char* fault_of_entries(const Message& message) {
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

}  // namespace

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
  CHECK(std::is_sorted(membership_.voters.begin(), membership_.voters.end()));
  CHECK(std::is_sorted(membership_.learners.begin(), membership_.learners.end()));
  told_.term = term_;
  log_.keep_within(config_.kept, applied_);
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
  ++ticks_;
  if (role_ == Role::kLeader) {
    if (ticks_ < config_.heartbeat_ticks) return;
    ticks_ = 0;
    send_heartbeats();
    return;
  }
  if (ticks_ >= election_timeout_ticks_) {
    reset_election_timer();
    if (may_campaign()) campaign();
  }
}

Result<Proposed> Node::propose(std::span<const Proposal> proposals) {
  CHECK(!proposals.empty());
  if (role_ != Role::kLeader) {
    if (leader_ == kNobody) return fail(Code::kUnavailable, "etcdserver: no leader");
    return fail(Code::kFailedPrecondition, "raft: this member is not the leader");
  }
  uint64_t bytes = 0;
  for (const Proposal& proposal : proposals) bytes += proposal.data->size() + kEntryOverheadBytes;
  const bool too_many_bytes = uncommitted_bytes_ > 0 && uncommitted_bytes_ + bytes > config_.uncommitted_bytes_max;
  if (too_many_bytes || commit_ - applied_ > config_.unapplied_entries_max) {
    return fail(Code::kResourceExhausted, "etcdserver: too many requests");
  }
  const Proposed proposed{
      .first_index = log_.last_index() + 1, .last_index = log_.last_index() + proposals.size(), .term = term_};
  for (const Proposal& proposal : proposals) append_own(proposal.type, proposal.data);
  return proposed;
}

Status Node::read_index(uint64_t context) {
  if (role_ != Role::kLeader) {
    if (leader_ == kNobody) return fail(Code::kUnavailable, "etcdserver: no leader");
    return fail(Code::kFailedPrecondition, "raft: this member is not the leader");
  }
  if (reads_.size() >= config_.waiting_reads_max)
    return fail(Code::kResourceExhausted, "etcdserver: too many requests");
  reads_.add(context);
  return {};
}

Status Node::step(Message message) {
  const auto refuse = [&](const char* why) {
    return fail(Code::kInvalidArgument, std::string("raft: ") + name(message.type) + " from member " +
                                            std::to_string(message.from) + ": " + why);
  };
  if (message.to != config_.id) return refuse("meant for another member");
  if (message.from == kNobody || message.from == config_.id) return refuse("no such sender");
  if (message.term == 0) return refuse("without a term");
  if (message.type == MessageType::kAppend) {
    if (const char* fault = fault_of_entries(message)) return refuse(fault);
  }

  const bool from_leader = message.type == MessageType::kAppend || message.type == MessageType::kHeartbeat;
  if (message.term > term_) {
    become_follower(message.term, from_leader ? message.from : kNobody);
  } else if (message.term < term_) {
    // An old leader or candidate learns of the term from the answer; an old answer is of no use.
    if (from_leader || message.type == MessageType::kVote) {
      Message reply = reply_to(message, from_leader ? MessageType::kAppendResponse : MessageType::kVoteResponse);
      reply.reject = true;
      reply.log_index = message.log_index;
      messages_after_sync_.push_back(std::move(reply));
    }
    return {};
  }
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
      return on_append_response(message);
    case MessageType::kHeartbeat:
      return on_heartbeat(message);
    case MessageType::kHeartbeatResponse:
      on_heartbeat_response(message);
      return {};
  }
  return refuse("of an unknown type");
}

void Node::applied(uint64_t index) {
  CHECK(index >= applied_, index, applied_);
  CHECK(index <= delivered_, index, delivered_);
  applied_ = index;
  log_.keep_within(config_.kept, applied_);
  campaign_if_alone();
}

void Node::set_membership(Membership membership) {
  CHECK(std::is_sorted(membership.voters.begin(), membership.voters.end()));
  CHECK(std::is_sorted(membership.learners.begin(), membership.learners.end()));
  membership_ = std::move(membership);
  if (role_ == Role::kLeader) {
    const auto is_member = [&](uint64_t id) { return membership_.is_voter(id) || membership_.is_learner(id); };
    std::erase_if(progress_, [&](const auto& item) { return !is_member(item.first); });
    for (const auto* ids : {&membership_.voters, &membership_.learners}) {
      for (const uint64_t id : *ids) progress_.try_emplace(id, Progress{.next = log_.last_index() + 1});
    }
    if (const auto own = progress_.find(config_.id); own != progress_.end()) own->second.match = durable_;
    commit_what_a_majority_has();
  }
  campaign_if_alone();
}

bool Node::committed_in_term() const { return role_ == Role::kLeader && log_.term_at(commit_) == term_; }

void Node::append_own(EntryType type, std::shared_ptr<const Bytes> data) {
  LogEntry entry{.index = log_.last_index() + 1, .term = term_, .type = type, .data = std::move(data)};
  uncommitted_bytes_ += entry_bytes(entry);
  log_.append(std::move(entry));
}

void Node::advance_commit(uint64_t index) {
  CHECK(index <= log_.last_index(), index, log_.last_index());
  if (index <= commit_) return;
  if (role_ == Role::kLeader) {
    for (uint64_t i = commit_ + 1; i <= index; ++i) uncommitted_bytes_ -= entry_bytes(log_.at(i));
  }
  commit_ = index;
}

Message Node::reply_to(const Message& message, MessageType type) const {
  Message reply;
  reply.type = type;
  reply.from = config_.id;
  reply.to = message.from;
  reply.term = term_;
  return reply;
}

}  // namespace raft
