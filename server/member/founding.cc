#include "member/founding.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "api/rpc.pb.h"
#include "base/check.h"

namespace member {
namespace {

// The first eight bytes of the SHA-1, big end first: etcd's way to make an id.
uint64_t id_of(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) == 1, "sha1");
  uint64_t id = 0;
  for (int i = 0; i < 8; ++i) id = id << 8 | digest[static_cast<size_t>(i)];
  return id;
}

uint64_t member_id_of(std::vector<std::string> urls, const std::string& token) {
  std::sort(urls.begin(), urls.end());
  std::string text;
  for (const std::string& url : urls) text += url;
  return id_of(text + token);
}

uint64_t cluster_id_of(std::vector<uint64_t> members) {
  std::sort(members.begin(), members.end());
  std::string text;
  for (const uint64_t id : members) {
    for (int shift = 56; shift >= 0; shift -= 8) text.push_back(static_cast<char>(id >> shift & 0xff));
  }
  return id_of(text);
}

bool same_urls(std::vector<std::string> a, std::vector<std::string> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

std::string joined(const std::vector<std::string>& urls) {
  std::string text;
  for (const std::string& url : urls) text += (text.empty() ? "" : ",") + url;
  return text;
}

Founding found_new(const Options& options) {
  std::vector<Options::InitialMember> initial = options.initial_cluster;
  if (initial.empty()) initial.push_back({options.name, options.peer_urls});
  Founding founding;
  std::vector<uint64_t> ids;
  for (const auto& from : initial) {
    apply::Member& member = founding.members.emplace_back();
    member.id = member_id_of(from.peer_urls, options.cluster_token);
    member.peer_urls = from.peer_urls;
    ids.push_back(member.id);
    if (from.name == options.name) founding.identity.member_id = member.id;
  }
  founding.identity.cluster_id = cluster_id_of(ids);
  return founding;
}

Result<Founding> found_existing(const Options& options, const AskCluster& ask) {
  std::vector<std::string> others;
  for (const auto& member : options.initial_cluster) {
    if (member.name != options.name) others.insert(others.end(), member.peer_urls.begin(), member.peer_urls.end());
  }
  if (others.empty() || !ask) {
    return ::fail(Code::kInvalidArgument,
                  "--initial-cluster-state=existing: --initial-cluster names no other member to ask for the cluster");
  }
  TRY_ASSIGN(const Bytes answer, ask(others));
  etcdserverpb::MemberListResponse list;
  if (!list.ParseFromString(answer) || list.header().cluster_id() == 0) {
    return ::fail(Code::kUnavailable, "the cluster at " + joined(others) + " does not say who its members are");
  }
  Founding founding;
  founding.joins = true;
  founding.identity.cluster_id = list.header().cluster_id();
  for (const auto& from : list.members()) {
    const apply::Member& member = founding.members.emplace_back(apply::from_message(from));
    if (same_urls(member.peer_urls, options.peer_urls)) founding.identity.member_id = member.id;
  }
  if (founding.identity.member_id == 0) {
    return ::fail(Code::kFailedPrecondition,
                  "the cluster has no member with the peer URLs " + joined(options.peer_urls) +
                      ". Add it first (`member add`), with exactly these URLs, then start it");
  }
  return founding;
}

}  // namespace

wal::Identity identity_of(const Options& options) { return found_new(options).identity; }

Result<Founding> found(const Options& options, const AskCluster& ask) {
  if (options.join_existing) return found_existing(options, ask);
  Founding founding = found_new(options);
  if (founding.identity.member_id == 0) {
    return ::fail(Code::kInvalidArgument, "--initial-cluster has no member with this one's --name " + options.name);
  }
  return founding;
}

Bytes describe(uint64_t cluster_id, const std::vector<apply::Member>& members) {
  etcdserverpb::MemberListResponse list;
  list.mutable_header()->set_cluster_id(cluster_id);
  for (const apply::Member& member : members) *list.add_members() = apply::to_message(member);
  return list.SerializeAsString();
}

std::string hex_text(uint64_t number) {
  std::array<char, 17> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number, 16);
  CHECK(error == std::errc());
  return {text.data(), end};
}

std::string other_folder(uint64_t member_id) {
  return "member " + hex_text(member_id) +
         " has already been bootstrapped: it took part in the cluster with another data folder, and what it promised "
         "is in that one. Start it with that folder, or remove the member, add it again and start it with "
         "--initial-cluster-state=existing and an empty --data-dir";
}

raft::Membership membership_of(const std::vector<apply::Member>& members) {
  raft::Membership membership;
  for (const apply::Member& member : members) {
    (member.is_learner ? membership.learners : membership.voters).push_back(member.id);
  }
  std::sort(membership.voters.begin(), membership.voters.end());
  std::sort(membership.learners.begin(), membership.learners.end());
  return membership;
}

}  // namespace member
