// Heartbeats, and who was heard of lately (dissertation, 6.2: a leader without a quorum steps down).
#include <algorithm>
#include <string>
#include <utility>

#include "raft/node.h"

namespace raft {

Status Node::on_heartbeat(const Message& message) {
  TRY(check_sender(message));
  become_follower(term_, message.from);
  if (message.commit > log_.last_index()) {
    // The leader says so only because this member acknowledged that index.
    return fail(Code::kDataLoss, "raft: heartbeat from member " + std::to_string(message.from) + ": entry " +
                                     std::to_string(message.commit) +
                                     " was acknowledged by this member, but its log ends at " +
                                     std::to_string(log_.last_index()));
  }
  advance_commit(message.commit);
  Message reply = reply_to(message, MessageType::kHeartbeatResponse);
  reply.read_round = message.read_round;
  reply.log_index = log_.last_index();
  reply.hint_index = acknowledged_durably();
  reply.commit = commit_;
  auto& queue = durable_term_ == term_ ? messages_now_ : messages_after_sync_;
  queue.push_back(std::move(reply));
  return {};
}

// What append responses have said or would say by now: some of them may be lost. A snapshot is durable only when its
// hand-over is, although the log begins with it before.
uint64_t Node::acknowledged_durably() const {
  if (installed_unhanded_ || installing_ > persisted_) return 0;
  return std::min(acknowledged_, durable_);
}

void Node::on_heartbeat_response(const Message& message) {
  Progress* const progress = heard_from(message);
  if (progress == nullptr) return;
  progress->read_round = std::max(progress->read_round, message.read_round);
  if (message.hint_index > progress->match && message.hint_index <= log_.last_index()) {
    arrived(message.from, *progress, message.hint_index);
  }
  // Rounds of heartbeats for reads may follow each other within microseconds: they say nothing about what is lost.
  if (std::exchange(progress->heartbeat_tick, now_) == now_) return;
  progress->probe_sent = false;
  if (progress->state != Progress::State::kReplicate || progress->inflight.empty()) return;
  // An append or its answer was lost: start over behind what is known. (A full window would never move again.) What has
  // arrived may only be waiting for a slow disk there, and is not worth sending twice soon.
  const bool has_arrived = message.log_index >= progress->inflight.front().last_index;
  const uint32_t heartbeats_max = has_arrived ? kHeartbeatsWithoutAnswerMax : kHeartbeatsWithoutArrivalMax;
  if (++progress->heartbeats_without_progress >= heartbeats_max) progress->begin_probe();
}

// Small, and never behind entries: they go out whatever the limits of messages in flight say.
void Node::send_heartbeats() {
  for (const auto& [id, progress] : progress_) {
    if (id == config_.id) continue;
    Message message = message_to(id, MessageType::kHeartbeat);
    message.commit = std::min(progress.match, commit_);
    message.read_round = reads_.round();
    messages_now_.push_back(std::move(message));
  }
}

// An answer to this leader; nullptr if it is not one any more, or the member is none.
Progress* Node::heard_from(const Message& message) {
  if (role_ != Role::kLeader) return nullptr;
  const auto found = progress_.find(message.from);
  if (found == progress_.end()) return nullptr;
  Progress& progress = found->second;
  progress.heard = true;
  progress.heard_tick = now_;
  progress.commit_known = std::max(progress.commit_known, message.commit);
  return &progress;
}

bool Node::is_recently_active(const Progress& progress) const {
  return progress.heard && now_ - progress.heard_tick < config_.election_ticks;
}

// A new leader or member has an election timeout to be heard of.
bool Node::hears_of_quorum() const {
  size_t active = 0;
  for (const uint64_t voter : membership_.voters) {
    if (voter == config_.id || now_ - progress_.at(voter).heard_tick < config_.election_ticks) ++active;
  }
  return active > membership_.voters.size() / 2;
}

}  // namespace raft
