#include "lease/table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace lease {

void Table::load(const std::vector<store::LeaseRow>& rows) {
  MutexLock lock(mutex_);
  leases_.clear();
  undo_.clear();
  leases_.reserve(rows.size());
  for (const store::LeaseRow& row : rows) leases_[row.id] = {.ttl = row.ttl, .remaining = row.remaining, .keys = {}};
}

// The order of the checks is that of etcd's lessor.
Status Table::grant(int64_t id, int64_t ttl) {
  if (id == 0) return fail(Code::kNotFound, kErrorNotFound);
  if (ttl > kTtlMaxSeconds) return fail(Code::kOutOfRange, kErrorTtlTooLarge);
  MutexLock lock(mutex_);
  auto [position, is_new] = leases_.try_emplace(id);
  if (!is_new) return fail(Code::kFailedPrecondition, kErrorExists);
  position->second.ttl = ttl;
  undo_.push_back({.kind = Undo::Kind::kGrant, .id = id, .remaining = 0, .key = {}, .lease = {}});
  return {};
}

Result<std::vector<Bytes>> Table::revoke(int64_t id) {
  MutexLock lock(mutex_);
  auto position = leases_.find(id);
  if (position == leases_.end()) return fail(Code::kNotFound, kErrorNotFound);
  std::vector<Bytes> keys(position->second.keys.begin(), position->second.keys.end());
  undo_.push_back(
      {.kind = Undo::Kind::kRevoke, .id = id, .remaining = 0, .key = {}, .lease = std::move(position->second)});
  leases_.erase(position);
  return keys;
}

Status Table::checkpoint(int64_t id, int64_t remaining) {
  MutexLock lock(mutex_);
  auto position = leases_.find(id);
  if (position == leases_.end()) return fail(Code::kNotFound, kErrorNotFound);
  int64_t before = std::exchange(position->second.remaining, remaining);
  undo_.push_back({.kind = Undo::Kind::kCheckpoint, .id = id, .remaining = before, .key = {}, .lease = {}});
  return {};
}

void Table::attach(int64_t id, std::string_view key) {
  MutexLock lock(mutex_);
  auto position = leases_.find(id);
  CHECK(position != leases_.end(), "attach to a lease that does not exist:", id);
  if (!position->second.keys.emplace(key).second) return;
  undo_.push_back({.kind = Undo::Kind::kAttach, .id = id, .remaining = 0, .key = Bytes(key), .lease = {}});
}

void Table::detach(int64_t id, std::string_view key) {
  MutexLock lock(mutex_);
  auto position = leases_.find(id);
  if (position == leases_.end()) return;
  auto held = position->second.keys.find(key);
  if (held == position->second.keys.end()) return;
  undo_.push_back({.kind = Undo::Kind::kDetach, .id = id, .remaining = 0, .key = *held, .lease = {}});
  position->second.keys.erase(held);
}

void Table::commit() {
  MutexLock lock(mutex_);
  undo_.clear();
}

void Table::undo() {
  MutexLock lock(mutex_);
  for (; !undo_.empty(); undo_.pop_back()) {
    Undo& change = undo_.back();
    switch (change.kind) {
      case Undo::Kind::kGrant:
        leases_.erase(change.id);
        break;
      case Undo::Kind::kRevoke:
        leases_[change.id] = std::move(change.lease);
        break;
      case Undo::Kind::kCheckpoint:
        leases_.at(change.id).remaining = change.remaining;
        break;
      case Undo::Kind::kAttach:
        leases_.at(change.id).keys.erase(change.key);
        break;
      case Undo::Kind::kDetach:
        leases_.at(change.id).keys.insert(std::move(change.key));
        break;
    }
  }
}

std::optional<Info> Table::find(int64_t id) const {
  MutexLock lock(mutex_);
  auto position = leases_.find(id);
  if (position == leases_.end()) return std::nullopt;
  return Info{.id = id, .ttl = position->second.ttl, .remaining = position->second.remaining};
}

std::vector<Bytes> Table::keys(int64_t id) const {
  MutexLock lock(mutex_);
  auto position = leases_.find(id);
  if (position == leases_.end()) return {};
  return {position->second.keys.begin(), position->second.keys.end()};
}

size_t Table::key_count(int64_t id) const {
  MutexLock lock(mutex_);
  auto position = leases_.find(id);
  return position == leases_.end() ? 0 : position->second.keys.size();
}

bool Table::holds(int64_t id, std::string_view key) const {
  MutexLock lock(mutex_);
  auto position = leases_.find(id);
  return position != leases_.end() && position->second.keys.contains(key);
}

std::vector<Info> Table::list() const {
  std::vector<Info> all;
  {
    MutexLock lock(mutex_);
    all.reserve(leases_.size());
    for (const auto& [id, lease] : leases_) all.push_back({.id = id, .ttl = lease.ttl, .remaining = lease.remaining});
  }
  std::sort(all.begin(), all.end(), [](const Info& a, const Info& b) { return a.id < b.id; });
  return all;
}

size_t Table::size() const {
  MutexLock lock(mutex_);
  return leases_.size();
}

}  // namespace lease
