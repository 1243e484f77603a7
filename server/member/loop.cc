#include "member/loop.h"

#include <algorithm>

#include "base/log.h"
#include "member/founding.h"
#include "member/raft_messages.h"

namespace member {
namespace {

constexpr int kTicksPerStepMax = 3;  // after a pause time is not made up for: that would only force an election
constexpr Time kSweepEvery = std::chrono::milliseconds(500);
constexpr size_t kMessagesWaitingMax = 10'000;
constexpr size_t kForwardedWaitingMax = 10'000;

}  // namespace

Loop::Loop(const Options& options, raft::Config config, raft::Restored restored, Parts parts)
    : options_(options),
      parts_(std::move(parts)),
      node_(config, std::move(restored), parts_.random),
      leases_(parts_.leases, options.request_timeout()),
      forward_({.network = parts_.network,
                .waiters = parts_.waiters,
                .answer_within = options.request_timeout(),
                .first_call = parts_.random.next()}),
      proposals_in_(*this, kProposalsWaitingMax),
      persisted_in_(*this, kCallsWaitingMax),
      applied_in_(*this, kCallsWaitingMax),
      messages_in_(*this, kMessagesWaitingMax),
      forwarded_in_(*this, kForwardedWaitingMax),
      calls_in_(*this, kCallsWaitingMax),
      own_calls_in_(*this, kCallsWaitingMax) {
  applied_index_ = node_.applied_index();
  membership_index_ = applied_index_;
  next_tick_ = parts_.clock.monotonic() + options_.heartbeat_interval;
  publish();
}

bool Loop::read_index(std::function<void(Status)> done) {
  return calls_in_.push([this, done = std::move(done)](Time now) { begin_read(now, done); });
}

void Loop::receive_forwarded(uint64_t from, Bytes frame) {
  const size_t bytes = frame.size();
  const bool fits = forwarded_bytes_.fetch_add(bytes) + bytes <= kForwardedBytesMax;
  if (!fits || !forwarded_in_.push({from, std::move(frame)})) forwarded_bytes_.fetch_sub(bytes);
}

void Loop::unreachable(uint64_t peer) {
  call([this, peer](Time) { node_.messages_lost(peer); });
}

void Loop::snapshot_made(uint64_t to, std::optional<raft::SnapshotPoint> point) {
  call([this, to, point](Time) {
    const Status offered = point ? node_.offer_snapshot(to, point->index, point->term) : Status();
    if (!point || !offered) node_.snapshot_failed(to);
  });
}

void Loop::fetch_failed() {
  call([this](Time) { node_.fetch_failed(); });
}

void Loop::install(raft::SnapshotPoint point, raft::Membership membership, std::function<void(bool)> done) {
  call([this, point, membership = std::move(membership), done = std::move(done)](Time) {
    const Status installed = node_.install(point.index, point.term, membership);
    if (!installed) log_info("a snapshot is not needed any more", {{"index", point.index}});
    closing_ = installed.has_value();
    done(closing_);
  });
}

RaftStatus Loop::status() const {
  MutexLock lock(status_mutex_);
  return status_;
}

Time Loop::step() {
  if (parts_.failure.failed() || closing_) return kWhenWoken;
  const Time now = parts_.clock.monotonic();
  persisted_in_.drain(persisted_);
  if (!persisted_.empty()) node_.persisted(persisted_.back());
  take_applied(now);
  take_messages();  // before the clock: after a pause they tell of a leader that a tick would miss
  own_calls_in_.drain(calls_);
  for (const Call& call : calls_) call(now);
  if (closing_) return kWhenWoken;
  calls_in_.drain(calls_);  // keepalives first: after a pause none of them may lose against an expiry
  for (const Call& call : calls_) call(now);
  take_forwarded(now);
  serve_leases(now);
  tick(now);
  take_proposals();
  propose_due(now);
  hand_over();
  finish_reads();
  finish_transfer(now);
  forward_.flush();
  leave_if_removed(now);
  publish();
  return next_time();
}

void Loop::take_messages() {
  messages_in_.drain(messages_);
  for (raft::Message& message : messages_) {
    const uint64_t from = message.from;
    const Status taken = node_.step(std::move(message));
    if (taken) continue;
    if (taken.error().code == Code::kDataLoss) return parts_.failure.report(taken.error());
    log_warn("a message of another member is refused", {{"from", from}, {"error", taken.error().message}});
  }
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
  if (now < next_sweep_) return;
  next_sweep_ = now + kSweepEvery;
  sweep(now);
}

void Loop::sweep(Time now) {
  // A leader whose disk is full serves nobody: another one may have space.
  if (leads() && parts_.failure.out_of_space() && node_.membership().voters.size() > 1) {
    (void)node_.transfer_leadership(raft::kNobody);
  }
  parts_.waiters.expire(now);
  forward_.expire(now);
  for (auto it = reads_.begin(); it != reads_.end();) {
    if (it->second.until > now) {
      ++it;
      continue;
    }
    const auto done = std::move(it->second.done);
    it = reads_.erase(it);
    done(::fail(Code::kUnavailable, kErrorTimeout));
  }
  std::erase_if(without_leader_, [now](const LeaseAsk& ask) {
    if (ask.until > now) return false;
    ask.refuse({Code::kUnavailable, kErrorNoLeader});
    return true;
  });
}

void Loop::take_applied(Time now) {
  applied_in_.drain(applied_);
  if (applied_.empty()) return;
  uint64_t membership_index = 0;
  bool attributes = false;
  for (const AppliedNote& note : applied_) {
    leases_.applied(note.leases, now);
    leases_.revocations_refused(note.revocations_refused, now);
    membership_index = std::max(membership_index, note.membership_index);
    attributes = attributes || note.attributes;
  }
  if (membership_index > 0) {
    node_.set_membership(membership_index, membership_of(parts_.members()));
    membership_index_ = membership_index;
  }
  if (membership_index > 0 || attributes) parts_.members_changed();
  applied_index_ = applied_.back().index;
  applied_term_ = applied_.back().term;
  node_.applied(applied_index_);
  if (leads() && applied_term_ == node_.term() && !leases_.active()) leases_.begin_term(node_.term(), now);
}

void Loop::hand_over() {
  while (auto ready = node_.take_ready()) {
    if (ready->soft_state) take_soft_state(*ready->soft_state);
    for (const raft::Message& message : ready->messages_now) send(parts_.network, message);
    if (ready->persists()) {
      WalStage::Job job;
      job.batch = ready->batch;
      job.hard_state = ready->hard_state;
      job.entries = std::move(ready->entries);
      job.messages = std::move(ready->messages_after_sync);
      parts_.persist(std::move(job));
    }
    if (!ready->committed.empty()) parts_.commit(std::move(ready->committed));
    for (const raft::ReadState& read : ready->read_states) {
      if (const auto found = reads_.find(read.context); found != reads_.end()) found->second.index = read.index;
    }
    for (const uint64_t context : ready->reads_dropped) {
      if (auto dropped = reads_.extract(context)) dropped.mapped().done(::fail(Code::kUnavailable, kErrorNoLeader));
    }
    // An older snapshot may not know the member that it is for.
    const uint64_t snapshot_min = std::max(node_.log().base_index(), membership_index_);
    for (const uint64_t member : ready->snapshots_needed) parts_.snapshot_needed(member, snapshot_min);
    if (ready->snapshot_offered) parts_.snapshot_offered(*ready->snapshot_offered);
  }
}

void Loop::take_soft_state(const raft::SoftState& soft) {
  if (soft.leader != soft_.leader) {
    if (soft.leader != raft::kNobody) ++leader_changes_;
    forward_.leader_changed();
  }
  soft_ = soft;
  log_info("raft state", {{"role", raft::name(soft_.role)}, {"term", soft_.term}, {"leader", soft_.leader}});
  if (soft_.role != raft::Role::kLeader) leases_.end_term();
  if (soft_.leader == raft::kNobody) return;
  for (LeaseAsk& ask : std::exchange(without_leader_, {})) lease_asks_.push_back(std::move(ask));
  if (!lease_asks_.empty()) wake();
}

void Loop::begin_read(Time now, std::function<void(Status)> done) {
  const uint64_t context = next_read_++;
  const auto read =
      reads_.emplace(context, Read{std::nullopt, now + options_.request_timeout(), std::move(done)}).first;
  if (auto asked = node_.read_index(context); !asked) {
    const auto refused = std::move(read->second.done);
    reads_.erase(read);
    refused(asked);
  }
}

void Loop::finish_reads() {
  for (auto it = reads_.begin(); it != reads_.end();) {
    if (!it->second.index || *it->second.index > applied_index_) {
      ++it;
      continue;
    }
    const auto done = std::move(it->second.done);
    it = reads_.erase(it);
    done({});
  }
}

// Others must hear that the change is committed, above all when this member led.
void Loop::leave_if_removed(Time now) {
  const auto& membership = node_.membership();
  const bool known = membership.is_voter(node_.id()) || membership.is_learner(node_.id());
  if (known || membership.voters.empty()) {
    removed_since_.reset();
    return;
  }
  if (!removed_since_) removed_since_ = now;
  if (now < *removed_since_ + 2 * options_.election_timeout) return;
  parts_.failure.stop({Code::kFailedPrecondition, kErrorRemoved});
}

void Loop::publish() {
  const auto& voters = node_.membership().voters;
  whole_quorum_.store(leads() && applied_term_ == node_.term() && voters.size() == 1 && voters[0] == node_.id(),
                      std::memory_order_release);
  term_.store(node_.term(), std::memory_order_relaxed);
  is_learner_.store(node_.membership().is_learner(node_.id()), std::memory_order_relaxed);
  MutexLock lock(status_mutex_);
  status_ = {node_.leader(), node_.role(),       node_.term(),    node_.commit_index(),
             applied_index_, node_.last_index(), leader_changes_, node_.membership().is_learner(node_.id())};
}

Time Loop::next_time() const {
  if (!forwarded_later_.empty()) return kNow;
  const Time leases = parts_.failure.out_of_space() ? kWhenWoken : leases_.next();  // propose_due()
  return std::min({next_tick_, std::max(leases, kNow + Time(1))});
}

}  // namespace member
