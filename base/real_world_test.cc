#include <gtest/gtest.h>
#include <time.h>

#include <set>
#include <thread>
#include <vector>

#include "base/world.h"

namespace {

TEST(RealWorld, MonotonicClockIsTheOneThatRunsWhileTheMachineSleeps) {
  Clock& clock = real_world().clock;
  timespec now{};
  ASSERT_EQ(clock_gettime(CLOCK_BOOTTIME, &now), 0);
  const auto boot = std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  const auto first = clock.monotonic();
  const auto second = clock.monotonic();
  EXPECT_GE(first, boot);
  EXPECT_GE(second, first);
}

TEST(RealWorld, WallClockIsBetweenTwoReadingsOfTheSystems) {
  const auto before = std::chrono::system_clock::now().time_since_epoch();
  const auto wall = real_world().clock.wall();
  const auto after = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_GE(wall, before);
  EXPECT_LE(wall, after);
}

TEST(RealWorld, RandomNumbersDifferWithinAndBetweenThreads) {
  constexpr size_t kThreads = 4;
  constexpr size_t kNumbers = 10'000;  // a repeat of 64 bits among 40,000 has a chance of 1 in 2 * 10^10
  std::vector<std::vector<uint64_t>> drawn(kThreads);
  std::vector<std::thread> threads;
  for (auto& numbers : drawn) {
    threads.emplace_back([&numbers] {
      for (size_t i = 0; i < kNumbers; ++i) numbers.push_back(real_world().random.next());
    });
  }
  for (auto& thread : threads) thread.join();
  std::set<uint64_t> distinct;
  for (const auto& numbers : drawn) distinct.insert(numbers.begin(), numbers.end());
  EXPECT_EQ(distinct.size(), kThreads * kNumbers);
}

TEST(RealWorld, EachBitOfARandomNumberIsSetAboutHalfOfTheTime) {
  constexpr int kNumbers = 10'000;
  std::vector<int> set(64);
  for (int i = 0; i < kNumbers; ++i) {
    const uint64_t number = real_world().random.next();
    for (int bit = 0; bit < 64; ++bit) set[bit] += static_cast<int>((number >> bit) & 1);
  }
  for (int count : set) EXPECT_NEAR(count, kNumbers * 0.5, 400);  // 8 standard deviations
}

}  // namespace
