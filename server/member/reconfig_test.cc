#include "member/reconfig.h"

#include <gtest/gtest.h>

namespace member {
namespace {

using conclavepb::MembershipChange;

struct Cluster {
  std::vector<apply::Member> members;
  std::vector<raft::MemberProgress> progress;
  bool strict = true;

  // 'a': started and active, 'd': started but down, 'n': never started; capital letters: learners.
  explicit Cluster(const std::string& kinds, uint64_t match = 100) {
    for (size_t i = 0; i < kinds.size(); ++i) {
      const uint64_t id = i + 1;
      const char kind = static_cast<char>(std::tolower(kinds[i]));
      const bool learner = kinds[i] != kind;
      members.push_back(
          {.id = id, .name = kind == 'n' ? "" : "m", .peer_urls = {}, .client_urls = {}, .is_learner = learner});
      progress.push_back({.id = id, .learner = learner, .match = match, .recently_active = kind == 'a'});
    }
  }
  std::string check(MembershipChange::Kind kind, uint64_t id, bool learner = false) const {
    MembershipChange change;
    change.set_kind(kind);
    change.set_id(id);
    change.set_is_learner(learner);
    const Status checked = check_reconfig(
        change, {.members = members, .progress = progress, .self = 1, .last_index = 100, .strict = strict});
    return checked ? "" : checked.error().message;
  }
  std::string add() const { return check(MembershipChange::ADD, 99); }
  std::string remove(uint64_t id) const { return check(MembershipChange::REMOVE, id); }
  std::string promote(uint64_t id) const { return check(MembershipChange::PROMOTE, id); }
};

TEST(Reconfig, AVoterIsAddedWhileThoseThatAreUpStayAQuorumWithoutIt) {
  EXPECT_EQ(Cluster("a").add(), "");
  EXPECT_EQ(Cluster("aaa").add(), "");
  EXPECT_EQ(Cluster("aad").add(), kErrorUnhealthy) << "of four voters two would be up";
  EXPECT_EQ(Cluster("aaaad").add(), "") << "etcd 3.6.11 and later";
  EXPECT_EQ(Cluster("aaadd").add(), kErrorUnhealthy);
  EXPECT_EQ(Cluster("an").add(), kErrorNotEnoughStarted) << "one of two has started; with a third two would be needed";
  EXPECT_EQ(Cluster("aan").add(), kErrorNotEnoughStarted);
}

TEST(Reconfig, WithoutStrictnessItIsTheOperatorsAffair) {
  Cluster cluster("and");
  cluster.strict = false;
  EXPECT_EQ(cluster.add(), "");
  EXPECT_EQ(cluster.remove(1), "");
}

TEST(Reconfig, ALearnerMayComeAnyTimeButOnlyOne) {
  EXPECT_EQ(Cluster("aad").check(MembershipChange::ADD, 99, true), "");
  EXPECT_EQ(Cluster("aaA").check(MembershipChange::ADD, 99, true), kErrorTooManyLearners);
}

TEST(Reconfig, AUrlThatIsTakenIsToldFirst) {
  Cluster cluster("aA");
  cluster.members[1].peer_urls = {"http://x:1", "http://x:2"};
  MembershipChange change;
  change.set_kind(MembershipChange::ADD);
  change.set_id(99);
  change.set_is_learner(true);
  change.add_peer_urls("http://y:1");
  change.add_peer_urls("http://x:2");
  const ReconfigView view{.members = cluster.members, .progress = cluster.progress, .self = 1, .last_index = 100};
  EXPECT_EQ(check_reconfig(change, view).error().message, apply::kErrorPeerUrlExists);
}

TEST(Reconfig, ARemovalLeavesAQuorumThatIsUp) {
  EXPECT_EQ(Cluster("aaa").remove(2), "");
  EXPECT_EQ(Cluster("aaa").remove(1), "") << "the leader itself";
  EXPECT_EQ(Cluster("aad").remove(3), "") << "the one that is down";
  EXPECT_EQ(Cluster("aad").remove(2), kErrorUnhealthy) << "one of the two left would be up, two are needed";
  EXPECT_EQ(Cluster("aan").remove(2), kErrorNotEnoughStarted);
  EXPECT_EQ(Cluster("aan").remove(3), "");
  EXPECT_EQ(Cluster("aadA").remove(4), "") << "a learner does not count";
  EXPECT_EQ(Cluster("a").remove(1), "") << "refused when applied";
  EXPECT_EQ(Cluster("aaa").remove(77), "") << "refused when applied";
}

TEST(Reconfig, ALearnerIsPromotedWhenItIsInSync) {
  EXPECT_EQ(Cluster("aA").promote(2), "");
  EXPECT_EQ(Cluster("aA", 90).promote(2), "");
  EXPECT_EQ(Cluster("aA", 89).promote(2), kErrorLearnerNotReady);
  EXPECT_EQ(Cluster("anN").promote(3), kErrorNotEnoughStarted);
  EXPECT_EQ(Cluster("aa").promote(2), "") << "no learner: refused when applied";
}

TEST(Reconfig, NobodyIsNoMember) {
  Cluster cluster("aaa");
  EXPECT_EQ(cluster.check(MembershipChange::ADD, raft::kNobody), kErrorNoMemberId);
  EXPECT_EQ(cluster.check(MembershipChange::ADD, raft::kNobody, true), kErrorNoMemberId);
  cluster.strict = false;
  EXPECT_EQ(cluster.check(MembershipChange::ADD, raft::kNobody), kErrorNoMemberId);
}

TEST(Reconfig, UrlsMayBeUpdatedAnyTime) { EXPECT_EQ(Cluster("adn").check(MembershipChange::UPDATE, 2), ""); }

}  // namespace
}  // namespace member
