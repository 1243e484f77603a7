#include "picker.h"

#include <algorithm>
#include <utility>

#include "random.h"

namespace conclave::inline v1::internal {

namespace {
constexpr int kFailuresMax = 3;  // in a row
constexpr std::chrono::seconds kOutFor{10};
}  // namespace

// Guarded by the picker's mutex.
struct Picker::Load {
  std::int64_t pending = 0;
  int failures = 0;  // in a row
  TimePoint out_until{};
  std::int64_t credit = 0;  // of the weighted round robin
};

void Picker::update(std::shared_ptr<const InstanceList> list) {
  std::scoped_lock lock(mutex_);
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Load>> known;  // a restarted instance begins anew
  for (std::size_t i = 0; i < loads_.size(); ++i)
    known[{list_->instances[i].id, list_->instances[i].start}] = loads_[i];
  std::vector<std::shared_ptr<Load>> loads;
  loads.reserve(list->instances.size());
  for (const Instance& instance : list->instances) {
    const auto it = known.find({instance.id, instance.start});
    loads.push_back(it != known.end() ? it->second : std::make_shared<Load>());
  }
  list_ = std::move(list);
  loads_ = std::move(loads);
}

std::optional<Picker::Choice> Picker::pick(const std::vector<std::string>& exclude, TimePoint now) {
  std::scoped_lock lock(mutex_);
  std::vector<std::size_t> candidates;
  std::vector<std::size_t> out;  // better one of these than nobody
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    const Instance& instance = list_->instances[i];
    if (!instance.usable() || std::ranges::find(exclude, instance.id) != exclude.end()) continue;
    (loads_[i]->out_until > now ? out : candidates).push_back(i);
  }
  if (candidates.empty()) candidates = std::move(out);
  if (candidates.empty()) return std::nullopt;
  const std::size_t chosen = choose(candidates);
  ++loads_[chosen]->pending;
  return Choice{list_, chosen, loads_[chosen]};
}

std::size_t Picker::choose(const std::vector<std::size_t>& candidates) {
  switch (balancer_) {
    case Balancer::kRandom:
      return random(candidates);
    case Balancer::kLeastPending:
      return round_robin(least_pending(candidates));
    case Balancer::kRoundRobin:
      break;
  }
  return round_robin(candidates);
}

// Weighted and smooth: each gains its weight, the richest is chosen and pays for all. Weights 2, 1, 1 give a b c a.
std::size_t Picker::round_robin(const std::vector<std::size_t>& candidates) {
  std::int64_t total = 0;
  std::size_t best = candidates.front();
  for (const std::size_t i : candidates) {
    total += weight(i);
    loads_[i]->credit += weight(i);
    if (loads_[i]->credit > loads_[best]->credit) best = i;
  }
  loads_[best]->credit -= total;
  return best;
}

std::size_t Picker::random(const std::vector<std::size_t>& candidates) const {
  std::int64_t total = 0;
  for (const std::size_t i : candidates) total += weight(i);
  auto ticket = static_cast<std::int64_t>(random_below(static_cast<std::uint64_t>(total)));
  for (const std::size_t i : candidates) {
    ticket -= weight(i);
    if (ticket < 0) return i;
  }
  return candidates.back();
}

// Those with the fewest calls for their weight, the one to be made included.
std::vector<std::size_t> Picker::least_pending(const std::vector<std::size_t>& candidates) const {
  std::vector<std::size_t> best;
  for (const std::size_t i : candidates) {
    if (!best.empty()) {
      const std::size_t b = best.front();
      const std::int64_t mine = (loads_[i]->pending + 1) * weight(b);
      const std::int64_t theirs = (loads_[b]->pending + 1) * weight(i);
      if (mine > theirs) continue;
      if (mine < theirs) best.clear();
    }
    best.push_back(i);
  }
  return best;
}

void Picker::failed(const Choice& choice, TimePoint now) {
  std::scoped_lock lock(mutex_);
  if (++choice.load->failures < kFailuresMax) return;
  const auto out = std::ranges::count_if(loads_, [now](const auto& load) { return load->out_until > now; });
  if (static_cast<std::size_t>(out + 1) * 2 > loads_.size()) return;
  choice.load->out_until = now + kOutFor;
  choice.load->failures = 0;
}

void Picker::released(const Choice& choice, bool had_failed) {
  std::scoped_lock lock(mutex_);
  --choice.load->pending;
  if (!had_failed) choice.load->failures = 0;
}

}  // namespace conclave::inline v1::internal
