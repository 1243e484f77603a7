// What the core hands out, and what it hears back about it.
#include <algorithm>

#include "base/check.h"
#include "raft/node.h"

namespace raft {

std::optional<Ready> Node::take_ready() {
  if (role_ == Role::kLeader) {
    start_and_answer_reads();
    send_appends();
  } else {
    ask_leader_for_reads();
  }
  check_invariants();
  Ready ready;
  take_persistent(ready);
  take_committed(ready);
  ready.messages_now.swap(messages_now_);
  ready.read_states.swap(read_states_);
  ready.reads_dropped.swap(reads_dropped_);
  ready.snapshots_needed.swap(snapshots_needed_);
  ready.snapshot_offered.swap(snapshot_offered_);
  if (const SoftState now{leader_, role_, term_}; !(now == told_)) ready.soft_state = told_ = now;
  check_invariants();
  if (ready.empty()) return std::nullopt;
  return ready;
}

void Node::take_persistent(Ready& ready) {
  ready.snapshot.swap(installed_unhanded_);
  ready.entries = log_.slice(handed_ + 1, log_.last_index(), config_.batch_bytes_max);
  const HardState state = hard_state();
  if (state.term != handed_state_.term || state.vote != handed_state_.vote ||
      ((!ready.entries.empty() || ready.snapshot) && state.commit != handed_state_.commit)) {
    ready.hard_state = state;
    // Entries that this commit index covers may come with the next hand-over only.
    ready.hard_state->commit = std::min(state.commit, handed_ + ready.entries.size());
    handed_state_ = *ready.hard_state;
  }
  handed_ += ready.entries.size();
  // What they promise may be in entries that did not fit.
  if (handed_ == log_.last_index()) ready.messages_after_sync.swap(messages_after_sync_);
  if (!ready.persists()) return;
  if (!ready.snapshot && !ready.hard_state && ready.entries.empty() && hand_overs_.empty()) {
    auto& now = messages_now_;
    now.insert(now.end(), std::make_move_iterator(ready.messages_after_sync.begin()),
               std::make_move_iterator(ready.messages_after_sync.end()));
    ready.messages_after_sync.clear();
    return;
  }
  ready.batch = static_cast<BatchNumber>(next_batch_++);
  if (ready.snapshot) installing_ = ready.batch;
  hand_overs_.push_back({ready.batch, handed_, handed_state_.term, handed_state_.vote, now_});
}

void Node::take_committed(Ready& ready) {
  const uint64_t to = std::min(commit_, durable_);
  if (delivered_ >= to || delivered_ - applied_ >= config_.unapplied_entries_max) return;
  ready.committed = log_.slice(delivered_ + 1, to, config_.apply_bytes_max);
  delivered_ += ready.committed.size();
}

void Node::persisted(BatchNumber batch) {
  CHECK(static_cast<uint64_t>(batch) < next_batch_, static_cast<uint64_t>(batch), next_batch_);
  while (!hand_overs_.empty() && hand_overs_.front().batch <= batch) {
    const HandOver& hand_over = hand_overs_.front();
    durable_ = std::max(durable_, hand_over.last_index);
    durable_term_ = hand_over.term;
    durable_vote_ = hand_over.vote;
    persisted_ = hand_over.batch;
    persisted_tick_ = now_;
    hand_overs_.pop_front();
  }
  if (role_ == Role::kCandidate && durable_term_ == term_ && durable_vote_ == config_.id) {
    votes_[config_.id] = true;
    count_votes();
  } else if (role_ == Role::kLeader) {
    if (const auto own = progress_.find(config_.id); own != progress_.end()) own->second.match = durable_;
    commit_what_a_majority_has();
  }
  check_invariants();
}

}  // namespace raft
