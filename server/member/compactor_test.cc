#include "member/compactor.h"

#include <gtest/gtest.h>

namespace member {
namespace {

using namespace std::chrono_literals;

TEST(Compactor, KeepsAPeriodOfHistory) {
  Compactor compactor({.mode = AutoCompaction::Mode::kPeriodic, .period = 10min});
  std::optional<int64_t> last;
  int compactions = 0;
  // One revision a second.
  for (Time now = 0s; now <= 30min; now += 1s) {
    const int64_t revision = 1 + now / 1s;
    if (const auto target = compactor.tick(now, revision)) {
      ++compactions;
      EXPECT_GE(revision - *target, 600) << "history shorter than the period";
      EXPECT_LE(revision - *target, 660 + 1);
      last = target;
    }
  }
  EXPECT_EQ(compactions, 3);
  ASSERT_TRUE(last);
}

TEST(Compactor, KeepsSoManyRevisions) {
  Compactor compactor({.mode = AutoCompaction::Mode::kRevision, .revisions = 1000});
  EXPECT_EQ(compactor.tick(0s, 5000), std::nullopt);
  EXPECT_EQ(compactor.tick(299s, 5000), std::nullopt);
  EXPECT_EQ(compactor.tick(300s, 5000), 4000);
  EXPECT_EQ(compactor.tick(600s, 5000), std::nullopt) << "nothing new";
  EXPECT_EQ(compactor.tick(900s, 5001), 4001);
}

TEST(Compactor, OffNeverCompacts) {
  Compactor compactor({});
  for (Time now = 0s; now < 10h; now += 1min) EXPECT_EQ(compactor.tick(now, 1'000'000), std::nullopt);
}

}  // namespace
}  // namespace member
