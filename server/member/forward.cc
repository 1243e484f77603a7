#include "member/forward.h"

#include "member/options.h"

namespace member {

using conclavepb::LeaseCall;
using conclavepb::PeerCall;

void Forward::LeaseWaiter::fail(const Error& error) const {
  if (kept_alive) return kept_alive(::fail(error));
  remaining(::fail(error));
}

PeerCall& Forward::add_call(uint64_t to, size_t bytes) {
  Gathered& gathered = gathered_[to];
  if (gathered.bytes > 0 && gathered.bytes + bytes > kForwardFrameBytes) send(to);
  gathered.bytes += bytes + 16;
  return *gathered.frame.add_calls();
}

// A frame that is dropped was never sent: what is in it did not happen.
void Forward::send(uint64_t to) {
  Gathered& gathered = gathered_[to];
  if (gathered.frame.calls_size() == 0) return;
  gathered.frame.set_version(kPeerFrameVersion);
  if (!parts_.network->send(to, Network::Lane::kForward, gathered.frame.SerializeAsString())) {
    const Error error{Code::kUnavailable, kErrorNoLeader};
    for (const PeerCall& call : gathered.frame.calls()) {
      if (call.has_proposal()) parts_.waiters.complete(call.proposal().request_id(), ::fail(error));
      if (call.has_lease()) {
        if (auto waiter = waiting_.extract(call.lease().call())) waiter.mapped().fail(error);
      }
    }
  }
  gathered.frame.Clear();
  gathered.bytes = 0;
}

void Forward::flush() {
  for (auto& [to, gathered] : gathered_) send(to);
}

void Forward::propose(uint64_t leader, const Command& command) {
  auto& call = *add_call(leader, command.data->size()).mutable_proposal();
  call.set_request_id(command.request_id);
  call.set_type(static_cast<uint32_t>(command.type));
  call.set_data(*command.data);
}

bool Forward::call_leader(uint64_t leader, int64_t id, LeaseCall::Kind kind, LeaseWaiter waiter) {
  if (waiting_.size() >= kLeaseCallsWaitingMax) return false;
  const uint64_t number = next_call_++;
  waiting_.emplace(number, std::move(waiter));
  auto& call = *add_call(leader, 16).mutable_lease();
  call.set_call(number);
  call.set_id(id);
  call.set_kind(kind);
  return true;
}

void Forward::keep_alive(uint64_t leader, int64_t id, Time now, KeptAlive done) {
  if (!call_leader(leader, id, LeaseCall::KEEP_ALIVE, {now + parts_.answer_within, done, {}})) {
    done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
  }
}

void Forward::remaining(uint64_t leader, int64_t id, Time now, Remaining done) {
  if (!call_leader(leader, id, LeaseCall::REMAINING, {now + parts_.answer_within, {}, done})) {
    done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
  }
}

void Forward::refuse(const Command& command, const Error& error) {
  if (command.from == 0) return parts_.waiters.complete(command.request_id, ::fail(error));
  auto& call = *add_call(command.from, error.message.size()).mutable_refusal();
  call.set_request_id(command.request_id);
  call.set_code(static_cast<int32_t>(error.code));
  call.set_message(error.message);
}

Result<Forward::Asked> Forward::take(uint64_t from, const Bytes& frame) {
  conclavepb::PeerFrame parsed;
  if (!parsed.ParseFromString(frame) || parsed.version() != kPeerFrameVersion) {
    return ::fail(Code::kInvalidArgument, "a frame of forwarded requests cannot be read");
  }
  Asked asked;
  for (PeerCall& call : *parsed.mutable_calls()) {
    switch (call.call_case()) {
      case PeerCall::kProposal: {
        auto& proposal = *call.mutable_proposal();
        if (proposal.type() > static_cast<uint32_t>(EntryType::kMembership) || proposal.data().empty()) break;
        asked.proposals.push_back({.request_id = proposal.request_id(),
                                   .type = static_cast<EntryType>(proposal.type()),
                                   .data = std::make_shared<const Bytes>(std::move(*proposal.mutable_data())),
                                   .from = from});
        break;
      }
      case PeerCall::kRefusal:
        parts_.waiters.complete(call.refusal().request_id(),
                                ::fail(static_cast<Code>(call.refusal().code()), call.refusal().message()));
        break;
      case PeerCall::kLease:
        asked.leases.push_back({from, call.lease()});
        break;
      case PeerCall::kLeaseAnswer:
        take_answer(call.lease_answer());
        break;
      case PeerCall::CALL_NOT_SET:
        break;  // of a newer member: it waits until its time is over
    }
  }
  return asked;
}

void Forward::take_answer(const conclavepb::LeaseAnswer& answer) {
  const auto waiter = waiting_.extract(answer.call());
  if (!waiter) return;
  if (answer.code() != 0) return waiter.mapped().fail({static_cast<Code>(answer.code()), answer.message()});
  if (waiter.mapped().kept_alive) return waiter.mapped().kept_alive(answer.ttl());
  if (!answer.found()) return waiter.mapped().remaining(std::optional<Time>());
  waiter.mapped().remaining(std::optional<Time>(Time(answer.remaining_ns())));
}

void Forward::answer(const Asked::Lease& asked, const Result<int64_t>& kept_alive) {
  auto& answer = *add_call(asked.from, 32).mutable_lease_answer();
  answer.set_call(asked.call.call());
  if (kept_alive) return answer.set_ttl(*kept_alive);
  answer.set_code(static_cast<int32_t>(kept_alive.error().code));
  answer.set_message(kept_alive.error().message);
}

void Forward::answer(const Asked::Lease& asked, const Result<std::optional<Time>>& remaining) {
  auto& answer = *add_call(asked.from, 32).mutable_lease_answer();
  answer.set_call(asked.call.call());
  if (!remaining) {
    answer.set_code(static_cast<int32_t>(remaining.error().code));
    answer.set_message(remaining.error().message);
    return;
  }
  answer.set_found(remaining->has_value());
  if (*remaining) answer.set_remaining_ns((*remaining)->count());
}

void Forward::leader_changed() {
  for (const auto& [number, waiter] : std::exchange(waiting_, {})) waiter.fail({Code::kUnavailable, kErrorNoLeader});
}

void Forward::expire(Time now) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->second.until > now) {
      ++it;
      continue;
    }
    const LeaseWaiter waiter = std::move(it->second);
    it = waiting_.erase(it);
    waiter.fail({Code::kUnavailable, kErrorTimeout});
  }
}

}  // namespace member
