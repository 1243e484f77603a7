#include "local_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace conclave::inline v1::internal {
namespace {

using namespace std::chrono_literals;

TEST(LocalQueue, LetsThemThroughInOrder) {
  LocalQueue queue;
  const auto first = queue.enter("a");
  const auto second = queue.enter("a");
  const auto third = queue.enter("a");
  EXPECT_TRUE(queue.wait("a", first, kNever, {}));
  EXPECT_FALSE(queue.wait("a", second, BootClock::now() + 10ms, {}));
  auto waits = std::async(std::launch::async, [&] { return queue.wait("a", third, kNever, {}); });
  queue.leave("a", second);  // gave up
  queue.leave("a", first);
  EXPECT_TRUE(waits.get());
}

TEST(LocalQueue, KeepsNamesApartAndKnowsWhetherOneIsFree) {
  LocalQueue queue;
  const auto a = queue.try_enter("a");
  EXPECT_NE(a, 0u);
  EXPECT_EQ(queue.try_enter("a"), 0u);
  EXPECT_NE(queue.try_enter("b"), 0u);
  queue.leave("a", a);
  EXPECT_NE(queue.try_enter("a"), 0u);
}

TEST(LocalQueue, EndsAWaitWhenStopped) {
  LocalQueue queue;
  (void)queue.enter("a");
  const auto second = queue.enter("a");
  std::stop_source stop;
  auto waits = std::async(std::launch::async, [&] { return queue.wait("a", second, kNever, stop.get_token()); });
  stop.request_stop();
  EXPECT_FALSE(waits.get());
}

}  // namespace
}  // namespace conclave::inline v1::internal
