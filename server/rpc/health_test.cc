#include <gmock/gmock.h>

#include "rpc/fake_member_test.h"

namespace rpc {
namespace {

using testing::HasSubstr;

class Health : public Services {
 protected:
  void answer_reads(const Status& status) {
    while (!member.reads.empty()) {
      auto done = std::move(member.reads.front());
      member.reads.pop_front();
      done(status);
    }
  }
};

constexpr const char* kWell = R"({"health":"true","reason":""})";

TEST_F(Health, IsTrueOnceALinearizableReadIsAnswered) {
  const auto caught = get("/health");
  EXPECT_FALSE(caught->done);
  answer_reads({});
  EXPECT_EQ(caught->status, 200);
  EXPECT_EQ(caught->text, kWell);
}

TEST_F(Health, SaysWhyItIsNot) {
  const auto cut_off = get("/health");
  answer_reads(::fail(Code::kUnavailable, "etcdserver: request timed out"));
  EXPECT_EQ(cut_off->status, 503) << "it believes in a leader that does not answer";
  EXPECT_EQ(cut_off->text,
            std::string(R"({"health":"false","reason":"RANGE ERROR:etcdserver: request timed out"})") + "\n");
  member.now.raft.leader = raft::kNobody;
  EXPECT_EQ(get("/health")->text, std::string(R"({"health":"false","reason":"RAFT NO LEADER"})") + "\n");
  EXPECT_EQ(get("/health", "serializable=true")->text, kWell) << "this member alone is asked";
  member.now.raft.leader = 2;
  member.now.out_of_space = true;
  EXPECT_THAT(get("/health")->text, HasSubstr("the disk is full"));
}

TEST_F(Health, AlarmsMayBeExcluded) {
  member.whole_quorum = true;
  member.raised.emplace_back().set_alarm(etcdserverpb::NOSPACE);
  EXPECT_EQ(get("/health")->text, std::string(R"({"health":"false","reason":"ALARM NOSPACE"})") + "\n");
  EXPECT_EQ(get("/health", "exclude=NOSPACE")->text, kWell);
  EXPECT_EQ(get("/health", "exclude=CORRUPT")->status, 503);
  EXPECT_EQ(get("/readyz")->text, "ok\n");
  member.raised.emplace_back().set_alarm(etcdserverpb::CORRUPT);
  EXPECT_THAT(get("/readyz")->text, HasSubstr("[-]data_corruption failed: alarm activated: CORRUPT\n"));
  EXPECT_EQ(get("/readyz", "exclude=data_corruption")->text, "ok\n");
}

TEST_F(Health, ReadyzAsksTheLeaderAndLivezDoesNot) {
  member.now.raft.leader = raft::kNobody;
  EXPECT_EQ(get("/livez")->text, "ok\n");
  EXPECT_EQ(get("/livez", "verbose")->text, "[+]serializable_read ok\nok\n");
  const auto leaderless = get("/readyz");
  EXPECT_EQ(leaderless->status, 503);
  EXPECT_EQ(leaderless->text,
            "[+]data_corruption ok\n[+]serializable_read ok\n[-]linearizable_read failed: etcdserver: no leader\n"
            "[+]non_learner ok\n\n");
  member.now.raft.leader = 2;
  const auto cut_off = get("/readyz");
  EXPECT_FALSE(cut_off->done);
  answer_reads(::fail(Code::kUnavailable, "etcdserver: request timed out"));
  EXPECT_THAT(cut_off->text, HasSubstr("[-]linearizable_read failed: etcdserver: request timed out\n"));
  const auto one = get("/readyz/linearizable_read", "verbose");
  answer_reads({});
  EXPECT_EQ(one->text, "[+]linearizable_read ok\nok\n");
  EXPECT_EQ(get("/readyz", "exclude=linearizable_read")->text, "ok\n");
}

TEST_F(Health, ALearnerIsNotReady) {
  member.whole_quorum = true;
  member.known[0].is_learner = true;
  EXPECT_EQ(get("/readyz/non_learner")->text, "[-]non_learner failed: not supported for learner\n\n");
  EXPECT_EQ(get("/readyz")->status, 503);
  EXPECT_EQ(get("/livez")->status, 200);
}

}  // namespace
}  // namespace rpc
