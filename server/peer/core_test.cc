#include "peer/core.h"

#include <gtest/gtest.h>

namespace peer {
namespace {

TEST(LogLimit, LetsTheSameMessageThroughOnceInAPeriod) {
  LogLimit limit;
  const TimePoint begin = TimePoint() + std::chrono::hours(1);
  EXPECT_TRUE(limit.due("a", begin));
  EXPECT_FALSE(limit.due("a", begin));
  EXPECT_TRUE(limit.due("b", begin));
  EXPECT_FALSE(limit.due("a", begin + kLogPeriod - Milliseconds(1)));
  EXPECT_TRUE(limit.due("a", begin + kLogPeriod));
  EXPECT_FALSE(limit.due("a", begin + kLogPeriod + Milliseconds(1)));
}

TEST(LogLimit, RemembersABoundedNumber) {
  LogLimit limit;
  const TimePoint now = TimePoint() + std::chrono::hours(1);
  for (size_t i = 0; i < kLogKeysMax; ++i) EXPECT_TRUE(limit.due(std::to_string(i), now));
  EXPECT_FALSE(limit.due("0", now));
  EXPECT_TRUE(limit.due("one more", now));
  EXPECT_TRUE(limit.due("0", now)) << "forgotten with all others";
}

TEST(Roster, RemovedGoesBeforePeer) {
  Roster roster;
  EXPECT_EQ(roster.of(1, 0), Roster::Standing::kStranger);
  roster.set({{1, 0}, {2, 0}}, {2, 3});
  EXPECT_EQ(roster.of(1, 0), Roster::Standing::kPeer);
  EXPECT_EQ(roster.of(2, 0), Roster::Standing::kRemoved);
  EXPECT_EQ(roster.of(3, 0), Roster::Standing::kRemoved);
  EXPECT_EQ(roster.of(4, 0), Roster::Standing::kStranger);
}

TEST(Timing, NoticesADeadPeerWithinAboutAnElectionTimeout) {
  for (const Milliseconds election : {kElectionTimeoutMin, Milliseconds(1000), Milliseconds(10'000)}) {
    const Timing timing(election);
    EXPECT_LE(timing.control_dead + timing.tick, election + election / 2);
    EXPECT_LT(timing.control_ping + timing.tick, timing.control_dead) << "a ping and its pong fit in";
  }
  EXPECT_EQ(Timing(Milliseconds(10)).control_dead, kElectionTimeoutMin);
}

}  // namespace
}  // namespace peer
