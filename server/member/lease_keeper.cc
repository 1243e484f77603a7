#include "member/lease_keeper.h"

#include <algorithm>

#include "apply/entry_version.h"
#include "member/options.h"

namespace member {
namespace {

constexpr size_t kEarlyMax = 10'000;
constexpr size_t kWaitingMax = 100'000;
constexpr size_t kRevocationsPerTick = 1'000;
constexpr size_t kCheckpointsPerTick = 1'000;
constexpr Time kRevokeAgain = std::chrono::seconds(3);

conclavepb::Entry& add_command(std::vector<conclavepb::Entry>& commands) {
  conclavepb::Entry& command = commands.emplace_back();
  command.set_version(apply::kEntryVersion);
  return command;
}

}  // namespace

LeaseKeeper::LeaseKeeper(const lease::Table& table, Time answer_within)
    : table_(table), answer_within_(answer_within) {}

void LeaseKeeper::begin_term(uint64_t term, Time now) {
  term_ = term;
  deadlines_.rebuild(table_.list(), now);
  const auto early = std::exchange(early_, {});
  for (const Early& call : early) call.run(now, false);
}

void LeaseKeeper::end_term() {
  term_ = 0;
  deadlines_.clear();
  resets_.clear();
  for (auto& [id, waiting] : std::exchange(waiting_, {})) waiting.done(::fail(Code::kUnavailable, kErrorNoLeader));
}

void LeaseKeeper::keep_alive(int64_t id, Time now, KeptAlive done) {
  if (!active()) {
    if (early_.size() >= kEarlyMax) return done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
    early_.push_back({now + answer_within_, [this, id, done = std::move(done)](Time at, bool refused) {
                        if (refused) return done(::fail(Code::kUnavailable, kErrorNoLeader));
                        keep_alive(id, at, done);
                      }});
    return;
  }
  const auto info = table_.find(id);
  if (!info) return done(0);
  if (waiting_.size() >= kWaitingMax) return done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
  if (deadlines_.revoking(id)) {  // too late, unless the revocation fails
    waiting_.emplace(id, Waiting{WaitsFor::kRevocation, now + answer_within_, std::move(done)});
    return;
  }
  const bool reset = deadlines_.checkpointed(id);
  if (!deadlines_.renew(id, now)) return done(0);
  if (!reset) return done(info->ttl);
  // A restart must not fall back on the old checkpoint once this renewal was acknowledged.
  resets_.push_back(id);
  waiting_.emplace(id, Waiting{WaitsFor::kReset, now + answer_within_, std::move(done)});
}

void LeaseKeeper::remaining(int64_t id, Time now, Remaining done) {
  if (!active()) {
    if (early_.size() >= kEarlyMax) return done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
    early_.push_back({now + answer_within_, [this, id, done = std::move(done)](Time at, bool refused) {
                        if (refused) return done(::fail(Code::kUnavailable, kErrorNoLeader));
                        remaining(id, at, done);
                      }});
    return;
  }
  done(deadlines_.remaining(id, now));
}

// Who came while the lease was being revoked goes on waiting: the revocation is behind the reset in the log.
void LeaseKeeper::answer_reset(int64_t id, int64_t ttl) {
  std::vector<KeptAlive> ready;
  const auto [begin, end] = waiting_.equal_range(id);
  for (auto it = begin; it != end;) {
    if (it->second.what != WaitsFor::kReset) {
      ++it;
      continue;
    }
    ready.push_back(std::move(it->second.done));
    it = waiting_.erase(it);
  }
  for (const KeptAlive& done : ready) done(ttl);
}

void LeaseKeeper::answer_gone(int64_t id) {
  std::vector<KeptAlive> ready;
  const auto [begin, end] = waiting_.equal_range(id);
  for (auto it = begin; it != end; ++it) ready.push_back(std::move(it->second.done));
  waiting_.erase(begin, end);
  for (const KeptAlive& done : ready) done(0);
}

void LeaseKeeper::applied(const std::vector<apply::LeaseChange>& changes, Time now) {
  if (!active()) return;  // begin_term() reads the table
  for (const apply::LeaseChange& change : changes) {
    switch (change.kind) {
      case apply::LeaseChange::Kind::kGranted:
        deadlines_.granted(change.id, change.ttl, now);
        break;
      case apply::LeaseChange::Kind::kRevoked:
        deadlines_.removed(change.id);
        answer_gone(change.id);
        break;
      case apply::LeaseChange::Kind::kCheckpointed:
        break;
      case apply::LeaseChange::Kind::kReset:
        deadlines_.reset_done(change.id);
        if (const auto info = table_.find(change.id)) answer_reset(change.id, info->ttl);
        break;
    }
  }
}

void LeaseKeeper::revocations_refused(const std::vector<int64_t>& ids, Time now) {
  if (!active()) return;
  for (const int64_t id : ids) deadlines_.retry(id, now + kRevokeAgain);
}

std::vector<conclavepb::Entry> LeaseKeeper::due(Time now) {
  while (!early_.empty() && early_.front().until <= now) {
    const Early late = std::move(early_.front());
    early_.pop_front();
    late.run(now, true);
  }
  std::vector<conclavepb::Entry> commands;
  if (!active()) return commands;
  expire_waiting(now);
  if (!resets_.empty()) {
    auto& checkpoint = *add_command(commands).mutable_lease_checkpoint();
    checkpoint.set_term(term_);
    for (const int64_t id : std::exchange(resets_, {})) checkpoint.add_items()->set_id(id);
  }
  for (const int64_t id : deadlines_.expired(now, kRevocationsPerTick)) {
    auto& revoke = *add_command(commands).mutable_lease_revoke();
    revoke.set_id(id);
    revoke.set_term(term_);
  }
  const auto checkpoints = deadlines_.due_checkpoints(now, kCheckpointsPerTick);
  if (!checkpoints.empty()) {
    auto& checkpoint = *add_command(commands).mutable_lease_checkpoint();
    checkpoint.set_term(term_);
    for (const auto& [id, seconds] : checkpoints) {
      auto& item = *checkpoint.add_items();
      item.set_id(id);
      item.set_remaining_ttl(seconds);
    }
  }
  return commands;
}

void LeaseKeeper::refused(const std::vector<conclavepb::Entry>& commands, Time now) {
  for (const conclavepb::Entry& command : commands) {
    if (command.has_lease_revoke()) deadlines_.retry(command.lease_revoke().id(), now);
    for (const auto& item : command.lease_checkpoint().items()) {
      if (item.remaining_ttl() == 0) resets_.push_back(item.id());  // a lost checkpoint is only a little less exact
    }
  }
}

void LeaseKeeper::expire_waiting(Time now) {
  std::vector<KeptAlive> late;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->second.until <= now) {
      late.push_back(std::move(it->second.done));
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  for (const KeptAlive& done : late) done(::fail(Code::kUnavailable, kErrorTimeout));
}

Time LeaseKeeper::next() const {
  if (!active()) return kWhenWoken;
  if (!resets_.empty()) return kNow;
  return deadlines_.next().value_or(kWhenWoken);
}

}  // namespace member
