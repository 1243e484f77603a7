#include "lease/deadlines.h"

#include <algorithm>

namespace lease {
namespace {

// A TTL of 9e9 seconds is about 285 years; added to an uptime it still fits into 63 bits of nanoseconds, which end at
// 292.
Time seconds(int64_t count) { return std::chrono::seconds(count); }
Time first_checkpoint(int64_t ttl) { return seconds(ttl) / 5 * 2; }
Time checkpoint_interval(int64_t ttl) { return std::max<Time>(seconds(1), seconds(ttl) / 10); }
int64_t whole_seconds(Time left) { return std::max<int64_t>(1, std::chrono::ceil<std::chrono::seconds>(left).count()); }

}  // namespace

void Deadlines::rebuild(const std::vector<Info>& leases, Time now) {
  clear();
  leases_.reserve(leases.size());
  for (const Info& info : leases) {
    bool checkpointed = info.remaining > 0;
    Time left = seconds(checkpointed ? info.remaining : info.ttl);
    Time next = checkpointed ? checkpoint_interval(info.ttl) : first_checkpoint(info.ttl);
    add(info.id, info.ttl, now + left, now + next, checkpointed);
  }
}

void Deadlines::clear() {
  leases_.clear();
  expiries_ = {};
  checkpoints_ = {};
}

void Deadlines::granted(int64_t id, int64_t ttl, Time now) {
  add(id, ttl, now + seconds(ttl), now + first_checkpoint(ttl), false);
}

void Deadlines::add(int64_t id, int64_t ttl, Time deadline, Time next_checkpoint, bool checkpointed) {
  Lease& lease = leases_[id];
  lease = {};
  lease.ttl = ttl;
  lease.deadline = deadline;
  lease.next_checkpoint = next_checkpoint;
  lease.checkpointed = checkpointed;
  push_expiry(id, lease, deadline);
  push_checkpoint(id, lease, next_checkpoint);
  drop_garbage();
}

void Deadlines::removed(int64_t id) {
  leases_.erase(id);
  drop_garbage();
}

bool Deadlines::renew(int64_t id, Time now) {
  auto position = leases_.find(id);
  if (position == leases_.end() || position->second.revoking) return false;
  Lease& lease = position->second;
  lease.deadline = now + seconds(lease.ttl);
  lease.next_checkpoint = now + first_checkpoint(lease.ttl);
  if (lease.checkpointed) {
    lease.reset_wanted = true;
  } else if (lease.checkpoint_serial == 0) {
    push_checkpoint(id, lease, lease.next_checkpoint);
  }
  return true;
}

bool Deadlines::checkpointed(int64_t id) const {
  auto position = leases_.find(id);
  return position != leases_.end() && position->second.checkpointed;
}

bool Deadlines::revoking(int64_t id) const {
  auto position = leases_.find(id);
  return position != leases_.end() && position->second.revoking;
}

std::optional<Time> Deadlines::remaining(int64_t id, Time now) const {
  auto position = leases_.find(id);
  if (position == leases_.end()) return std::nullopt;
  return std::max(Time::zero(), position->second.deadline - now);
}

std::vector<int64_t> Deadlines::expired(Time now, size_t max) {
  std::vector<int64_t> over;
  for (size_t corrections = 0; !expiries_.empty() && expiries_.top().at <= now;) {
    if (over.size() >= max || corrections >= kCorrectionsMax) break;
    Due due = expiries_.top();
    auto position = leases_.find(due.id);
    bool outdated = position == leases_.end() || position->second.expiry_serial != due.serial;
    if (!outdated && position->second.deadline <= now) {
      position->second.revoking = true;
      position->second.expiry_serial = 0;
      over.push_back(due.id);
    } else {
      ++corrections;
    }
    expiries_.pop();
    if (!outdated && !position->second.revoking) push_expiry(due.id, position->second, position->second.deadline);
  }
  return over;
}

void Deadlines::retry(int64_t id, Time now) {
  auto position = leases_.find(id);
  if (position == leases_.end() || !position->second.revoking) return;
  position->second.revoking = false;
  push_expiry(id, position->second, std::max(now, position->second.deadline));
  drop_garbage();
}

std::vector<Deadlines::Checkpoint> Deadlines::due_checkpoints(Time now, size_t max) {
  std::vector<Checkpoint> due_now;
  for (size_t corrections = 0; !checkpoints_.empty() && checkpoints_.top().at <= now;) {
    if (due_now.size() >= max || corrections >= kCorrectionsMax) break;
    Due due = checkpoints_.top();
    checkpoints_.pop();
    auto position = leases_.find(due.id);
    if (position == leases_.end() || position->second.checkpoint_serial != due.serial) {
      ++corrections;
      continue;
    }
    Lease& lease = position->second;
    lease.checkpoint_serial = 0;
    if (lease.revoking || lease.deadline <= now || lease.reset_wanted) {
      // A renewal or reset_done() brings it back, should it live on.
      ++corrections;
      continue;
    }
    if (lease.next_checkpoint <= now) {
      lease.checkpointed = true;
      due_now.push_back({.id = due.id, .remaining = whole_seconds(lease.deadline - now)});
      lease.next_checkpoint = now + checkpoint_interval(lease.ttl);
    } else {
      ++corrections;
    }
    push_checkpoint(due.id, lease, lease.next_checkpoint);
  }
  return due_now;
}

void Deadlines::reset_done(int64_t id) {
  auto position = leases_.find(id);
  if (position == leases_.end()) return;
  Lease& lease = position->second;
  lease.checkpointed = false;
  lease.reset_wanted = false;
  if (lease.checkpoint_serial == 0) push_checkpoint(id, lease, lease.next_checkpoint);
}

std::optional<Time> Deadlines::next() const {
  if (expiries_.empty() && checkpoints_.empty()) return std::nullopt;
  if (expiries_.empty()) return checkpoints_.top().at;
  if (checkpoints_.empty()) return expiries_.top().at;
  return std::min(expiries_.top().at, checkpoints_.top().at);
}

size_t Deadlines::size() const { return leases_.size(); }
size_t Deadlines::heap_size() const { return expiries_.size() + checkpoints_.size(); }

void Deadlines::push_expiry(int64_t id, Lease& lease, Time at) {
  lease.expiry_serial = ++last_serial_;
  expiries_.push({.at = at, .id = id, .serial = lease.expiry_serial});
}

void Deadlines::push_checkpoint(int64_t id, Lease& lease, Time at) {
  lease.checkpoint_serial = ++last_serial_;
  checkpoints_.push({.at = at, .id = id, .serial = lease.checkpoint_serial});
}

// Entries of leases that were removed long before they were due: each rebuild halves a heap at least, so its cost is
// paid by the removals before it.
void Deadlines::drop_garbage() {
  const size_t limit = 2 * leases_.size() + kGarbageMin;
  if (expiries_.size() <= limit && checkpoints_.size() <= limit) return;
  expiries_ = {};
  checkpoints_ = {};
  for (auto& [id, lease] : leases_) {
    if (lease.expiry_serial != 0) push_expiry(id, lease, lease.deadline);
    if (lease.checkpoint_serial != 0) push_checkpoint(id, lease, lease.next_checkpoint);
  }
}

}  // namespace lease
