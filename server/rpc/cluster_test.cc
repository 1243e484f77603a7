#include <gmock/gmock.h>

#include "rpc/fake_member_test.h"

namespace rpc {
namespace {

using conclavepb::MembershipChange;
using etcdserverpb::MemberAddRequest;
using etcdserverpb::MemberListRequest;
using etcdserverpb::MemberPromoteRequest;
using etcdserverpb::MemberRemoveRequest;
using etcdserverpb::MemberUpdateRequest;
using testing::HasSubstr;

constexpr const char* kHeader = "header { cluster_id: 5 member_id: 1 raft_term: 7 } ";
constexpr const char* kMembers =
    "members { ID: 1 name: \"a\" peerURLs: \"http://a:2380\" } "
    "members { ID: 2 name: \"b\" peerURLs: \"http://b:2380\" } "
    "members { ID: 3 name: \"c\" peerURLs: \"http://c:2380\" }";

class Cluster : public Services {
 protected:
  static MemberAddRequest add_request(const std::vector<std::string>& urls, bool learner = false) {
    MemberAddRequest request;
    for (const std::string& url : urls) request.add_peerurls(url);
    request.set_islearner(learner);
    return request;
  }
  // Of a change that is well-formed.
  template <class Request>
  MembershipChange proposed(const std::string& path, const Request& request) {
    const size_t before = member.changes.size();
    const auto caught = call(path, request);
    EXPECT_FALSE(caught->done) << caught->text;
    EXPECT_EQ(member.changes.size(), before + 1);
    return member.changes.empty() ? MembershipChange() : member.changes.back().first;
  }
};

TEST_F(Cluster, AddProposesAnIdOfItsOwnAndAnswersWithTheMembersOfThen) {
  const auto caught = call("/v3/cluster/member/add", add_request({"http://e:2", "http://d:1"}, true));
  ASSERT_EQ(member.changes.size(), 1u);
  const MembershipChange& change = member.changes[0].first;
  EXPECT_EQ(change.kind(), MembershipChange::ADD);
  EXPECT_NE(change.id(), 0u);
  EXPECT_TRUE(change.is_learner());
  ASSERT_EQ(change.peer_urls_size(), 2);
  EXPECT_EQ(change.peer_urls(0), "http://d:1") << "sorted";
  EXPECT_FALSE(caught->done) << "it is not applied yet";
  member.known.resize(1);
  member.changes[0].second(apply::Message{});
  const uint64_t first_id = change.id();
  const std::string id = std::to_string(first_id);
  EXPECT_EQ(caught->text, std::string(kHeader) + "member { ID: " + id +
                              " peerURLs: \"http://d:1\" peerURLs: \"http://e:2\" isLearner: true } "
                              "members { ID: 1 name: \"a\" peerURLs: \"http://a:2380\" }");
  EXPECT_NE(proposed("/v3/cluster/member/add", add_request({"http://e:2", "http://d:1"}, true)).id(), first_id)
      << "the same URLs again are another member";
}

TEST_F(Cluster, AddRefusesUrlsThatNobodyCanReach) {
  const auto refused = [&](const std::vector<std::string>& urls) {
    return refusal("/v3/cluster/member/add", add_request(urls));
  };
  const Error bad{Code::kInvalidArgument, "etcdserver: given member URLs are invalid"};
  for (const char* url : {"nonsense", "", "http://a", "http://a:1/", "ftp://a:1", "http://:1"}) {
    EXPECT_EQ(refused({url}), bad) << url;
    EXPECT_EQ(refused({"http://good:1", url}), bad) << url;
  }
  EXPECT_EQ(refused({}), bad);
  EXPECT_EQ(refused(std::vector<std::string>(65, "http://a:1")), bad);
  EXPECT_THAT(refused({"https://a:1"}).message, HasSubstr("members talk over http only"));
  EXPECT_TRUE(member.changes.empty());
}

TEST_F(Cluster, RemoveUpdateAndPromoteAnswerWithTheMembers) {
  MemberRemoveRequest remove;
  remove.set_id(2);
  const auto removed = call("/v3/cluster/member/remove", remove);
  ASSERT_EQ(member.changes.size(), 1u);
  EXPECT_EQ(member.changes[0].first.ShortDebugString(), "kind: REMOVE id: 2");
  member.changes[0].second(apply::Message{});
  EXPECT_EQ(removed->text, std::string(kHeader) + kMembers);

  MemberUpdateRequest update;
  update.set_id(2);
  update.add_peerurls("http://x:2");
  update.add_peerurls("http://x:1");
  EXPECT_EQ(proposed("/v3/cluster/member/update", update).ShortDebugString(),
            "kind: UPDATE id: 2 peer_urls: \"http://x:1\" peer_urls: \"http://x:2\"");
  MemberPromoteRequest promote;
  promote.set_id(3);
  EXPECT_EQ(proposed("/v3/cluster/member/promote", promote).ShortDebugString(), "kind: PROMOTE id: 3");
}

TEST_F(Cluster, WhatTheLeaderRefusesComesBackAsItIs) {
  MemberPromoteRequest promote;
  promote.set_id(3);
  const auto caught = call("/v3/cluster/member/promote", promote);
  const Error error{Code::kFailedPrecondition,
                    "etcdserver: can only promote a learner member which is in sync with leader"};
  member.changes[0].second(::fail(error));
  EXPECT_EQ(caught->error, error);
}

TEST_F(Cluster, UpdateRefusesWrongUrlsOfMembersThatExist) {
  MemberUpdateRequest update;
  update.set_id(12345);
  update.add_peerurls("ftp//x");
  EXPECT_EQ(refusal("/v3/cluster/member/update", update), (Error{Code::kNotFound, "etcdserver: member not found"}));
  update.set_id(2);
  EXPECT_EQ(refusal("/v3/cluster/member/update", update).message, "etcdserver: given member URLs are invalid");
  EXPECT_TRUE(member.changes.empty());
}

TEST_F(Cluster, ListIsAtOnceUnlessLinearizable) {
  MemberListRequest request;
  EXPECT_EQ(call("/v3/cluster/member/list", request)->text, std::string(kHeader) + kMembers);
  request.set_linearizable(true);
  const auto caught = call("/v3/cluster/member/list", request);
  EXPECT_FALSE(caught->done);
  member.reads.front()({});
  EXPECT_EQ(caught->text, std::string(kHeader) + kMembers);
}

TEST_F(Cluster, ALearnerHasItsStatusAndReadsOfWhatIsAtHand) {
  member.now.is_learner = true;
  const Error refused{Code::kFailedPrecondition, "etcdserver: rpc not supported for learner"};
  EXPECT_EQ(refusal("/v3/cluster/member/list", MemberListRequest()), refused);
  EXPECT_EQ(refusal("/v3/cluster/member/remove", MemberRemoveRequest()), refused);
  EXPECT_EQ(refusal("/v3/maintenance/hashkv", etcdserverpb::HashKVRequest()), refused);
  EXPECT_EQ(refusal("/v3/kv/put", etcdserverpb::PutRequest()), refused) << "even before its shape is looked at";
  etcdserverpb::RangeRequest range;
  range.set_key("a");
  EXPECT_EQ(refusal("/v3/kv/range", range), refused);
  range.set_serializable(true);
  EXPECT_EQ(refusal("/v3/kv/range", range).code, Code::kOk);
  EXPECT_THAT(call("/v3/maintenance/status", etcdserverpb::StatusRequest())->text, HasSubstr("isLearner: true"));
  const auto opened = router.find_path("/v3/lease/keepalive")->stream->open({});
  ASSERT_FALSE(opened) << "streams, too";
  EXPECT_EQ(opened.error(), refused);
  member.now.is_learner = false;
  EXPECT_THAT(call("/v3/maintenance/status", etcdserverpb::StatusRequest())->text, Not(HasSubstr("isLearner")));
  EXPECT_EQ(refusal("/v3/cluster/member/list", MemberListRequest()).code, Code::kOk) << "it was promoted";
}

TEST_F(Cluster, OnlyTheLeaderMovesTheLeadershipAndToVotersOnly) {
  etcdserverpb::MoveLeaderRequest request;
  const Error bad{Code::kFailedPrecondition, "etcdserver: bad leader transferee"};
  EXPECT_EQ(refusal("/v3/maintenance/transfer-leadership", request), bad);
  request.set_targetid(9);
  EXPECT_EQ(refusal("/v3/maintenance/transfer-leadership", request), bad);
  request.set_targetid(3);
  member.known[2].is_learner = true;
  EXPECT_EQ(refusal("/v3/maintenance/transfer-leadership", request), bad);
  member.known[2].is_learner = false;
  member.now.raft.leader = 2;
  EXPECT_EQ(refusal("/v3/maintenance/transfer-leadership", request),
            (Error{Code::kFailedPrecondition, "etcdserver: not leader"}));
  member.now.raft.leader = 1;
  EXPECT_TRUE(member.transfers.empty());
  const auto moved = call("/v3/maintenance/transfer-leadership", request);
  const auto failed = call("/v3/maintenance/transfer-leadership", request);
  ASSERT_EQ(member.transfers.size(), 2u);
  EXPECT_EQ(member.transfers[0].first, 3u);
  EXPECT_FALSE(moved->done) << "the new leader is not known yet";
  member.transfers[0].second({});
  EXPECT_TRUE(moved->done);
  EXPECT_EQ(moved->text, "") << "not even a header";
  member.transfers[1].second(::fail(Code::kUnavailable, "etcdserver: request timed out"));
  EXPECT_EQ(failed->error->message, "etcdserver: request timed out");
}

}  // namespace
}  // namespace rpc
