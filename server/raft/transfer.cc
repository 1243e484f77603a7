// Leadership transfer (dissertation, 3.10), and what a leader does about its own disk when that stands still.
#include "raft/node.h"

namespace raft {

Status Node::transfer_leadership(uint64_t to) {
  if (role_ != Role::kLeader) return fail(Code::kFailedPrecondition, "etcdserver: not leader");
  if (to == config_.id) return {};
  if (to == kNobody) {
    to = best_successor(0);
  } else if (!membership_.is_voter(to)) {
    to = kNobody;
  }
  if (to == kNobody) return fail(Code::kFailedPrecondition, "etcdserver: bad leader transferee");
  if (to != transfer_to_) begin_transfer(to);
  return {};
}

void Node::begin_transfer(uint64_t to) {
  transfer_to_ = to;
  transfer_began_ = now_;
  progress_.at(to).probe_sent = false;  // what it lacks goes out now
  continue_transfer();
}

// Called whenever the target may have everything, and again with the heartbeats: the message may be lost.
void Node::continue_transfer() {
  if (transfer_to_ == kNobody || progress_.at(transfer_to_).match < log_.last_index()) return;
  messages_now_.push_back(message_to(transfer_to_, MessageType::kTimeoutNow));
}

// The voter that is there and has most, but at least `match_min`; another one than last time if there is a choice.
uint64_t Node::best_successor(uint64_t match_min) const {
  uint64_t best = kNobody;
  const auto rank = [&](uint64_t id) { return std::pair(id != last_successor_, progress_.at(id).match); };
  for (const uint64_t voter : membership_.voters) {
    if (voter == config_.id) continue;
    const Progress& progress = progress_.at(voter);
    if (!is_recently_active(progress) || progress.match < match_min) continue;
    if (progress.state == Progress::State::kSnapshot) continue;
    if (best == kNobody || rank(voter) > rank(best)) best = voter;
  }
  return best;
}

// What counts is that the row moves: several hand-overs in it may each wait for the syncs of those before them.
bool Node::is_disk_stuck() const {
  if (hand_overs_.empty()) return false;
  return now_ - std::max(hand_overs_.front().tick, persisted_tick_) > config_.election_ticks;
}

// A leader goes on committing what the others have on disk, but it cannot apply or answer without its own.
void Node::watch_transfer_and_disk() {
  if (transfer_to_ != kNobody && now_ - transfer_began_ >= config_.election_ticks) transfer_to_ = kNobody;
  if (transfer_to_ != kNobody || !is_disk_stuck()) return;
  const uint64_t to = best_successor(commit_);
  if (to == kNobody) return;
  last_successor_ = to;
  begin_transfer(to);
}

void Node::on_timeout_now() {
  if (may_campaign()) campaign(true);
}

}  // namespace raft
