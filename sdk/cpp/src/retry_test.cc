#include "retry.h"

#include <gtest/gtest.h>

namespace conclave::inline v1::internal {
namespace {

using namespace std::chrono_literals;

TEST(RetryBudget, AllowsTenAndATenthOfTheCallsOfTheLastMinute) {
  RetryBudget budget;
  const TimePoint start{1000s};
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(budget.take(start));
  EXPECT_FALSE(budget.take(start));
  for (int i = 0; i < 20; ++i) budget.called(start + 10s);
  EXPECT_TRUE(budget.take(start + 10s));
  EXPECT_TRUE(budget.take(start + 10s));
  EXPECT_FALSE(budget.take(start + 10s));
  EXPECT_TRUE(budget.take(start + 65s));  // the first ten are forgotten
}

TEST(Backoff, StaysBelowItsLimit) {
  Backoff backoff;
  EXPECT_LE(backoff.next(), 50ms);
  for (int i = 0; i < 100; ++i) {
    const auto pause = backoff.next();
    EXPECT_GE(pause, 0ms);
    EXPECT_LE(pause, 2000ms);
  }
  Backoff short_one(100ms);
  for (int i = 0; i < 100; ++i) EXPECT_LE(short_one.next(), 100ms);
}

}  // namespace
}  // namespace conclave::inline v1::internal
