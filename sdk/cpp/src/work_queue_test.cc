#include "work_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace conclave::inline v1::internal {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1000s};

TEST(WorkQueue, GivesKeysInTheOrderTheyCameEachOnce) {
  WorkQueue queue;
  for (const char* key : {"b", "a", "b", "c", "a"}) queue.add(key);
  EXPECT_EQ(queue.ready(), 3u);
  EXPECT_EQ(queue.take(kStart), "b");
  EXPECT_EQ(queue.take(kStart), "a");
  EXPECT_EQ(queue.take(kStart), "c");
  EXPECT_EQ(queue.take(kStart), std::nullopt);
  for (const char* key : {"a", "b", "c"}) queue.done(key);
  EXPECT_EQ(queue.take(kStart), std::nullopt);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(WorkQueue, AKeyThatChangesWhileItRunsComesOnceWhenItIsDone) {
  WorkQueue queue;
  queue.add("a");
  EXPECT_EQ(queue.take(kStart), "a");
  for (int i = 0; i < 5; ++i) queue.add("a");
  EXPECT_EQ(queue.take(kStart), std::nullopt);
  queue.add("b");
  queue.done("a");
  EXPECT_EQ(queue.take(kStart), "b");
  EXPECT_EQ(queue.take(kStart), "a");
  queue.done("a");
  EXPECT_EQ(queue.take(kStart), std::nullopt);
}

TEST(WorkQueue, AKeyComesAgainWhenItsTimeHasCome) {
  WorkQueue queue;
  for (const char* key : {"a", "b"}) queue.add(key);
  (void)queue.take(kStart);
  (void)queue.take(kStart);
  queue.done("a", kStart + 10s);
  queue.done("b", kStart + 5s);
  EXPECT_EQ(queue.next_due(), kStart + 5s);
  EXPECT_EQ(queue.take(kStart + 4999ms), std::nullopt);
  EXPECT_EQ(queue.take(kStart + 5s), "b");
  EXPECT_EQ(queue.next_due(), kStart + 10s);
  queue.done("b");
  EXPECT_EQ(queue.take(kStart + 20s), "a");
  EXPECT_EQ(queue.next_due(), kNever);
}

TEST(WorkQueue, AChangeEndsTheWaitAndIsNotFollowedByIt) {
  WorkQueue queue;
  queue.add("a");
  (void)queue.take(kStart);
  queue.done("a", kStart + 10s);
  queue.add("a");
  EXPECT_EQ(queue.next_due(), kNever);
  EXPECT_EQ(queue.take(kStart), "a");
  queue.done("a");
  EXPECT_EQ(queue.take(kStart + 20s), std::nullopt);
  // Changed while it ran: the time asked for is void as well.
  queue.add("a");
  (void)queue.take(kStart);
  queue.add("a");
  queue.done("a", kStart + 10s);
  EXPECT_EQ(queue.next_due(), kNever);
  EXPECT_EQ(queue.take(kStart), "a");
}

TEST(WorkQueue, IgnoresTheEndOfWhatDoesNotRun) {
  WorkQueue queue;
  queue.done("a", kStart);
  EXPECT_EQ(queue.take(kStart), std::nullopt);
  queue.add("a");
  queue.done("a");
  EXPECT_EQ(queue.take(kStart), "a");
  EXPECT_EQ(queue.take(kStart), std::nullopt);
}

// Any order of steps: never two of one key at once, and no change without a later turn.
TEST(WorkQueue, NeverGivesAKeyTwiceAndForgetsNoChange) {
  std::mt19937 random(20240613);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random()) % limit; };
  const std::vector<std::string> names{"a", "b", "c", "d"};
  WorkQueue queue;
  std::vector<std::string> running;
  std::set<std::string> owed;  // changed, and not begun since
  TimePoint now = kStart;
  const auto take = [&] {
    const auto key = queue.take(now);
    if (!key) return false;
    EXPECT_EQ(std::ranges::count(running, *key), 0) << *key;
    running.push_back(*key);
    owed.erase(*key);
    return true;
  };
  for (int step = 0; step < 20000; ++step) {
    now += std::chrono::milliseconds(below(20));
    switch (below(3)) {
      case 0: {
        const std::string& key = names[below(names.size())];
        queue.add(key);
        owed.insert(key);
        break;
      }
      case 1:
        take();
        break;
      default:
        if (running.empty()) break;
        const std::size_t which = below(running.size());
        queue.done(running[which], below(2) == 0 ? kNever : now + std::chrono::milliseconds(below(50)));
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  for (const auto& key : running) queue.done(key);
  running.clear();
  now += 1s;
  while (take()) {
  }
  EXPECT_TRUE(owed.empty());
  EXPECT_EQ(queue.next_due(), kNever);
}

}  // namespace
}  // namespace conclave::inline v1::internal
