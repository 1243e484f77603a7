#include "sim/cluster_membership.h"

#include <algorithm>

namespace sim {
namespace {

using Change = conclavepb::MembershipChange;

constexpr std::chrono::seconds kPatience{15};
constexpr std::chrono::milliseconds kLookEvery{200};
constexpr size_t kVotersMin = 3;

}  // namespace

Membership::Membership(Cluster& cluster, Invariants& invariants, size_t members)
    : cluster_(cluster), invariants_(invariants) {
  for (size_t node = members; node < cluster.size(); ++node) {
    spare_.insert(node);
    cluster.node(node).wanted = false;
  }
}

std::optional<size_t> Membership::some_member() {
  const size_t node = cluster_.random.below(cluster_.size());
  return cluster_.is_up(node) && !spare_.contains(node) ? std::optional(node) : std::nullopt;
}

// A machine keeps its URL for life, a member its id.
const apply::Member* Membership::find(const View& view, size_t node) const {
  const auto found = std::find_if(view.begin(), view.end(), [&](const apply::Member& member) {
    return member.peer_urls == cluster_.node(node).options.peer_urls;
  });
  return found == view.end() ? nullptr : &*found;
}

void Membership::act() {
  look();
  if (!view_) return;
  const View view = *view_;
  follow(view);
  if (stopped_ || cluster_.clock.monotonic() < asked_until_ || cluster_.random.below(10) > 0) return;
  change(view);
}

void Membership::look() {
  const auto node = some_member();
  if (!node || cluster_.clock.monotonic() < looked_ + kLookEvery) return;
  looked_ = cluster_.clock.monotonic();
  cluster_.member(*node).linearize([this, node = *node, called = looked_](const Status& may) {
    // An answer that took long may be older than what is known from elsewhere.
    if (!may || !cluster_.node(node).is_open() || called < known_at_) return;
    view_ = cluster_.member(node).members();
    known_at_ = cluster_.clock.monotonic();
  });
}

void Membership::follow(const View& view) {
  for (size_t node = 0; node < cluster_.size(); ++node) {
    const bool is_member = find(view, node) != nullptr;
    if (is_member && spare_.contains(node)) join(node, view);
    if (!is_member && !spare_.contains(node)) put_aside(node);
  }
}

void Membership::join(size_t node, const View& view) {
  Cluster::Node& machine = cluster_.node(node);
  spare_.erase(node);
  machine.options.join_existing = true;
  machine.options.initial_cluster.clear();
  for (const apply::Member& member : view) {
    if (member.peer_urls == machine.options.peer_urls) continue;
    machine.options.initial_cluster.push_back({member.name, member.peer_urls});
  }
  machine.options.initial_cluster.push_back({machine.options.name, machine.options.peer_urls});
  machine.wanted = true;
  machine.joining = true;
  machine.start_at = cluster_.clock.monotonic();
}

// It was removed, for good: the id never comes back, and nothing of its disk counts any more.
void Membership::put_aside(size_t node) {
  Cluster::Node& machine = cluster_.node(node);
  if (machine.is_open()) {
    const uint64_t id = cluster_.member(node).member_id();
    const bool knows = std::none_of(view_->begin(), view_->end(), [id](const auto& member) { return member.id == id; });
    if (!knows || cluster_.random.below(4) > 0) return;  // it may go on for a while, and must do no harm
    if (machine.paused) cluster_.resume(node);
    cluster_.kill(node);
  }
  machine.wanted = false;
  machine.joining = false;
  cluster_.wipe(node);
  invariants_.is_another(node);
  spare_.insert(node);
}

void Membership::change(const View& view) {
  const auto through = some_member();
  if (!through) return;
  SeededRandom& random = cluster_.random;
  const size_t node = random.below(cluster_.size());
  const apply::Member* member = find(view, node);
  Change change;
  switch (random.below(4)) {
    case 0: {
      const auto leader = cluster_.leader();
      if (!leader || member == nullptr || member->is_learner) return;
      ++transfers_;
      return cluster_.member(*leader).transfer_leadership(member->id, [](const Status&) {});
    }
    case 1:
      if (member != nullptr || !spare_.contains(node)) return;
      change.set_kind(Change::ADD);
      change.set_id(random.next() | 1);
      change.set_is_learner(true);
      for (const std::string& url : cluster_.node(node).options.peer_urls) change.add_peer_urls(url);
      break;
    case 2:
      if (member == nullptr || !member->is_learner) return;
      change.set_kind(Change::PROMOTE);
      change.set_id(member->id);
      break;
    default: {
      const auto voters = std::count_if(view.begin(), view.end(), [](const auto& one) { return !one.is_learner; });
      if (member == nullptr || (!member->is_learner && static_cast<size_t>(voters) <= kVotersMin)) return;
      change.set_kind(Change::REMOVE);
      change.set_id(member->id);
    }
  }
  ask(*through, std::move(change));
}

void Membership::ask(size_t through, Change change) {
  asked_until_ = cluster_.clock.monotonic() + kPatience;
  cluster_.member(through).change_membership(std::move(change), [this](const Result<apply::Message>& done) {
    asked_until_ = {};
    changes_ += done.has_value();
    view_.reset();
    known_at_ = cluster_.clock.monotonic();
  });
}

bool Membership::is_settled() const {
  if (!view_ || cluster_.clock.monotonic() < asked_until_) return false;
  for (size_t node = 0; node < cluster_.size(); ++node) {
    const bool is_member = find(*view_, node) != nullptr;
    if (is_member == spare_.contains(node) || (is_member && !cluster_.is_up(node))) return false;
  }
  return true;
}

}  // namespace sim
