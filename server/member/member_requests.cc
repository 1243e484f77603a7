#include "apply/entry_version.h"
#include "member/member_of.h"
#include "raft/wire.h"

namespace member {

uint64_t MemberOf::add_waiter(Done done) {
  const uint64_t id = next_request_.fetch_add(1, std::memory_order_relaxed);
  waiters_.add(id, world_.clock.monotonic() + options_.request_timeout(),
               [this, done = std::move(done)](Result<apply::Message> response) {
                 if (!response) failed_.add();
                 done(std::move(response));
               });
  return id;
}

void MemberOf::submit(Command command) {
  const uint64_t id = command.request_id;
  // Whatever --max-request-bytes allows: neither log nor network takes more.
  if (command.data->size() > raft::kWireEntryBytesMax) {
    return waiters_.complete(id, ::fail(Code::kInvalidArgument, kErrorTooLarge));
  }
  if (!loop_->propose(std::move(command))) {
    waiters_.complete(id, ::fail(Code::kResourceExhausted, kErrorTooManyRequests));
  }
}

void MemberOf::propose(conclavepb::Entry command, Done done) {
  if (refused_for_space(command)) {
    return done(::fail(Code::kResourceExhausted, kErrorNoSpace));
  }
  const uint64_t id = add_waiter(std::move(done));
  command.set_version(apply::kEntryVersion);
  command.set_request_id(id);
  command.set_proposer(member_id());
  command.set_wall_ms(std::chrono::duration_cast<std::chrono::milliseconds>(world_.clock.wall()).count());
  submit({.request_id = id, .data = std::make_shared<const Bytes>(command.SerializeAsString())});
}

void MemberOf::change_membership(conclavepb::MembershipChange change, Done done) {
  const uint64_t id = add_waiter(std::move(done));
  change.set_request_id(id);
  change.set_proposer(member_id());
  submit({.request_id = id,
          .type = EntryType::kMembership,
          .data = std::make_shared<const Bytes>(change.SerializeAsString())});
}

void MemberOf::transfer_leadership(uint64_t to, std::function<void(Status)> done) {
  if (!loop_->transfer_leadership(to, done)) done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
}

void MemberOf::linearize(std::function<void(Status)> done) {
  if (loop_->is_whole_quorum()) return done({});
  auto later = [this, done](Status status) { reads_->push([done, status] { done(status); }); };
  if (!loop_->read_index(std::move(later))) done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
}

void MemberOf::keep_alive(int64_t lease, KeptAlive done) {
  if (!loop_->keep_alive(lease, done)) done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
}

void MemberOf::remaining(int64_t lease, Remaining done) {
  if (!loop_->remaining(lease, done)) done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
}

int64_t MemberOf::new_lease_id() {
  while (true) {
    const auto id = static_cast<int64_t>(world_.random.next() >> 1);
    if (id != 0 && !leases_.find(id)) return id;
  }
}

Member::State MemberOf::state() const {
  State state;
  state.cluster_id = cluster_id();
  state.member_id = member_id();
  state.raft = loop_->status();
  state.published = mvcc_->published();
  state.store = folder_.store->stats();
  state.keys = mvcc_->key_count();
  state.proposals_waiting = waiters_.size();
  state.out_of_space = failure_.out_of_space();
  state.is_learner = state.raft.is_learner;
  state.ready = !failure_.failed() && announced_.load() && state.raft.leader != raft::kNobody &&
                state.published.applied_term == state.raft.term;
  return state;
}

}  // namespace member
