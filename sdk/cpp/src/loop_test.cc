#include "loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <vector>

namespace conclave::inline v1::internal {
namespace {

using namespace std::chrono_literals;

TEST(Loop, RunsWhatIsDueInOrder) {
  std::vector<int> order;
  std::promise<void> done;
  Loop loop;
  const auto now = BootClock::now();
  loop.at(now + 30ms, [&] { order.push_back(3); });
  loop.at(now + 10ms, [&] { order.push_back(1); });
  loop.at(now + 10ms, [&] { order.push_back(2); });
  loop.at(now + 40ms, [&] { done.set_value(); });
  loop.post([&] { order.push_back(0); });
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
  EXPECT_GE(BootClock::now(), now + 40ms);
}

TEST(Loop, ForgetsWhatIsCancelled) {
  std::atomic<int> runs{0};
  std::promise<void> done;
  Loop loop;
  const auto never = loop.at(kNever, [&] { ++runs; });
  const auto later = loop.at(BootClock::now() + 1h, [&] { ++runs; });
  EXPECT_TRUE(loop.cancel(never));
  EXPECT_TRUE(loop.cancel(later));
  EXPECT_FALSE(loop.cancel(later));
  loop.post([&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_EQ(runs, 0);
}

TEST(Loop, WaitsForARunningTaskWhenItStopsAndDestroysTheOthers) {
  auto loop = std::make_unique<Loop>();
  const auto held = std::make_shared<int>(1);
  loop->at(kNever, [held] {});
  std::promise<void> started;
  std::promise<void> release;
  std::atomic<bool> finished{false};
  loop->post([&] {
    started.set_value();
    release.get_future().wait();
    finished = true;
  });
  started.get_future().wait();
  auto stopped = std::async(std::launch::async, [&] { loop->stop(); });
  release.set_value();
  stopped.wait();
  EXPECT_TRUE(finished);
  EXPECT_EQ(held.use_count(), 1);
  loop->post([&] { finished = false; });
  loop.reset();
  EXPECT_TRUE(finished);
}

TEST(Loop, MayBeStoppedFromInside) {
  std::promise<void> done;
  auto loop = std::make_shared<Loop>();
  loop->post([&, loop] {
    EXPECT_TRUE(loop->on_thread());
    loop->stop();
    done.set_value();
  });
  done.get_future().wait();
  EXPECT_FALSE(loop->on_thread());
}

}  // namespace
}  // namespace conclave::inline v1::internal
