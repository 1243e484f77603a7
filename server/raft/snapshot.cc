// Snapshots for a member that needs entries which are not in memory any more (paper, section 7). The core only agrees
// on which state it is; content and files are the driver's.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "raft/node.h"

namespace raft {

Status Node::offer_snapshot(uint64_t to, uint64_t index, uint64_t term) {
  const auto found = progress_.find(to);
  if (role_ != Role::kLeader || found == progress_.end() || found->second.state != Progress::State::kSnapshot) {
    return fail(Code::kFailedPrecondition, "raft: member " + std::to_string(to) + " needs no snapshot from here");
  }
  if (index < log_.base_index()) {
    return fail(Code::kOutOfRange, "raft: what follows a snapshot at index " + std::to_string(index) +
                                       " is not in memory, which begins after " + std::to_string(log_.base_index()));
  }
  // The store may be ahead of the applied index that this core was told of.
  if (index > commit_ || !log_.matches(index, term)) {
    return fail(Code::kInvalidArgument, "raft: nothing was committed here at index " + std::to_string(index) +
                                            " and term " + std::to_string(term));
  }
  Progress& progress = found->second;
  progress.snapshot_index = index;
  progress.snapshot_term = term;
  progress.keep_above = index;
  send_offer(to, progress);
  return {};
}

void Node::send_offer(uint64_t to, const Progress& progress) {
  if (progress.state != Progress::State::kSnapshot || progress.snapshot_index == 0) return;
  Message message = message_to(to, MessageType::kSnapshot);
  message.log_index = progress.snapshot_index;
  message.log_term = progress.snapshot_term;
  messages_now_.push_back(std::move(message));
}

void Node::snapshot_failed(uint64_t to) {
  const auto found = progress_.find(to);
  if (found == progress_.end() || found->second.state != Progress::State::kSnapshot) return;
  found->second.begin_probe();
}

// A member in kSnapshot acknowledged entries through its match.
void Node::snapshot_or_entries_arrived(uint64_t from, Progress& progress) {
  if (progress.match >= log_.base_index()) {
    progress.begin_replicate();
  } else if (progress.snapshot_index > 0 && progress.match >= progress.snapshot_index) {
    progress.begin_snapshot(log_.base_index());  // the log went on too far meanwhile
    snapshots_needed_.push_back(from);
  }
}

Status Node::on_snapshot(const Message& message) {
  TRY(check_sender(message));
  become_follower(term_, message.from);
  // With the entry in the log everything before it agrees, too: only the commit index was behind.
  if (log_.matches(message.log_index, message.log_term)) advance_commit(message.log_index);
  if (message.log_index <= commit_) {
    acknowledge(commit_);
    return {};
  }
  const SnapshotOffer offer{message.from, {message.log_index, message.log_term}};
  if (offered_ != offer) snapshot_offered_ = offered_ = offer;
  return {};
}

void Node::fetch_failed() { offered_.reset(); }

// A snapshot is of committed state, so any leader's will do, also one that is gone by now. With another entry at its
// index, this log's entries from there on were never committed and never will be.
Status Node::install(uint64_t index, uint64_t term, Membership membership) {
  check_membership(membership);
  const std::string which = "raft: the snapshot at index " + std::to_string(index);
  if (term == 0 || term > term_) {
    return fail(Code::kInvalidArgument,
                which + " is of term " + std::to_string(term) + ", this member's is " + std::to_string(term_));
  }
  offered_.reset();
  if (role_ != Role::kLeader && index > commit_ && log_.matches(index, term)) {
    advance_commit(index);
    acknowledge(commit_);
  }
  if (role_ == Role::kLeader || index <= commit_) {
    return fail(Code::kFailedPrecondition, which + " is not needed any more: its entries are here");
  }
  log_ = Log(index, term, {});
  commit_ = handed_ = durable_ = delivered_ = applied_ = installed_ = index;
  for (HandOver& hand_over : hand_overs_) hand_over.last_index = std::min(hand_over.last_index, index);
  installed_unhanded_ = SnapshotPoint{index, term};
  membership_ = std::move(membership);
  acknowledge(index);
  check_invariants();
  return {};
}

}  // namespace raft
