#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "conclave/mutex.h"
#include "test_proxy.h"
#include "test_server.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using testing::TestProxy;
using testing::TestServer;
using Clock = std::chrono::steady_clock;

std::int64_t keys_below(const Client& client, const std::string& prefix) {
  return client.range({.key = prefix, .prefix = true, .count_only = true}).or_throw().count;
}

// Waits until so many keys are there: the others have arrived in the queue.
void await_keys(const Client& client, const std::string& prefix, std::int64_t count) {
  const auto until = Clock::now() + 10s;
  while (keys_below(client, prefix) != count) {
    ASSERT_LT(Clock::now(), until) << "keys below " << prefix << ": " << keys_below(client, prefix);
    std::this_thread::sleep_for(5ms);
  }
}

TEST(Mutex, NeverOverlapsAndItsTokensRise) {
  TestServer server;
  constexpr int kSessions = 8;
  constexpr int kRounds = 25;
  std::atomic<int> inside{0};
  std::mutex mutex;
  std::vector<std::int64_t> tokens;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kSessions; ++i) {
    threads.emplace_back([&] {
      const Client client = server.client();
      const auto session = Session::open(client, {.ttl = 10s}).or_throw();
      const Mutex lock_of(session, "locks/a");
      for (int n = 0; n < kRounds; ++n) {
        auto lock = lock_of.lock({.timeout = 60s}).or_throw();
        EXPECT_EQ(inside.fetch_add(1), 0);
        {
          std::scoped_lock guard(mutex);
          tokens.push_back(number(lock.token()));
        }
        EXPECT_TRUE(lock.held());
        inside.fetch_sub(1);
        lock.unlock().or_throw();
      }
    });
  }
  threads.clear();
  ASSERT_EQ(tokens.size(), static_cast<std::size_t>(kSessions * kRounds));
  for (std::size_t i = 1; i < tokens.size(); ++i) EXPECT_LT(tokens[i - 1], tokens[i]);
}

TEST(Mutex, IsGrantedInOrderOfArrival) {
  TestServer server;
  const Client client = server.client();
  const auto first = Session::open(client).or_throw();
  auto held = Mutex(first, "l").lock().or_throw();
  std::vector<Session> sessions;
  for (int i = 0; i < 4; ++i) sessions.push_back(Session::open(client).or_throw());
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      auto lock = Mutex(sessions[static_cast<std::size_t>(i)], "l").lock().or_throw();
      std::scoped_lock guard(mutex);
      order.push_back(i);
    });  // the destructor unlocks
    await_keys(client, "l/", i + 2);
  }
  held.unlock().or_throw();
  threads.clear();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
}

TEST(Mutex, PassesOnWithinTheTtlWhenTheHolderIsCutOffAndTheHolderKnowsFirst) {
  TestServer server;
  TestProxy proxy(server.port());
  const Client client = server.client();
  const Client cut = Client::open({.endpoints = {proxy.endpoint()}}).or_throw();
  const auto holder = Session::open(cut, {.ttl = 2s}).or_throw();
  auto held = Mutex(holder, "l").lock({.timeout = 5s}).or_throw();
  std::promise<Clock::time_point> lost_at;
  const std::stop_callback on_lost(held.lost(), [&] { lost_at.set_value(Clock::now()); });
  const auto waiter = Session::open(client, {.ttl = 10s}).or_throw();
  auto next = std::async(std::launch::async, [&] {
    auto lock = Mutex(waiter, "l").lock({.timeout = 30s}).or_throw();
    return std::pair(Clock::now(), lock.token());
  });
  await_keys(client, "l/", 2);
  proxy.black_hole(true);
  proxy.kill_connections_silently();
  const auto start = Clock::now();
  const auto [granted_at, token] = next.get();
  EXPECT_LE(granted_at - start, holder.ttl() + 1s);
  EXPECT_LT(lost_at.get_future().get(), granted_at);
  EXPECT_GT(token, held.token());
  EXPECT_FALSE(held.held());
  const auto committed = held.commit(Txn().then(op::put("state", "done")));
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, Code::kAborted);
  EXPECT_EQ(committed.error().outcome, Outcome::kNothingHappened);
  EXPECT_EQ(held.unlock().error().code, Code::kAborted);
  EXPECT_FALSE(client.get("state").or_throw().has_value());
}

TEST(Lock, CommitsUnderItsOwnership) {
  TestServer server;
  const Client client = server.client();
  const auto session = Session::open(client).or_throw();
  auto lock = Mutex(session, "l").lock().or_throw();
  EXPECT_EQ(number(client.get(lock.key()).or_throw()->create_revision), number(lock.token()));
  const auto done = lock.commit(Txn().then(op::put("state", "done"))).or_throw();
  EXPECT_TRUE(done.succeeded);
  const auto not_again = lock.commit(Txn().when(compare::missing("state")).then(op::put("state", "x"))).or_throw();
  EXPECT_FALSE(not_again.succeeded);
  EXPECT_EQ(client.get("state").or_throw()->value, "done");
  (void)client.del(lock.key()).or_throw();  // an operator takes it away
  const auto refused = lock.commit(Txn().then(op::put("state", "x")));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kAborted);
  EXPECT_EQ(refused.error().outcome, Outcome::kNothingHappened);
  EXPECT_EQ(client.get("state").or_throw()->value, "done");
  const auto unlocked = lock.unlock();
  ASSERT_FALSE(unlocked);
  EXPECT_EQ(unlocked.error().code, Code::kAborted);
}

TEST(Mutex, TriesWithoutWaiting) {
  TestServer server;
  const Client client = server.client();
  const auto one = Session::open(client).or_throw();
  const auto two = Session::open(client).or_throw();
  auto held = Mutex(one, "l").try_lock().or_throw();
  ASSERT_TRUE(held.has_value());
  EXPECT_FALSE(Mutex(two, "l").try_lock().or_throw().has_value());
  EXPECT_FALSE(Mutex(one, "l").try_lock().or_throw().has_value());  // also within one session
  EXPECT_EQ(keys_below(client, "l/"), 1);
  held->unlock().or_throw();
  EXPECT_TRUE(Mutex(two, "l").try_lock().or_throw().has_value());
}

TEST(Mutex, LeavesNoKeyBehindWhenAWaitEnds) {
  TestServer server;
  const Client client = server.client();
  const auto one = Session::open(client).or_throw();
  const auto two = Session::open(client).or_throw();
  auto held = Mutex(one, "l").lock().or_throw();
  const auto late = Mutex(two, "l").lock({.timeout = 200ms});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(late.error().outcome, Outcome::kNothingHappened);
  await_keys(client, "l/", 1);
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] { return Mutex(two, "l").lock({.stop = stop.get_token()}); });
  await_keys(client, "l/", 2);
  stop.request_stop();
  const auto stopped = waiting.get();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
  await_keys(client, "l/", 1);
  EXPECT_TRUE(held.held());
}

TEST(Mutex, QueuesTheThreadsOfOneSession) {
  TestServer server;
  const Client client = server.client();
  const auto session = Session::open(client).or_throw();
  const Mutex mutex(session, "l");
  std::atomic<int> inside{0};
  std::atomic<std::int64_t> last{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10; ++n) {
        auto lock = mutex.lock({.timeout = 60s}).or_throw();
        EXPECT_EQ(inside.fetch_add(1), 0);
        EXPECT_LT(last.exchange(number(lock.token())), number(lock.token()));
        inside.fetch_sub(1);
      }  // unlocked in the background
    });
  }
  threads.clear();
  await_keys(client, "l/", 0);
}

TEST(Mutex, EndsItsWaitWhenTheSessionIsLost) {
  TestServer server;
  const Client client = server.client();
  const auto one = Session::open(client).or_throw();
  auto two = Session::open(client).or_throw();
  auto held = Mutex(one, "l").lock().or_throw();
  auto waiting = std::async(std::launch::async, [&] { return Mutex(two, "l").lock(); });
  await_keys(client, "l/", 2);
  (void)two.close().or_throw();
  const auto ended = waiting.get();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Code::kAborted);
  EXPECT_EQ(Mutex(two, "l").lock().error().code, Code::kAborted);
}

TEST(Mutex, NamesTheOwnerOfAKeyBelowItsName) {
  TestServer server;
  const Client client = server.client();
  const auto session = Session::open(client).or_throw();
  auto below = Mutex(session, "a/b").lock().or_throw();
  const auto refused = Mutex(session, "a").lock({.timeout = 5s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_NE(refused.error().message.find(below.key()), std::string::npos);
}

TEST(Mutex, GoesOnWaitingThroughARestartOfTheServer) {
  TestServer server;
  const Client client = server.client();
  const auto one = Session::open(client, {.ttl = 20s}).or_throw();
  const auto two = Session::open(client, {.ttl = 20s}).or_throw();
  auto held = Mutex(one, "l").lock().or_throw();
  auto waiting = std::async(std::launch::async, [&] { return Mutex(two, "l").lock({.timeout = 30s}); });
  await_keys(client, "l/", 2);
  server.kill();
  server.start();
  held.unlock({.timeout = 10s}).or_throw();
  auto lock = waiting.get().or_throw();
  EXPECT_GT(lock.token(), held.token());
  EXPECT_TRUE(lock.held());
}

TEST(Lock, OutlivesItsSessionOnlyAsALostOne) {
  TestServer server;
  const Client client = server.client();
  auto session = std::make_unique<Session>(Session::open(client).or_throw());
  auto lock = Mutex(*session, "l").lock().or_throw();
  session.reset();
  EXPECT_FALSE(lock.held());
  EXPECT_EQ(lock.unlock().error().code, Code::kAborted);
}

}  // namespace
}  // namespace conclave
