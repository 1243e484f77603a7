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

TEST(Backoff, GrowsToItsMostAndStaysThere) {
  Backoff usual;
  Backoff patient(30s);
  auto longest = 0ms;
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(usual.next(), 2s);
    const auto pause = patient.next();
    EXPECT_LE(pause, 30s);
    if (i == 0) {
      EXPECT_LE(pause, 50ms);
    }
    longest = std::max(longest, pause);
  }
  EXPECT_GT(longest, 10s);  // all of ninety below a third of it: never
  patient.reset();
  EXPECT_LE(patient.next(), 50ms);
}

}  // namespace
}  // namespace conclave::inline v1::internal
