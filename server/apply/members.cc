#include "apply/members.h"

#include <algorithm>

namespace apply {

using conclavepb::MembershipChange;

etcdserverpb::Member to_message(const Member& member) {
  etcdserverpb::Member to;
  to.set_id(member.id);
  to.set_name(member.name);
  for (const std::string& url : member.peer_urls) to.add_peerurls(url);
  for (const std::string& url : member.client_urls) to.add_clienturls(url);
  to.set_islearner(member.is_learner);
  return to;
}

Member from_message(const etcdserverpb::Member& message) {
  return {.id = message.id(),
          .name = message.name(),
          .peer_urls = {message.peerurls().begin(), message.peerurls().end()},
          .client_urls = {message.clienturls().begin(), message.clienturls().end()},
          .is_learner = message.islearner()};
}

Result<Members> Members::parse(const Bytes& stored) {
  conclavepb::StoredMembers list;
  if (!list.ParseFromString(stored)) return fail(Code::kDataLoss, "the stored members cannot be read");
  Members members;
  for (int i = 0; i < list.members_size(); ++i) {
    Member& member = members.members_[list.members(i).id()] = from_message(list.members(i));
    if (i < list.folder_ids_size()) member.folder_id = list.folder_ids(i);
  }
  members.removed_.insert(list.removed().begin(), list.removed().end());
  return members;
}

Bytes Members::serialize() const {
  conclavepb::StoredMembers list;
  for (const auto& [id, member] : members_) {
    *list.add_members() = to_message(member);
    list.add_folder_ids(member.folder_id);
  }
  for (const uint64_t id : removed_) list.add_removed(id);
  return list.SerializeAsString();
}

Status Members::add(Member member) {
  if (removed_.contains(member.id)) return fail(Code::kFailedPrecondition, kErrorMemberRemoved);
  if (members_.contains(member.id)) return fail(Code::kFailedPrecondition, kErrorMemberExists);
  TRY(check_peer_urls(member.id, member.peer_urls));
  members_.emplace(member.id, std::move(member));
  return {};
}

Status Members::set_attributes(const conclavepb::MemberAttributes& attributes) {
  auto position = members_.find(attributes.id());
  if (position == members_.end()) return fail(Code::kNotFound, kErrorMemberNotFound);
  position->second.name = attributes.name();
  position->second.client_urls.assign(attributes.client_urls().begin(), attributes.client_urls().end());
  position->second.folder_id = attributes.folder_id();
  return {};
}

Status Members::change(const MembershipChange& change) {
  std::vector<std::string> peer_urls(change.peer_urls().begin(), change.peer_urls().end());
  if (change.kind() == MembershipChange::ADD) {
    return add({.id = change.id(),
                .name = {},
                .peer_urls = std::move(peer_urls),
                .client_urls = {},
                .is_learner = change.is_learner()});
  }
  auto position = members_.find(change.id());
  if (position == members_.end()) return fail(Code::kNotFound, kErrorMemberNotFound);
  switch (change.kind()) {
    case MembershipChange::REMOVE:
      return remove(change.id());
    case MembershipChange::UPDATE:
      TRY(check_peer_urls(change.id(), peer_urls));
      position->second.peer_urls = std::move(peer_urls);
      return {};
    case MembershipChange::PROMOTE:
      if (!position->second.is_learner) return fail(Code::kFailedPrecondition, kErrorMemberNotLearner);
      position->second.is_learner = false;
      return {};
    default:
      return fail(Code::kInvalidArgument, "etcdserver: unknown kind of membership change");
  }
}

// A cluster without voters could never decide anything again.
Status Members::remove(uint64_t id) {
  const bool others = std::any_of(members_.begin(), members_.end(),
                                  [id](const auto& entry) { return entry.first != id && !entry.second.is_learner; });
  if (!others) return fail(Code::kFailedPrecondition, kErrorLastMember);
  members_.erase(id);
  removed_.insert(id);
  return {};
}

Status Members::check_peer_urls(uint64_t id, const std::vector<std::string>& urls) const {
  for (const auto& [other, member] : members_) {
    if (other == id) continue;
    for (const std::string& url : urls) {
      if (std::find(member.peer_urls.begin(), member.peer_urls.end(), url) != member.peer_urls.end()) {
        return fail(Code::kFailedPrecondition, kErrorPeerUrlExists);
      }
    }
  }
  return {};
}

std::vector<uint64_t> Members::removed() const { return {removed_.begin(), removed_.end()}; }

std::vector<Member> Members::list() const {
  std::vector<Member> all;
  all.reserve(members_.size());
  for (const auto& [id, member] : members_) all.push_back(member);
  return all;
}

}  // namespace apply
