#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "conclave/election.h"
#include "conclave/mutex.h"
#include "test_proxy.h"
#include "test_server.h"
#include "test_wait.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::keys_become;
using testing::keys_below;
using testing::TestProxy;
using testing::TestServer;
using Clock = std::chrono::steady_clock;

TEST(Election, HasOneLeaderAtATimeAndItsTokensRise) {
  TestServer server;
  constexpr int kSessions = 6;
  constexpr int kRounds = 15;
  std::atomic<int> leading{0};
  std::mutex mutex;
  std::vector<std::int64_t> tokens;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kSessions; ++i) {
    threads.emplace_back([&, i] {
      const Client client = server.client();
      const auto session = Session::open(client, {.ttl = 10s}).or_throw();
      const Election election(session, "e");
      for (int n = 0; n < kRounds; ++n) {
        auto mine = election.campaign(std::to_string(i), {.timeout = 60s}).or_throw();
        EXPECT_EQ(leading.fetch_add(1), 0);
        {
          std::scoped_lock guard(mutex);
          tokens.push_back(number(mine.token()));
        }
        EXPECT_TRUE(mine.held());
        const auto leader = election.leader().or_throw();
        EXPECT_EQ(leader, (Leader{std::to_string(i), mine.key(), mine.token(), session.lease()}));
        leading.fetch_sub(1);
        mine.resign().or_throw();
        EXPECT_FALSE(mine.held());
      }
    });
  }
  threads.clear();
  ASSERT_EQ(tokens.size(), static_cast<std::size_t>(kSessions * kRounds));
  for (std::size_t i = 1; i < tokens.size(); ++i) EXPECT_LT(tokens[i - 1], tokens[i]);
}

// The key as Go's concurrency package makes it, which is also that of a Mutex.
TEST(Election, HasTheKeysOfAMutexAndBothExcludeEachOther) {
  TestServer server;
  const Client client = server.client();
  const auto one = Session::open(client).or_throw();
  const auto two = Session::open(client).or_throw();
  auto mine = Election(one, "same").campaign("v").or_throw();
  char hex[32];
  std::snprintf(hex, sizeof hex, "same/%llx", static_cast<unsigned long long>(number(one.lease())));
  EXPECT_EQ(mine.key(), hex);
  const auto kv = client.get(mine.key()).or_throw();
  ASSERT_TRUE(kv.has_value());
  EXPECT_EQ(kv->value, "v");
  EXPECT_EQ(kv->lease, one.lease());
  EXPECT_EQ(number(kv->create_revision), number(mine.token()));
  EXPECT_FALSE(Mutex(two, "same").try_lock().or_throw().has_value());
  EXPECT_FALSE(Mutex(one, "same").try_lock().or_throw().has_value());  // also within the session
  auto waiting = std::async(std::launch::async, [&] { return Mutex(two, "same").lock({.timeout = 30s}); });
  ASSERT_TRUE(keys_become(client, "same/", 2));
  mine.resign().or_throw();
  auto lock = waiting.get().or_throw();
  EXPECT_GT(lock.token(), mine.token());
  EXPECT_EQ(Election(one, "same").leader().or_throw()->key, lock.key());
  EXPECT_EQ(Mutex(one, "other").lock().or_throw().key(), std::string("other/") + (hex + 5));
}

TEST(Election, PassesOnWithinTheTtlWhenTheLeaderIsCutOffAndTheLeaderKnowsFirst) {
  TestServer server;
  TestProxy proxy(server.port());
  const Client client = server.client();
  const Client cut = Client::open({.endpoints = {proxy.endpoint()}}).or_throw();
  const auto first = Session::open(cut, {.ttl = 2s}).or_throw();
  auto mine = Election(first, "e").campaign("first", {.timeout = 5s}).or_throw();
  std::promise<Clock::time_point> lost_at;
  const std::stop_callback on_lost(mine.lost(), [&] { lost_at.set_value(Clock::now()); });
  const auto second = Session::open(client, {.ttl = 10s}).or_throw();
  auto next = std::async(std::launch::async, [&] {
    auto leadership = Election(second, "e").campaign("second", {.timeout = 30s}).or_throw();
    return std::pair(Clock::now(), leadership.token());
  });
  ASSERT_TRUE(keys_become(client, "e/", 2));
  proxy.black_hole(true);
  proxy.kill_connections_silently();
  const auto start = Clock::now();
  const auto [elected_at, token] = next.get();
  EXPECT_LE(elected_at - start, first.ttl() + 1s);
  EXPECT_LT(lost_at.get_future().get(), elected_at);
  EXPECT_GT(token, mine.token());
  EXPECT_FALSE(mine.held());
  for (const Error& error :
       {mine.commit(Txn().then(op::put("state", "x"))).error(), mine.proclaim("x").error(), mine.resign().error()}) {
    EXPECT_EQ(error.code, Code::kAborted) << to_string(error);
    EXPECT_EQ(error.outcome, Outcome::kNothingHappened) << to_string(error);
  }
  EXPECT_FALSE(client.get("state").or_throw().has_value());
}

TEST(Leadership, IsLostAtOnceWhenSomebodyRemovesItsKey) {
  TestServer server;
  const Client client = server.client();
  const auto session = Session::open(client, {.ttl = 60s}).or_throw();  // no keepalive within this test
  auto mine = Election(session, "e").campaign("v").or_throw();
  std::promise<void> lost;
  const std::stop_callback on_lost(mine.lost(), [&] { lost.set_value(); });
  EXPECT_TRUE(mine.held());
  (void)client.del(mine.key()).or_throw();
  EXPECT_EQ(lost.get_future().wait_for(5s), std::future_status::ready);
  EXPECT_FALSE(mine.held());
  EXPECT_TRUE(session.held());
  EXPECT_EQ(mine.proclaim("x").error().code, Code::kAborted);
  EXPECT_EQ(mine.commit(Txn().then(op::put("state", "x"))).error().code, Code::kAborted);
  EXPECT_EQ(mine.resign().error().code, Code::kAborted);
  EXPECT_EQ(keys_below(client, ""), 0);
  auto again = Election(session, "e").campaign("v", {.timeout = 5s}).or_throw();  // the session may stand again
  EXPECT_GT(again.token(), mine.token());
  EXPECT_TRUE(again.held());
}

TEST(Leadership, IsLostAtOnceWhenSomebodyRevokesItsLease) {
  TestServer server;
  const Client client = server.client();
  const auto session = Session::open(client, {.ttl = 60s}).or_throw();
  const auto mine = Election(session, "e").campaign("v").or_throw();
  std::promise<void> lost;
  const std::stop_callback on_lost(mine.lost(), [&] { lost.set_value(); });
  testing::revoke(client, session.lease());
  EXPECT_EQ(lost.get_future().wait_for(5s), std::future_status::ready);
  EXPECT_FALSE(mine.held());
  EXPECT_TRUE(eventually([&] { return !session.held(); }, 5s));  // the session asked, and knows too
}

TEST(Leadership, MayBeDestroyedByItsOwnLoss) {
  TestServer server;
  const Client client = server.client();
  auto session = Session::open(client).or_throw();
  auto mine = std::make_optional(Election(session, "e").campaign("v").or_throw());
  std::promise<void> done;
  const std::stop_callback on_lost(mine->lost(), [&] {
    mine.reset();
    done.set_value();
  });
  session.close().or_throw();
  EXPECT_EQ(done.get_future().wait_for(5s), std::future_status::ready);
}

TEST(Leadership, IsToldOfARemovalThatACompactionHides) {
  TestServer server;
  TestProxy proxy(server.port());
  const Client client = server.client();
  const Client cut = Client::open({.endpoints = {proxy.endpoint()}}).or_throw();
  internal::Access::core(cut).tuning().watch_quiet = 300ms;
  const auto session = Session::open(cut, {.ttl = 60s}).or_throw();
  const auto mine = Election(session, "e").campaign("v").or_throw();
  std::promise<void> lost;
  const std::stop_callback on_lost(mine.lost(), [&] { lost.set_value(); });
  proxy.black_hole(true);
  proxy.kill_connections_silently();
  (void)client.del(mine.key()).or_throw();
  const auto newest = client.put("other", "x").or_throw().revision;
  (void)client.compact(newest).or_throw();
  EXPECT_TRUE(mine.held());
  proxy.black_hole(false);
  EXPECT_EQ(lost.get_future().wait_for(15s), std::future_status::ready);
  EXPECT_FALSE(mine.held());
}

TEST(Leadership, ProclaimsWithoutANewTerm) {
  TestServer server;
  const Client client = server.client();
  const auto session = Session::open(client).or_throw();
  const Election election(session, "e");
  auto mine = election.campaign("one").or_throw();
  mine.proclaim("two").or_throw();
  mine.proclaim("three").or_throw();
  EXPECT_EQ(election.leader().or_throw(), (Leader{"three", mine.key(), mine.token(), session.lease()}));
  // What somebody else writes there is overwritten.
  (void)client.put(mine.key(), "foreign", {.ignore_lease = true}).or_throw();
  mine.proclaim("four").or_throw();
  EXPECT_EQ(election.leader().or_throw()->value, "four");
  EXPECT_TRUE(mine.held());
  EXPECT_EQ(mine.proclaim("five", {.timeout = 0ms}).error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(election.leader().or_throw()->value, "four");
}

TEST(Leadership, ProclaimsAgainAfterOneThatWasNeverAnswered) {
  TestServer server;
  const Client client = server.client();
  const auto session = Session::open(client, {.ttl = 60s}).or_throw();
  const Election election(session, "e");
  auto mine = election.campaign("one").or_throw();
  server.pause();
  const auto late = mine.proclaim("two", {.timeout = 300ms});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(late.error().outcome, Outcome::kMayHaveHappened);
  server.resume();
  mine.proclaim("three").or_throw();
  EXPECT_EQ(election.leader().or_throw()->value, "three");
  EXPECT_TRUE(mine.held());
}

TEST(Leadership, HandsOverWhenResigned) {
  TestServer server;
  const Client client = server.client();
  const auto one = Session::open(client).or_throw();
  const auto two = Session::open(client).or_throw();
  auto mine = Election(one, "e").campaign("one").or_throw();
  auto next = std::async(std::launch::async, [&] { return Election(two, "e").campaign("two", {.timeout = 30s}); });
  ASSERT_TRUE(keys_become(client, "e/", 2));
  EXPECT_EQ(Election(two, "e").leader().or_throw()->value, "one");
  mine.resign().or_throw();
  {
    const auto theirs = next.get().or_throw();
    EXPECT_GT(theirs.token(), mine.token());
    EXPECT_EQ(Election(one, "e").leader().or_throw()->value, "two");
    EXPECT_FALSE(mine.lost().stop_requested());
    EXPECT_EQ(mine.resign().error().code, Code::kAborted);
    EXPECT_EQ(mine.proclaim("x").error().code, Code::kAborted);
  }  // the destructor resigns in the background
  EXPECT_TRUE(eventually([&] { return !Election(one, "e").leader().or_throw().has_value(); }));
}

TEST(Leadership, CommitsUnderItsOwnership) {
  TestServer server;
  const Client client = server.client();
  const auto session = Session::open(client).or_throw();
  auto mine = Election(session, "e").campaign("v").or_throw();
  EXPECT_TRUE(mine.commit(Txn().then(op::put("state", "1"))).or_throw().succeeded);
  EXPECT_FALSE(mine.commit(Txn().when(compare::missing("state")).then(op::put("state", "2"))).or_throw().succeeded);
  mine.proclaim("w").or_throw();  // the same term
  EXPECT_TRUE(mine.commit(Txn().then(op::put("state", "3"))).or_throw().succeeded);
  mine.resign().or_throw();
  const auto refused = mine.commit(Txn().then(op::put("state", "4")));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kAborted);
  EXPECT_EQ(client.get("state").or_throw()->value, "3");
}

TEST(Election, LeavesNoKeyBehindWhenACampaignEnds) {
  TestServer server;
  const Client client = server.client();
  const auto one = Session::open(client).or_throw();
  const auto two = Session::open(client).or_throw();
  const auto mine = Election(one, "e").campaign("one").or_throw();
  const auto late = Election(two, "e").campaign("two", {.timeout = 200ms});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(late.error().outcome, Outcome::kNothingHappened);
  EXPECT_TRUE(keys_become(client, "e/", 1));
  std::stop_source stop;
  auto waiting =
      std::async(std::launch::async, [&] { return Election(two, "e").campaign("two", {.stop = stop.get_token()}); });
  ASSERT_TRUE(keys_become(client, "e/", 2));
  stop.request_stop();
  const auto stopped = waiting.get();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
  EXPECT_TRUE(keys_become(client, "e/", 1));
  EXPECT_TRUE(mine.held());
}

TEST(Election, EndsACampaignWhoseSessionOrKeyIsLost) {
  TestServer server;
  const Client client = server.client();
  const auto one = Session::open(client).or_throw();
  auto two = Session::open(client).or_throw();
  auto mine = Election(one, "e").campaign("one").or_throw();
  auto removed = std::async(std::launch::async, [&] { return Election(two, "e").campaign("two"); });
  ASSERT_TRUE(keys_become(client, "e/", 2));
  const auto last =
      client
          .range(
              {.key = "e/", .prefix = true, .limit = 1, .order = SortOrder::kDescend, .sort_by = SortTarget::kCreate})
          .or_throw();
  (void)client.del(last.kvs.front().key).or_throw();
  mine.resign().or_throw();  // its turn: and it finds that it is not in the queue any more
  EXPECT_EQ(removed.get().error().code, Code::kAborted);
  mine = Election(one, "e").campaign("one", {.timeout = 5s}).or_throw();
  auto lost = std::async(std::launch::async, [&] { return Election(two, "e").campaign("two"); });
  ASSERT_TRUE(keys_become(client, "e/", 2));
  (void)two.close().or_throw();
  EXPECT_EQ(lost.get().error().code, Code::kAborted);
  EXPECT_EQ(Election(two, "e").campaign("two").error().code, Code::kAborted);
}

TEST(Election, NamesTheOwnerOfAKeyBelowItsName) {
  TestServer server;
  const Client client = server.client();
  const auto session = Session::open(client).or_throw();
  const auto below = Election(session, "a/b").campaign("v").or_throw();
  const Election election(session, "a");
  for (const Error& error : {election.campaign("v", {.timeout = 5s}).error(), election.leader().error()}) {
    EXPECT_EQ(error.code, Code::kFailedPrecondition);
    EXPECT_NE(error.message.find(below.key()), std::string::npos) << error.message;
  }
}

TEST(Election, StaysBelowTheKeyPrefix) {
  TestServer server;
  const Client all = server.client();
  auto options = server.options();
  options.key_prefix = "team/";
  const Client client = Client::open(options).or_throw();
  const auto session = Session::open(client).or_throw();
  const Election election(session, "e");
  auto mine = election.campaign("v").or_throw();
  EXPECT_TRUE(mine.key().starts_with("e/"));
  EXPECT_TRUE(all.get("team/" + mine.key()).or_throw().has_value());
  EXPECT_EQ(election.leader().or_throw()->key, mine.key());
  (void)all.del("team/" + mine.key()).or_throw();
  EXPECT_TRUE(eventually([&] { return mine.lost().stop_requested(); }));
}

TEST(Election, GoesOnThroughARestartOfTheServer) {
  TestServer server;
  const Client client = server.client();
  const auto one = Session::open(client, {.ttl = 20s}).or_throw();
  const auto two = Session::open(client, {.ttl = 20s}).or_throw();
  auto mine = Election(one, "e").campaign("one").or_throw();
  auto waiting = std::async(std::launch::async, [&] { return Election(two, "e").campaign("two", {.timeout = 30s}); });
  ASSERT_TRUE(keys_become(client, "e/", 2));
  server.kill();
  server.start();
  EXPECT_TRUE(mine.held());
  mine.proclaim("still", {.timeout = 10s}).or_throw();
  mine.resign({.timeout = 10s}).or_throw();
  const auto theirs = waiting.get().or_throw();
  EXPECT_GT(theirs.token(), mine.token());
  EXPECT_TRUE(theirs.held());
}

}  // namespace
}  // namespace conclave
