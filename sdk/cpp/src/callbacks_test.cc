#include "callbacks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <vector>

namespace conclave::inline v1::internal {
namespace {

using namespace std::chrono_literals;

TEST(CallbackQueue, RunsOneAtATimeAndInOrder) {
  std::vector<int> order;
  std::atomic<int> inside{0};
  std::promise<void> done;
  const auto pool = std::make_shared<CallbackPool>(4);
  CallbackQueue queue(pool, "q");
  constexpr int kCallbacks = 1000;
  for (int i = 0; i < kCallbacks; ++i) {
    ASSERT_TRUE(queue.post([&, i] {
      EXPECT_EQ(inside.fetch_add(1), 0);
      order.push_back(i);
      inside.fetch_sub(1);
      if (i == kCallbacks - 1) done.set_value();
    }));
  }
  done.get_future().wait();
  for (int i = 0; i < kCallbacks; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(CallbackQueue, DoesNotKeepOthersWaiting) {
  std::promise<void> release;
  std::promise<void> ran;
  const auto pool = std::make_shared<CallbackPool>(2);
  CallbackQueue slow(pool, "slow");
  CallbackQueue quick(pool, "quick");
  slow.post([&] { release.get_future().wait(); });
  quick.post([&] { ran.set_value(); });
  EXPECT_EQ(ran.get_future().wait_for(5s), std::future_status::ready);
  release.set_value();
}

TEST(CallbackQueue, WaitsForARunningCallbackWhenClosedAndRunsNoOther) {
  std::promise<void> started;
  std::promise<void> release;
  std::atomic<bool> finished{false};
  std::atomic<bool> second{false};
  const auto pool = std::make_shared<CallbackPool>(2);
  CallbackQueue queue(pool, "q");
  queue.post([&] {
    started.set_value();
    release.get_future().wait();
    finished = true;
  });
  queue.post([&] { second = true; });
  started.get_future().wait();
  auto closed = std::async(std::launch::async, [&] {
    queue.close();
    return finished.load();
  });
  while (queue.post([] {})) std::this_thread::sleep_for(1ms);  // until close() has begun
  release.set_value();
  EXPECT_TRUE(closed.get());
  EXPECT_FALSE(queue.post([&] { second = true; }));
  EXPECT_FALSE(second);
}

TEST(CallbackQueue, MayBeClosedFromInside) {
  std::promise<void> done;
  std::optional<CallbackQueue> queue;
  const auto pool = std::make_shared<CallbackPool>(1);
  queue.emplace(pool, "q");
  queue->post([&] {
    queue.reset();
    done.set_value();
  });
  EXPECT_EQ(done.get_future().wait_for(5s), std::future_status::ready);
}

TEST(CallbackPool, CountsAndTellsWhatThrows) {
  std::promise<std::string> told;
  std::promise<void> next;
  const auto pool = std::make_shared<CallbackPool>(1);
  CallbackQueue queue(pool, "config");
  pool->set_reporter([&](const std::string& problem) { told.set_value(problem); });
  queue.post([] { throw std::runtime_error("boom"); });
  EXPECT_EQ(told.get_future().get(), "config: callback threw: boom");
  EXPECT_EQ(pool->thrown(), 1u);
  queue.post([&] { next.set_value(); });
  next.get_future().wait();
}

TEST(CallbackQueue, RefusesMoreThanItsLimit) {
  std::promise<void> started;
  std::promise<void> release;
  const auto pool = std::make_shared<CallbackPool>(1);
  CallbackQueue queue(pool, "q");
  queue.post([&] {
    started.set_value();
    release.get_future().wait();
  });
  started.get_future().wait();
  for (std::size_t i = 0; i < kCallbacksWaitingMax; ++i) ASSERT_TRUE(queue.post([] {}));
  EXPECT_FALSE(queue.post([] {}));
  release.set_value();
}

}  // namespace
}  // namespace conclave::inline v1::internal
