#include "member/lease_keeper.h"

#include <gtest/gtest.h>

namespace member {
namespace {

using namespace std::chrono_literals;
using Kind = apply::LeaseChange::Kind;

class LeaseKeeperTest : public testing::Test {
 protected:
  LeaseKeeperTest() : keeper_(table_, 7s) {
    EXPECT_TRUE(table_.grant(1, 10));
    table_.commit();
    keeper_.begin_term(3, 0s);
  }
  // Notes what a keepalive is answered: the TTL, or -1 for an error.
  KeptAlive note(std::vector<int64_t>& answers) {
    return [&answers](const Result<int64_t>& ttl) { answers.push_back(ttl ? *ttl : -1); };
  }
  void revoked() {
    ASSERT_TRUE(table_.revoke(1));
    table_.commit();
  }

  lease::Table table_;
  LeaseKeeper keeper_;
  std::vector<int64_t> answers_;
};

TEST_F(LeaseKeeperTest, RenewsAndTellsTheDead) {
  keeper_.keep_alive(1, 1s, note(answers_));
  keeper_.keep_alive(2, 1s, note(answers_));
  EXPECT_EQ(answers_, (std::vector<int64_t>{10, 0}));
}

TEST_F(LeaseKeeperTest, RevokesInItsTermWhatIsOver) {
  EXPECT_TRUE(keeper_.due(1s).empty());
  const auto commands = keeper_.due(11s);
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].lease_revoke().id(), 1);
  EXPECT_EQ(commands[0].lease_revoke().term(), 3U);
  keeper_.keep_alive(1, 11s, note(answers_));
  EXPECT_TRUE(answers_.empty()) << "it waits for the outcome";
  revoked();
  keeper_.applied({{Kind::kRevoked, 1}}, 12s);
  EXPECT_EQ(answers_, (std::vector<int64_t>{0}));
}

TEST_F(LeaseKeeperTest, AnswersTheRenewalOfACheckpointedLeaseOnceItsResetIsCommitted) {
  ASSERT_EQ(keeper_.due(5s).size(), 1U) << "a checkpoint at 0.4 TTL";
  keeper_.keep_alive(1, 6s, note(answers_));
  EXPECT_TRUE(answers_.empty());
  const auto commands = keeper_.due(6s);
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].lease_checkpoint().items(0).remaining_ttl(), 0);
  keeper_.applied({{Kind::kReset, 1}}, 7s);
  EXPECT_EQ(answers_, (std::vector<int64_t>{10}));
}

// Found by the simulator: the reset was slow (a full disk), the lease ran out meanwhile, and a keepalive that came
// during its revocation was answered by the commit of the reset.
TEST_F(LeaseKeeperTest, AResetDoesNotAnswerWhoWaitsForTheRevocation) {
  ASSERT_EQ(keeper_.due(5s).size(), 1U);
  std::vector<int64_t> late;
  keeper_.keep_alive(1, 6s, note(answers_));
  ASSERT_EQ(keeper_.due(6s).size(), 1U);
  ASSERT_EQ(keeper_.due(12900ms).size(), 0U) << "no checkpoint while its reset is on the way";
  const auto commands = keeper_.due(16500ms);
  ASSERT_EQ(commands.size(), 1U);
  ASSERT_TRUE(commands[0].has_lease_revoke());
  keeper_.keep_alive(1, 16600ms, note(late));
  keeper_.applied({{Kind::kReset, 1}}, 17s);
  EXPECT_TRUE(late.empty());
  revoked();
  keeper_.applied({{Kind::kRevoked, 1}}, 17s);
  EXPECT_EQ(late, (std::vector<int64_t>{0}));
}

TEST_F(LeaseKeeperTest, RefusesWhatWaitsWhenItsTermEnds) {
  ASSERT_EQ(keeper_.due(11s).size(), 1U);
  keeper_.keep_alive(1, 11s, note(answers_));
  keeper_.end_term();
  EXPECT_EQ(answers_, (std::vector<int64_t>{-1}));
  keeper_.keep_alive(1, 12s, note(answers_));
  EXPECT_EQ(answers_.size(), 1U) << "waits for a leader";
  keeper_.due(20s);
  EXPECT_EQ(answers_, (std::vector<int64_t>{-1, -1}));
}

}  // namespace
}  // namespace member
