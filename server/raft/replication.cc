// Appends, heartbeats and the commit index (paper, 5.3 and 5.4.2).
#include <algorithm>
#include <string>

#include "base/check.h"
#include "raft/node.h"
#include "raft/quorum.h"

namespace raft {

namespace {

tl::unexpected<Error> refused(const Message& message, Code code, const std::string& why) {
  return fail(code,
              std::string("raft: ") + name(message.type) + " from member " + std::to_string(message.from) + ": " + why);
}

}  // namespace

// A message that only the leader of the current term sends.
Status Node::check_sender(const Message& message) const {
  if (leader_ != kNobody && leader_ != message.from) {
    return refused(message, Code::kInvalidArgument,
                   "member " + std::to_string(leader_) + " leads term " + std::to_string(term_));
  }
  return {};
}

Status Node::on_append(Message& message) {
  TRY(check_sender(message));
  become_follower(term_, message.from);

  Message reply = reply_to(message, MessageType::kAppendResponse);
  if (message.log_index < commit_) {  // an old one: what is committed matches anyway
    reply.log_index = commit_;
    messages_after_sync_.push_back(std::move(reply));
    return {};
  }
  if (!log_.matches(message.log_index, message.log_term)) {
    reply.reject = true;
    reply.log_index = message.log_index;
    reply.hint_index = log_.last_not_above(message.log_index, message.log_term);
    reply.hint_term = log_.term_at(reply.hint_index).value_or(0);
    messages_after_sync_.push_back(std::move(reply));
    return {};
  }
  const uint64_t last_new = message.log_index + message.entries.size();
  for (LogEntry& entry : message.entries) {
    if (log_.matches(entry.index, entry.term)) continue;
    if (entry.index <= log_.last_index()) {
      if (entry.index <= commit_) {
        return refused(message, Code::kInvalidArgument,
                       "entry " + std::to_string(entry.index) + " differs from the committed one");
      }
      log_.cut_from(entry.index);
      handed_ = std::min(handed_, entry.index - 1);
      durable_ = std::min(durable_, entry.index - 1);
      for (HandOver& hand_over : hand_overs_) hand_over.last_index = std::min(hand_over.last_index, entry.index - 1);
    }
    log_.append(std::move(entry));
  }
  advance_commit(std::min(message.commit, last_new));
  reply.log_index = last_new;
  messages_after_sync_.push_back(std::move(reply));
  return {};
}

Status Node::on_append_response(const Message& message) {
  if (role_ != Role::kLeader) return {};
  const auto found = progress_.find(message.from);
  if (found == progress_.end()) return {};  // not a member any more
  Progress& progress = found->second;
  if (message.reject) {
    if (progress.state == Progress::State::kReplicate) {
      if (message.log_index > progress.match) progress.begin_probe();
      return {};
    }
    if (message.log_index + 1 != progress.next) return {};  // the answer to an earlier probe
    const uint64_t agree = log_.last_not_above(message.hint_index, message.hint_term);
    progress.next = std::max(std::min(message.log_index, agree + 1), progress.match + 1);
    progress.probe_sent = false;
    return {};
  }
  if (message.log_index > log_.last_index()) {
    return refused(message, Code::kInvalidArgument, "has more than this leader's log");
  }
  progress.advance(message.log_index);
  if (progress.state == Progress::State::kProbe && message.log_index >= progress.match) progress.begin_replicate();
  commit_what_a_majority_has();
  return {};
}

Status Node::on_heartbeat(const Message& message) {
  TRY(check_sender(message));
  become_follower(term_, message.from);
  if (message.commit > log_.last_index()) {
    // The leader says so only because this member acknowledged that index.
    return refused(message, Code::kDataLoss,
                   "entry " + std::to_string(message.commit) +
                       " was acknowledged by this member, but its log ends at " + std::to_string(log_.last_index()));
  }
  advance_commit(message.commit);
  Message reply = reply_to(message, MessageType::kHeartbeatResponse);
  reply.read_round = message.read_round;
  auto& queue = durable_term_ == term_ ? messages_now_ : messages_after_sync_;
  queue.push_back(std::move(reply));
  return {};
}

void Node::on_heartbeat_response(const Message& message) {
  if (role_ != Role::kLeader) return;
  const auto found = progress_.find(message.from);
  if (found == progress_.end()) return;
  Progress& progress = found->second;
  progress.read_round = std::max(progress.read_round, message.read_round);
  progress.probe_sent = false;
  // An append or its answer was lost: start over behind what is known. (A full window would never move again.)
  if (progress.state == Progress::State::kReplicate && !progress.inflight.empty() &&
      progress.match < log_.last_index()) {
    progress.heartbeats_without_progress++;
    if (progress.heartbeats_without_progress >= kHeartbeatsWithoutProgressMax) progress.begin_probe();
  }
}

void Node::send_heartbeats() {
  for (const auto& [id, progress] : progress_) {
    if (id == config_.id) continue;
    Message message;
    message.type = MessageType::kHeartbeat;
    message.from = config_.id;
    message.to = id;
    message.term = term_;
    message.commit = std::min(progress.match, commit_);
    message.read_round = reads_.round();
    messages_now_.push_back(std::move(message));
  }
}

// A member that needs entries from before the log's base gets none until it can be sent a snapshot.
void Node::send_appends() {
  for (auto& [id, progress] : progress_) {
    if (id == config_.id) continue;
    while (progress.next > log_.base_index()) {
      const bool probing = progress.state == Progress::State::kProbe;
      if (probing ? progress.probe_sent : progress.inflight.size() >= config_.inflight_messages_max) break;
      const bool has_entries = progress.next <= log_.last_index();
      if (!has_entries && progress.commit_sent >= commit_ && !probing) break;
      Message message;
      message.type = MessageType::kAppend;
      message.from = config_.id;
      message.to = id;
      message.term = term_;
      message.log_index = progress.next - 1;
      message.log_term = *log_.term_at(message.log_index);
      message.commit = commit_;
      message.entries = log_.slice(progress.next, log_.last_index(), config_.message_bytes_max);
      progress.commit_sent = commit_;
      if (probing) {
        progress.probe_sent = true;
      } else if (has_entries) {
        progress.next += message.entries.size();
        progress.inflight.push_back(progress.next - 1);
      }
      messages_now_.push_back(std::move(message));
    }
  }
}

// The leader counts itself like any other: with what is durable.
void Node::commit_what_a_majority_has() {
  std::vector<uint64_t> matches;
  for (const uint64_t voter : membership_.voters) matches.push_back(progress_.at(voter).match);
  const uint64_t index = majority_value(std::move(matches));
  if (index > commit_ && log_.term_at(index) == term_) advance_commit(index);
}

}  // namespace raft
