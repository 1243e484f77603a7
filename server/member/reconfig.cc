#include "member/reconfig.h"

#include <algorithm>

namespace member {
namespace {

using conclavepb::MembershipChange;

size_t majority(size_t voters) { return voters / 2 + 1; }

const apply::Member* find(const ReconfigView& view, uint64_t id) {
  for (const apply::Member& member : view.members) {
    if (member.id == id) return &member;
  }
  return nullptr;
}

const raft::MemberProgress* progress_of(const ReconfigView& view, uint64_t id) {
  for (const raft::MemberProgress& progress : view.progress) {
    if (progress.id == id) return &progress;
  }
  return nullptr;
}

bool is_active(const ReconfigView& view, uint64_t id) {
  const auto* progress = progress_of(view, id);
  return id == view.self || (progress != nullptr && progress->recently_active);
}

struct Voters {
  size_t all = 0;
  size_t started = 0;  // a member that has a name has told it itself
  size_t active = 0;
};

Voters voters_without(const ReconfigView& view, uint64_t except) {
  Voters voters;
  for (const apply::Member& member : view.members) {
    if (member.is_learner || member.id == except) continue;
    ++voters.all;
    if (!member.name.empty()) ++voters.started;
    if (is_active(view, member.id)) ++voters.active;
  }
  return voters;
}

// Also refused when applied; asked for first, as in etcd's answers, whatever else is wrong.
bool has_url_of(const ReconfigView& view, const MembershipChange& change) {
  for (const apply::Member& member : view.members) {
    const auto& urls = change.peer_urls();
    if (std::find_first_of(urls.begin(), urls.end(), member.peer_urls.begin(), member.peer_urls.end()) != urls.end()) {
      return true;
    }
  }
  return false;
}

Status check_add(const ReconfigView& view, const MembershipChange& change) {
  if (change.id() == raft::kNobody) return ::fail(Code::kInvalidArgument, kErrorNoMemberId);
  if (has_url_of(view, change)) return ::fail(Code::kFailedPrecondition, apply::kErrorPeerUrlExists);
  if (change.is_learner()) {
    const auto learners =
        std::count_if(view.members.begin(), view.members.end(), [](const auto& member) { return member.is_learner; });
    if (static_cast<size_t>(learners) >= kLearnersMax) return ::fail(Code::kFailedPrecondition, kErrorTooManyLearners);
    return {};
  }
  if (!view.strict) return {};
  const Voters now = voters_without(view, raft::kNobody);
  // The first member of a cluster that has not said its name yet may still add others.
  if (!(now.all == 1 && now.started == 1) && now.started < majority(now.all + 1)) {
    return ::fail(Code::kFailedPrecondition, kErrorNotEnoughStarted);
  }
  // Nobody knows yet whether the new one will be up.
  if (now.all > 1 && now.active < majority(now.all + 1)) return ::fail(Code::kUnavailable, kErrorUnhealthy);
  return {};
}

Status check_remove(const ReconfigView& view, const MembershipChange& change) {
  const apply::Member* leaving = find(view, change.id());
  if (!view.strict || leaving == nullptr || leaving->is_learner) return {};
  const Voters left = voters_without(view, change.id());
  if (left.all == 0) return {};  // refused when applied: the last one
  // One that never started, or is down, may always go: that can only help.
  if (left.started < majority(left.all)) return ::fail(Code::kFailedPrecondition, kErrorNotEnoughStarted);
  if (!is_active(view, change.id())) return {};
  if (left.active < majority(left.all)) return ::fail(Code::kUnavailable, kErrorUnhealthy);
  return {};
}

Status check_promote(const ReconfigView& view, const MembershipChange& change) {
  const apply::Member* learner = find(view, change.id());
  if (learner == nullptr || !learner->is_learner) return {};  // refused when applied
  const auto* progress = progress_of(view, change.id());
  if (progress == nullptr ||
      static_cast<double>(progress->match) < kLearnerInSync * static_cast<double>(view.last_index)) {
    return ::fail(Code::kFailedPrecondition, kErrorLearnerNotReady);
  }
  if (!view.strict) return {};
  const Voters now = voters_without(view, raft::kNobody);
  const bool started = !learner->name.empty();
  if (now.started + (started ? 1 : 0) < majority(now.all + 1)) {
    return ::fail(Code::kFailedPrecondition, kErrorNotEnoughStarted);
  }
  return {};
}

}  // namespace

Status check_reconfig(const MembershipChange& change, const ReconfigView& view) {
  switch (change.kind()) {
    case MembershipChange::ADD:
      return check_add(view, change);
    case MembershipChange::REMOVE:
      return check_remove(view, change);
    case MembershipChange::PROMOTE:
      return check_promote(view, change);
    default:
      return {};
  }
}

}  // namespace member
