// The loop's side of what clients ask for: proposals, leases, the transfer of leadership. Served here by the leader,
// else forwarded to it.
#include <algorithm>

#include "apply/execute.h"
#include "base/log.h"
#include "member/loop.h"
#include "member/reconfig.h"
#include "raft/wire.h"

namespace member {
namespace {

// What cannot be applied stops every member once it is in the log. Of this member's own commands that is known; what
// another one sends is read here, before apply reads it again.
Status check_sent(const Command& command) {
  if (command.from == 0) return {};
  if (command.data->size() > raft::kWireEntryBytesMax) return ::fail(Code::kInvalidArgument, kErrorTooLarge);
  if (command.type == EntryType::kMembership) return {};  // read below
  return apply::check_command(*command.data);
}

}  // namespace

void Loop::LeaseAsk::refuse(const Error& error) const {
  if (kept_alive) return kept_alive(::fail(error));
  remaining(::fail(error));
}

bool Loop::keep_alive(int64_t id, KeptAlive done) {
  return calls_in_.push([this, id, done = std::move(done)](Time now) {
    lease_asks_.push_back({.id = id, .kept_alive = done, .until = now + options_.request_timeout()});
  });
}

bool Loop::remaining(int64_t id, Remaining done) {
  return calls_in_.push([this, id, done = std::move(done)](Time now) {
    lease_asks_.push_back({.id = id, .remaining = done, .until = now + options_.request_timeout()});
  });
}

void Loop::take_forwarded(Time now) {
  forwarded_in_.drain(forwarded_);
  std::move(forwarded_.begin(), forwarded_.end(), std::back_inserter(forwarded_later_));
  forwarded_.clear();
  // What is in a frame takes many times its bytes, so not all of them are read at once.
  size_t bytes = 0;
  while (!forwarded_later_.empty() && bytes < kForwardedBytesPerStep) {
    const Forwarded from = std::move(forwarded_later_.front());
    forwarded_later_.pop_front();
    bytes += from.frame.size();
    forwarded_bytes_.fetch_sub(from.frame.size());
    auto asked = forward_.take(from.from, from.frame);
    if (!asked) {
      log_warn("a frame of another member is dropped", {{"from", from.from}, {"error", asked.error().message}});
      continue;
    }
    for (Command& command : asked->proposals) proposals_forwarded_.push_back(std::move(command));
    for (const auto& lease : asked->leases) {
      LeaseAsk ask{.id = lease.call.id(), .until = now + options_.request_timeout(), .forwarded = true};
      if (lease.call.kind() == conclavepb::LeaseCall::KEEP_ALIVE) {
        ask.kept_alive = [this, lease](const Result<int64_t>& kept) { forward_.answer(lease, kept); };
      } else {
        ask.remaining = [this, lease](const Result<std::optional<Time>>& left) { forward_.answer(lease, left); };
      }
      if (lease_asks_.size() + lease_asks_confirming_ >= kCallsWaitingMax) {
        ask.refuse({Code::kResourceExhausted, kErrorTooManyRequests});
      } else {
        lease_asks_.push_back(std::move(ask));
      }
    }
  }
}

// A leader of several answers only once its leadership was confirmed after the request came; one round of heartbeats
// confirms all of a step.
void Loop::serve_leases(Time now) {
  std::vector<LeaseAsk> asks = std::exchange(lease_asks_, {});
  if (asks.empty()) return;
  if (leads() && node_.membership().voters.size() > 1) {
    auto confirmed = std::make_shared<std::vector<LeaseAsk>>(std::move(asks));
    lease_asks_confirming_ += confirmed->size();
    return begin_read(now, [this, confirmed](const Status& status) {
      lease_asks_confirming_ -= confirmed->size();
      const Time then = parts_.clock.monotonic();
      for (const LeaseAsk& ask : *confirmed) {
        if (status) {
          serve_lease(ask, then);
        } else {
          ask.refuse(status.error());
        }
      }
    });
  }
  for (const LeaseAsk& ask : asks) {
    if (leads()) {
      serve_lease(ask, now);
    } else if (ask.forwarded) {
      ask.refuse({Code::kUnavailable, kErrorNoLeader});
    } else if (node_.leader() != raft::kNobody && parts_.network != nullptr) {
      if (ask.kept_alive) {
        forward_.keep_alive(node_.leader(), ask.id, now, ask.kept_alive);
      } else {
        forward_.remaining(node_.leader(), ask.id, now, ask.remaining);
      }
    } else if (without_leader_.size() < kCallsWaitingMax) {
      without_leader_.push_back(ask);
    } else {
      ask.refuse({Code::kResourceExhausted, kErrorTooManyRequests});
    }
  }
}

void Loop::serve_lease(const LeaseAsk& ask, Time now) {
  if (ask.kept_alive) return leases_.keep_alive(ask.id, now, ask.kept_alive);
  leases_.remaining(ask.id, now, ask.remaining);
}

void Loop::take_proposals() {
  proposals_in_.drain(proposals_);
  std::move(proposals_forwarded_.begin(), proposals_forwarded_.end(), std::back_inserter(proposals_));
  proposals_forwarded_.clear();
  if (proposals_.empty()) return;
  if (leads()) return propose_here();
  const bool can_forward = node_.leader() != raft::kNobody && parts_.network != nullptr;
  for (const Command& command : proposals_) {
    if (can_forward && command.from == 0) {
      forward_.propose(node_.leader(), command);
    } else {
      forward_.refuse(command, {Code::kUnavailable, kErrorNoLeader});
    }
  }
}

void Loop::propose_here() {
  std::vector<raft::Proposal> proposals;
  std::vector<const Command*> commands;
  for (const Command& command : proposals_) {
    if (const Status checked = check_sent(command); !checked) {
      forward_.refuse(command, checked.error());
    } else if (command.type == EntryType::kMembership) {
      propose_membership(command);
    } else {
      proposals.push_back({command.type, command.data});
      commands.push_back(&command);
    }
  }
  if (proposals.empty() || node_.propose(proposals)) return;
  // Together they break a limit, or there is no leader: one by one, so that what fits goes through.
  for (size_t i = 0; i < proposals.size(); ++i) {
    if (auto proposed = node_.propose(std::span(&proposals[i], 1)); !proposed) {
      forward_.refuse(*commands[i], proposed.error());
    }
  }
}

void Loop::propose_membership(const Command& command) {
  conclavepb::MembershipChange change;
  if (!change.ParseFromString(*command.data)) {
    return forward_.refuse(command, {Code::kInvalidArgument, "a change of the membership cannot be read"});
  }
  const auto members = parts_.members();
  const auto progress = node_.member_progress();
  const ReconfigView view{.members = members,
                          .progress = progress,
                          .self = node_.id(),
                          .last_index = node_.last_index(),
                          .strict = options_.strict_reconfig_check};
  if (Status wise = check_reconfig(change, view); !wise) return forward_.refuse(command, wise.error());
  const raft::Proposal proposal{EntryType::kMembership, command.data};
  if (auto proposed = node_.propose(std::span(&proposal, 1)); !proposed) forward_.refuse(command, proposed.error());
}

// Not while the disk is full: keepalives cannot be answered then, and whoever sent them must not lose a lease for it.
void Loop::propose_due(Time now) {
  if (parts_.failure.out_of_space()) return;
  const std::vector<conclavepb::Entry> commands = leases_.due(now);
  if (commands.empty()) return;
  std::vector<raft::Proposal> proposals;
  for (const conclavepb::Entry& command : commands) {
    proposals.push_back({EntryType::kCommand, std::make_shared<const Bytes>(command.SerializeAsString())});
  }
  if (!node_.propose(proposals)) leases_.refused(commands, now);
}

bool Loop::transfer_leadership(uint64_t to, std::function<void(Status)> done) {
  return calls_in_.push([this, to, done = std::move(done)](Time now) {
    if (Status begun = node_.transfer_leadership(to); !begun) return done(begun);
    if (to == node_.id()) return done({});
    if (transfer_) transfer_->done(::fail(Code::kUnavailable, kErrorTransferTimeout));
    transfer_ = Transfer{now + 2 * options_.election_timeout, done};
  });
}

void Loop::finish_transfer(Time now) {
  if (!transfer_) return;
  const bool another = node_.leader() != raft::kNobody && node_.leader() != node_.id();
  const bool nothing_to_do = leads() && node_.transfer_target() == raft::kNobody;
  if (!another && !nothing_to_do && now < transfer_->until) return;
  const auto done = std::move(transfer_->done);
  transfer_.reset();
  done(another ? Status() : ::fail(Code::kUnavailable, kErrorTransferTimeout));
}

}  // namespace member
