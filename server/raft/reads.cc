// Linearizable reads: the leader confirms that it still leads after they arrived (dissertation, 6.4); other members ask
// it for the index.
#include "raft/node.h"
#include "raft/quorum.h"

namespace raft {

Status Node::read_index(uint64_t context) {
  if (leader_ == kNobody) return fail(Code::kUnavailable, "etcdserver: no leader");
  const bool leads = role_ == Role::kLeader;
  if ((leads ? reads_.size() : forwarded_.size()) >= config_.waiting_reads_max) {
    return fail(Code::kResourceExhausted, "etcdserver: too many requests");
  }
  leads ? reads_.add(context) : forwarded_.add(context);
  return {};
}

void Node::drop_reads(std::vector<uint64_t> contexts) {
  reads_dropped_.insert(reads_dropped_.end(), contexts.begin(), contexts.end());
}

// A round begins only after an entry of this term is committed: before that the commit index may lack what an earlier
// leader has answered.
void Node::start_and_answer_reads() {
  if (reads_.has_arrived() && committed_in_term()) {
    reads_.begin_round(commit_);
    if (!is_alone()) send_heartbeats();
  }
  if (!reads_.is_waiting()) return;
  std::vector<uint64_t> rounds;
  for (const uint64_t voter : membership_.voters) {
    rounds.push_back(voter == config_.id ? reads_.round() : progress_.at(voter).read_round);
  }
  reads_.confirmed(
      majority_value(std::move(rounds)),
      [&](uint64_t context, uint64_t index) {
        read_states_.push_back({context, index});
      },
      [&](uint64_t member, uint64_t batch, uint64_t index) {
        Message message = message_to(member, MessageType::kReadIndexResponse);
        message.read_round = batch;
        message.log_index = index;
        messages_now_.push_back(std::move(message));
      });
}

void Node::on_read_index(const Message& message) {
  if (role_ == Role::kLeader && progress_.contains(message.from)) reads_.add_batch(message.from, message.read_round);
}

void Node::on_read_index_response(const Message& message) {
  if (message.from != leader_) return;
  forwarded_.answered(message.read_round, [&](uint64_t context) {
    read_states_.push_back({context, message.log_index});
  });
}

void Node::ask_leader_for_reads() {
  if (leader_ == kNobody) return;
  const auto batch = forwarded_.begin_batch(random_);
  if (!batch) return;
  asked_tick_ = now_;
  Message message = message_to(leader_, MessageType::kReadIndex);
  message.read_round = *batch;
  messages_now_.push_back(std::move(message));
}

void Node::ask_leader_again() {
  const auto batch = forwarded_.newest();
  if (!batch || leader_ == kNobody || now_ - asked_tick_ < config_.heartbeat_ticks + 1) return;
  asked_tick_ = now_;
  Message message = message_to(leader_, MessageType::kReadIndex);
  message.read_round = *batch;
  messages_now_.push_back(std::move(message));
}

}  // namespace raft
