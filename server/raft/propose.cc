// What enters the log of a leader, who takes part, and how much of the log stays in memory.
#include <algorithm>

#include "base/check.h"
#include "raft/node.h"
#include "raft/quorum.h"

namespace raft {

Result<Proposed> Node::propose(std::span<const Proposal> proposals) {
  CHECK(!proposals.empty());
  TRY(check_proposals(proposals));
  const Proposed proposed{
      .first_index = log_.last_index() + 1, .last_index = log_.last_index() + proposals.size(), .term = term_};
  for (const Proposal& proposal : proposals) append_own(proposal.type, proposal.data);
  return proposed;
}

Status Node::check_proposals(std::span<const Proposal> proposals) const {
  if (role_ != Role::kLeader) {
    if (leader_ == kNobody) return fail(Code::kUnavailable, "etcdserver: no leader");
    return fail(Code::kFailedPrecondition, "raft: this member is not the leader");
  }
  // What is appended now would only delay the successor.
  if (transfer_to_ != kNobody || removed_at_ > 0) return fail(Code::kUnavailable, "etcdserver: no leader");
  uint64_t bytes = 0;
  uint64_t memberships = 0;
  for (const Proposal& proposal : proposals) {
    bytes += proposal.data->size() + kEntryOverheadBytes;
    if (proposal.type == EntryType::kMembership) ++memberships;
  }
  if (memberships > 0) {
    // Without the first rule two leaders may each commit a change, with majorities that do not overlap (dissertation,
    // 4.1, and Ongaro's note to raft-dev of 2015); without the second, two changes may be in force at once.
    if (!committed_in_term()) {
      return fail(Code::kFailedPrecondition,
                  "raft: membership changes have to wait until this leader has committed an entry of its term");
    }
    if (memberships > 1 || is_membership_pending()) {
      return fail(Code::kFailedPrecondition, "raft: another membership change is not applied yet");
    }
  }
  const bool too_many_bytes = uncommitted_bytes_ > 0 && uncommitted_bytes_ + bytes > config_.uncommitted_bytes_max;
  if (too_many_bytes || commit_ - applied_ > config_.unapplied_entries_max) {
    return fail(Code::kResourceExhausted, "etcdserver: too many requests");
  }
  return {};
}

bool Node::is_membership_pending() const { return role_ == Role::kLeader && last_membership_ > applied_; }

void Node::append_own(EntryType type, std::shared_ptr<const Bytes> data) {
  LogEntry entry{.index = log_.last_index() + 1, .term = term_, .type = type, .data = std::move(data)};
  uncommitted_bytes_ += entry_bytes(entry);
  if (type == EntryType::kMembership) last_membership_ = entry.index;
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

void Node::set_membership(uint64_t index, Membership membership) {
  if (index <= installed_) return;
  CHECK(index > applied_, index, applied_);
  CHECK(index <= delivered_, index, delivered_);
  check_membership(membership);
  if (role_ != Role::kLeader) {
    membership_ = std::move(membership);
    campaign_if_alone();
    return;
  }
  send_appends();  // the last that a removed member hears: its removal is committed
  membership_ = std::move(membership);
  std::erase_if(progress_, [&](const auto& item) { return !membership_.contains(item.first); });
  for (const auto* ids : {&membership_.voters, &membership_.learners}) {
    for (const uint64_t id : *ids) {
      progress_.try_emplace(id, Progress{.next = log_.last_index() + 1, .heard_tick = now_});
    }
  }
  if (const auto own = progress_.find(config_.id); own != progress_.end()) own->second.match = durable_;
  if (transfer_to_ != kNobody && !membership_.is_voter(transfer_to_)) transfer_to_ = kNobody;
  commit_what_a_majority_has();
  removed_at_ = membership_.is_voter(config_.id) ? 0 : index;
}

// A leader that is no voter any more leads on (dissertation, 4.2.2) until a majority of the others knows that it is
// not. Before that they would still need its vote: of two voters the one that is left could never lead.
void Node::step_down_if_removed() {
  if (role_ != Role::kLeader || removed_at_ == 0) return;
  std::vector<uint64_t> known;
  for (const uint64_t voter : membership_.voters) known.push_back(progress_.at(voter).commit_known);
  if (majority_value(std::move(known)) < removed_at_) return;
  if (const uint64_t next = best_successor(log_.last_index()); next != kNobody) {
    messages_now_.push_back(message_to(next, MessageType::kTimeoutNow));
  }
  become_follower(term_, kNobody);
}

void Node::release_if_caught_up(Progress& progress) const {
  const bool has_caught_up = progress.match + config_.kept.entries_max / 2 >= log_.last_index();
  if (progress.state == Progress::State::kReplicate && has_caught_up) progress.keep_above = 0;
}

void Node::trim_log() {
  uint64_t through = applied_;
  for (auto& [id, progress] : progress_) {
    if (progress.keep_above == 0) continue;
    progress.keep_above = std::max(progress.keep_above, progress.match);
    through = std::min(through, progress.keep_above);
  }
  log_.keep_within(config_.kept_for_catching_up, applied_);
  log_.keep_within(config_.kept, through);
}

}  // namespace raft
