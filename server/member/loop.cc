#include "member/loop.h"

#include <algorithm>

#include "base/log.h"

namespace member {
namespace {

constexpr int kTicksPerStepMax = 3;  // after a pause time is not made up for: that would only force an election
constexpr Time kSweepEvery = std::chrono::milliseconds(500);

}  // namespace

Loop::Loop(const Options& options, raft::Config config, raft::Restored restored, Parts parts)
    : options_(options),
      parts_(std::move(parts)),
      node_(config, std::move(restored), parts_.random),
      leases_(parts_.leases, options.request_timeout()),
      proposals_in_(*this, kProposalsWaitingMax),
      persisted_in_(*this, kCallsWaitingMax),
      applied_in_(*this, kCallsWaitingMax),
      calls_in_(*this, kCallsWaitingMax) {
  applied_index_ = node_.applied_index();
  next_tick_ = parts_.clock.monotonic() + options_.heartbeat_interval;
  publish();
}

bool Loop::keep_alive(int64_t id, KeptAlive done) {
  return calls_in_.push([this, id, done = std::move(done)](Time now) { leases_.keep_alive(id, now, done); });
}

bool Loop::remaining(int64_t id, Remaining done) {
  return calls_in_.push([this, id, done = std::move(done)](Time now) { leases_.remaining(id, now, done); });
}

bool Loop::read_index(std::function<void(Status)> done) {
  return calls_in_.push([this, done = std::move(done)](Time now) {
    const uint64_t context = next_read_++;
    reads_.emplace(context, Read{std::nullopt, now + options_.request_timeout(), done});
    if (auto asked = node_.read_index(context); !asked) {
      reads_.erase(context);
      done(asked);
    }
  });
}

RaftStatus Loop::status() const {
  MutexLock lock(status_mutex_);
  return status_;
}

Time Loop::step() {
  if (parts_.failure.failed()) return kWhenWoken;
  const Time now = parts_.clock.monotonic();
  persisted_in_.drain(persisted_);
  if (!persisted_.empty()) node_.persisted(persisted_.back());
  take_applied(now);
  calls_in_.drain(calls_);  // keepalives first: after a pause none of them may lose against an expiry
  for (const Call& call : calls_) call(now);
  tick(now);
  take_proposals();
  propose_due(now);
  hand_over();
  finish_reads();
  publish();
  return next_time();
}

void Loop::tick(Time now) {
  for (int ticks = 0; now >= next_tick_; ++ticks) {
    if (ticks == kTicksPerStepMax) {
      next_tick_ = now + options_.heartbeat_interval;
      break;
    }
    node_.tick();
    next_tick_ += options_.heartbeat_interval;
  }
  if (now >= next_sweep_) {
    next_sweep_ = now + kSweepEvery;
    parts_.waiters.expire(now);
    for (auto it = reads_.begin(); it != reads_.end();) {
      if (it->second.until > now) {
        ++it;
        continue;
      }
      it->second.done(::fail(Code::kUnavailable, kErrorTimeout));
      it = reads_.erase(it);
    }
  }
}

void Loop::take_applied(Time now) {
  applied_in_.drain(applied_);
  if (applied_.empty()) return;
  for (const AppliedNote& note : applied_) {
    leases_.applied(note.leases, now);
    leases_.revocations_refused(note.revocations_refused, now);
  }
  applied_index_ = applied_.back().index;
  applied_term_ = applied_.back().term;
  node_.applied(applied_index_);
  if (node_.role() == raft::Role::kLeader && applied_term_ == node_.term() && !leases_.active()) {
    leases_.begin_term(node_.term(), now);
  }
}

void Loop::take_proposals() {
  proposals_in_.drain(proposals_);
  if (proposals_.empty()) return;
  std::vector<raft::Proposal> proposals;
  proposals.reserve(proposals_.size());
  for (Command& command : proposals_) proposals.push_back({EntryType::kCommand, command.data});
  if (node_.propose(proposals)) return;
  // Together they break a limit, or there is no leader: one by one, so that what fits goes through.
  for (size_t i = 0; i < proposals.size(); ++i) {
    if (auto proposed = node_.propose(std::span(&proposals[i], 1)); !proposed) {
      parts_.waiters.complete(proposals_[i].request_id, ::fail(proposed.error()));
    }
  }
}

void Loop::propose_due(Time now) {
  const std::vector<conclavepb::Entry> commands = leases_.due(now);
  if (commands.empty()) return;
  std::vector<raft::Proposal> proposals;
  for (const conclavepb::Entry& command : commands) {
    proposals.push_back({EntryType::kCommand, std::make_shared<const Bytes>(command.SerializeAsString())});
  }
  if (!node_.propose(proposals)) leases_.refused(commands, now);
}

void Loop::hand_over() {
  while (auto ready = node_.take_ready()) {
    if (ready->soft_state) {
      if (ready->soft_state->leader != soft_.leader && ready->soft_state->leader != raft::kNobody) ++leader_changes_;
      soft_ = *ready->soft_state;
      log_info("raft state", {{"role", raft::name(soft_.role)}, {"term", soft_.term}, {"leader", soft_.leader}});
      if (soft_.role != raft::Role::kLeader) leases_.end_term();
    }
    if (ready->persists()) {
      WalStage::Job job;
      job.batch = ready->batch;
      job.hard_state = ready->hard_state;
      job.entries = std::move(ready->entries);
      parts_.persist(std::move(job));
    }
    if (!ready->committed.empty()) parts_.commit(std::move(ready->committed));
    for (const raft::ReadState& read : ready->read_states) {
      if (const auto found = reads_.find(read.context); found != reads_.end()) found->second.index = read.index;
    }
    for (const uint64_t context : ready->reads_dropped) {
      if (auto dropped = reads_.extract(context)) dropped.mapped().done(::fail(Code::kUnavailable, kErrorNoLeader));
    }
  }
}

void Loop::finish_reads() {
  for (auto it = reads_.begin(); it != reads_.end();) {
    if (it->second.index && *it->second.index <= applied_index_) {
      it->second.done({});
      it = reads_.erase(it);
    } else {
      ++it;
    }
  }
}

void Loop::publish() {
  const bool leads = node_.role() == raft::Role::kLeader;
  const auto& voters = node_.membership().voters;
  whole_quorum_.store(leads && applied_term_ == node_.term() && voters.size() == 1 && voters[0] == node_.id(),
                      std::memory_order_release);
  term_.store(node_.term(), std::memory_order_relaxed);
  MutexLock lock(status_mutex_);
  status_ = {node_.leader(), node_.role(),       node_.term(),   node_.commit_index(),
             applied_index_, node_.last_index(), leader_changes_};
}

Time Loop::next_time() const { return std::min({next_tick_, std::max(leases_.next(), kNow + Time(1))}); }

}  // namespace member
