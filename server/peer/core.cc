#include "peer/core.h"

#include <algorithm>

namespace peer {

void Roster::set(std::map<uint64_t, uint64_t> peers, std::set<uint64_t> removed) {
  MutexLock lock(mutex_);
  peers_ = std::move(peers);
  removed_ = std::move(removed);
}

Roster::Standing Roster::of(uint64_t id, uint64_t folder) const {
  MutexLock lock(mutex_);
  if (removed_.count(id) > 0) return Standing::kRemoved;
  const auto peer = peers_.find(id);
  if (peer == peers_.end()) return Standing::kStranger;
  const bool differs = folder != 0 && peer->second != 0 && folder != peer->second;
  return differs ? Standing::kOtherFolder : Standing::kPeer;
}

bool Roster::admit(uint64_t id) {
  MutexLock lock(mutex_);
  if (removed_.count(id) > 0) return false;
  peers_.emplace(id, 0);
  return true;
}

void Roster::dismiss(uint64_t id) {
  MutexLock lock(mutex_);
  peers_.erase(id);
}

bool LogLimit::due(const std::string& key, TimePoint now) {
  const auto found = last_.find(key);
  if (found != last_.end() && now - found->second < kLogPeriod) return false;
  if (found == last_.end() && last_.size() >= kLogKeysMax) last_.clear();
  last_[key] = now;
  return true;
}

Timing::Timing(Milliseconds election_timeout) {
  const Milliseconds base = std::max(election_timeout, kElectionTimeoutMin);
  tick = std::clamp(base / 8, Milliseconds(5), Milliseconds(250));
  dial = std::clamp(base, Milliseconds(500), Milliseconds(5000));
  control_ping = base / 4;
  control_dead = base;
  bulk_ping = base;
  bulk_dead = 3 * base;
}

Core::Core(Options the_options, metrics::Registry& metrics)
    : options(std::move(the_options)),
      timing(options.election_timeout),
      meters(metrics, options.member_id),
      jitter(static_cast<std::minstd_rand::result_type>(
          options.member_id ^ static_cast<uint64_t>(SteadyClock::now().time_since_epoch().count()))) {}

const char* lane_name(Network::Lane lane) {
  switch (lane) {
    case Network::Lane::kControl:
      return "control";
    case Network::Lane::kAppend:
      return "append";
    case Network::Lane::kForward:
      return "forward";
    case Network::Lane::kSnapshot:
      return "snapshot";
  }
  return "unknown";
}

}  // namespace peer
