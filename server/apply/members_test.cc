#include "apply/members.h"

#include <gtest/gtest.h>

namespace apply {
namespace {

using conclavepb::MembershipChange;

MembershipChange change(MembershipChange::Kind kind, uint64_t id, const std::string& url = "", bool learner = false) {
  MembershipChange made;
  made.set_kind(kind);
  made.set_id(id);
  if (!url.empty()) made.add_peer_urls(url);
  made.set_is_learner(learner);
  return made;
}

TEST(Members, AttributesComeLater) {
  Members members;
  ASSERT_TRUE(members.add({.id = 7, .name = {}, .peer_urls = {"http://a:1"}, .client_urls = {}}));
  conclavepb::MemberAttributes attributes;
  attributes.set_id(7);
  attributes.set_name("one");
  attributes.add_client_urls("http://a:2");
  EXPECT_TRUE(members.set_attributes(attributes));
  attributes.clear_client_urls();
  attributes.add_client_urls("http://b:2");
  EXPECT_TRUE(members.set_attributes(attributes)) << "started again elsewhere";
  const Member expected{.id = 7, .name = "one", .peer_urls = {"http://a:1"}, .client_urls = {"http://b:2"}};
  EXPECT_EQ(members.list(), std::vector<Member>{expected});
  attributes.set_id(8);
  EXPECT_EQ(members.set_attributes(attributes).error(), (Error{Code::kNotFound, "etcdserver: member not found"}));
  auto again = Members::parse(members.serialize());
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, members);
  EXPECT_EQ(Members::parse("\xff").error().code, Code::kDataLoss);
}

TEST(Members, Changes) {
  Members members;
  EXPECT_TRUE(members.change(change(MembershipChange::ADD, 1, "http://a")));
  EXPECT_EQ(members.change(change(MembershipChange::ADD, 1, "http://b")).error().message, kErrorMemberExists);
  EXPECT_EQ(members.change(change(MembershipChange::ADD, 2, "http://a")).error().message, kErrorPeerUrlExists);
  EXPECT_TRUE(members.change(change(MembershipChange::ADD, 2, "http://b", true)));
  EXPECT_EQ(members.change(change(MembershipChange::REMOVE, 1)).error().message, kErrorLastMember)
      << "a learner cannot go on alone";
  EXPECT_EQ(members.change(change(MembershipChange::PROMOTE, 1)).error().message, kErrorMemberNotLearner);
  EXPECT_TRUE(members.change(change(MembershipChange::PROMOTE, 2)));
  EXPECT_EQ(members.change(change(MembershipChange::UPDATE, 2, "http://a")).error().message, kErrorPeerUrlExists);
  EXPECT_TRUE(members.change(change(MembershipChange::UPDATE, 2, "http://c")));
  EXPECT_TRUE(members.change(change(MembershipChange::REMOVE, 1)));
  EXPECT_EQ(members.change(change(MembershipChange::REMOVE, 1)).error().code, Code::kNotFound);
  EXPECT_EQ(members.removed(), std::vector<uint64_t>{1});
  EXPECT_EQ(members.change(change(MembershipChange::ADD, 1, "http://d")).error().message, kErrorMemberRemoved);
  EXPECT_EQ(Members::parse(members.serialize()).value().removed(), std::vector<uint64_t>{1});
  EXPECT_EQ(members.change(change(MembershipChange::REMOVE, 2)).error().message, kErrorLastMember);
  EXPECT_EQ(members.change(change(static_cast<MembershipChange::Kind>(9), 2)).error().code, Code::kInvalidArgument);
  const Member expected{.id = 2, .name = {}, .peer_urls = {"http://c"}, .client_urls = {}};
  EXPECT_EQ(members.list(), std::vector<Member>{expected});
}

}  // namespace
}  // namespace apply
