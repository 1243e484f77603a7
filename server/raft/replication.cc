// Appends and the commit index (paper, 5.3 and 5.4.2).
#include <algorithm>
#include <string>

#include "base/check.h"
#include "raft/node.h"
#include "raft/quorum.h"

namespace raft {

namespace {

tl::unexpected<Error> refused(const Message& message, const std::string& why) {
  return fail(Code::kInvalidArgument,
              std::string("raft: ") + name(message.type) + " from member " + std::to_string(message.from) + ": " + why);
}

}  // namespace

// A message that only the leader of the current term sends.
Status Node::check_sender(const Message& message) const {
  if (leader_ != kNobody && leader_ != message.from) {
    return refused(message, "member " + std::to_string(leader_) + " leads term " + std::to_string(term_));
  }
  return {};
}

Status Node::on_append(Message& message) {
  TRY(check_sender(message));
  become_follower(term_, message.from);

  if (message.log_index < commit_) {  // an old one: what is committed matches anyway
    TRY(check_one_history(message));
    acknowledge(commit_);
    return {};
  }
  // As if it were lost: an answer would make the leader send it again at once, not with a later heartbeat.
  if (has_too_much_to_apply() && message.log_index + message.entries.size() > log_.last_index()) return {};
  if (!log_.matches(message.log_index, message.log_term)) {
    Message reply = reply_to(message, MessageType::kAppendResponse);
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
        return refused(message, "entry " + std::to_string(entry.index) + " differs from the committed one");
      }
      cut_log_from(entry.index);
    }
    log_.append(std::move(entry));
  }
  advance_commit(std::min(message.commit, last_new));
  acknowledge(last_new);
  return {};
}

// A leader has everything that was committed before its term (paper, 5.4.3): where it has something else, some majority
// has forgotten what another one decided. What this member would acknowledge then is not what the leader means.
Status Node::check_one_history(const Message& message) const {
  if (!membership_.contains(message.from)) return {};
  const auto check = [&](uint64_t index, uint64_t term) -> Status {
    const auto own = log_.term_at(index);
    if (index > commit_ || !own || *own == term) return {};
    return fail(Code::kDataLoss,
                "raft: entry " + std::to_string(index) + " is committed here with term " + std::to_string(*own) +
                    ", but the leader, member " + std::to_string(message.from) + ", has one of term " +
                    std::to_string(term) +
                    " there: the cluster has two histories. This happens when a member is started anew with an empty "
                    "or an older data folder instead of being removed and added again. Keep this member's data folder: "
                    "what was acknowledged may be in it alone");
  };
  TRY(check(message.log_index, message.log_term));
  for (const LogEntry& entry : message.entries) TRY(check(entry.index, entry.term));
  return {};
}

// The leader may be faster than what is applied here.
bool Node::has_too_much_to_apply() const { return log_.bytes() >= config_.unapplied_bytes_max && commit_ > applied_; }

void Node::cut_log_from(uint64_t index) {
  log_.cut_from(index);
  handed_ = std::min(handed_, index - 1);
  durable_ = std::min(durable_, index - 1);
  for (HandOver& hand_over : hand_overs_) hand_over.last_index = std::min(hand_over.last_index, index - 1);
}

// To the leader, once everything up to here is durable.
void Node::acknowledge(uint64_t index) {
  if (leader_ == kNobody || leader_ == config_.id) return;
  Message message = message_to(leader_, MessageType::kAppendResponse);
  message.log_index = index;
  message.commit = commit_;
  acknowledged_ = std::max(acknowledged_, index);
  messages_after_sync_.push_back(std::move(message));
}

Status Node::on_append_response(const Message& message) {
  Progress* const progress = heard_from(message);
  if (progress == nullptr) return {};
  if (message.reject) {
    on_append_rejected(message, *progress);
    return {};
  }
  if (message.log_index > log_.last_index()) return refused(message, "has more than this leader's log");
  arrived(message.from, *progress, message.log_index);
  return {};
}

// The member's log is durable and agrees through `index`.
void Node::arrived(uint64_t from, Progress& progress, uint64_t index) {
  progress.advance(index);
  if (progress.state == Progress::State::kSnapshot) {
    snapshot_or_entries_arrived(from, progress);
  } else if (progress.state == Progress::State::kProbe && index >= progress.match) {
    progress.begin_replicate();
  }
  release_if_caught_up(progress);
  commit_what_a_majority_has();
  if (from == transfer_to_) continue_transfer();
}

void Node::on_append_rejected(const Message& message, Progress& progress) {
  if (progress.state == Progress::State::kSnapshot) return;
  if (progress.state == Progress::State::kReplicate) {
    if (message.log_index > progress.match) progress.begin_probe();
    return;
  }
  if (message.log_index + 1 != progress.next) return;  // the answer to an earlier probe
  const uint64_t agree = log_.last_not_above(message.hint_index, message.hint_term);
  progress.next = std::max(std::min(message.log_index, agree + 1), progress.match + 1);
  progress.probe_sent = false;
}

void Node::messages_lost(uint64_t to) {
  const auto found = progress_.find(to);
  if (found == progress_.end()) return;
  found->second.heard = false;  // it may be gone: not active until it answers again
  if (found->second.state == Progress::State::kReplicate) found->second.begin_probe();
}

void Node::send_appends() {
  for (auto& [id, progress] : progress_) {
    if (id != config_.id) send_appends(id, progress);
  }
}

// A slow member costs nothing here: entries go out of memory without regard to it, and then it needs a snapshot. That
// is said when it can be reached, since making one for a member that is down would be for nothing.
void Node::send_appends(uint64_t to, Progress& progress) {
  while (progress.state != Progress::State::kSnapshot) {
    if (progress.next <= log_.base_index()) {
      if (!is_recently_active(progress)) return;
      progress.begin_snapshot(log_.base_index());
      snapshots_needed_.push_back(to);
      return;
    }
    const bool probing = progress.state == Progress::State::kProbe;
    const bool is_full = progress.inflight.size() >= config_.inflight_messages_max ||
                         progress.inflight_bytes >= config_.inflight_bytes_max;
    if (probing ? progress.probe_sent : is_full) return;
    const bool has_entries = progress.next <= log_.last_index();
    if (!has_entries && progress.commit_sent >= commit_ && !probing) return;
    Message message = message_to(to, MessageType::kAppend);
    message.log_index = progress.next - 1;
    message.log_term = *log_.term_at(message.log_index);
    message.commit = commit_;
    message.entries = log_.slice(progress.next, log_.last_index(), config_.message_bytes_max);
    progress.commit_sent = commit_;
    if (probing) {
      progress.probe_sent = true;
    } else if (has_entries) {
      uint64_t bytes = 0;
      for (const LogEntry& entry : message.entries) bytes += entry_bytes(entry);
      progress.sent(message.entries.back().index, bytes);
    }
    messages_now_.push_back(std::move(message));
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
