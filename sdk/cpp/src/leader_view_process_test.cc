#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <vector>

#include "conclave/conclave.h"
#include "test_server.h"
#include "test_wait.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::keys_become;
using testing::TestServer;

// What on_change told, in order; "" is nobody.
class Told {
 public:
  auto listener() {
    return [this](const std::optional<Leader>& now) {
      std::scoped_lock lock(mutex_);
      values_.push_back(now ? now->value : "");
      wake_.notify_all();
    };
  }
  bool wait_for(const std::string& value, std::chrono::milliseconds limit = 10s) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, limit, [&] { return !values_.empty() && values_.back() == value; });
  }
  std::vector<std::string> values() {
    std::scoped_lock lock(mutex_);
    return values_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::string> values_;
};

TEST(LeaderView, SeesLeadersComeProclaimAndGo) {
  TestServer server;
  const Client client = server.client();
  Told told;
  const auto view = LeaderView::open(client, {.election = "e", .on_change = told.listener()}).or_throw();
  view.wait_ready({.timeout = 5s}).or_throw();
  EXPECT_FALSE(view.leader().has_value());
  ASSERT_TRUE(told.wait_for(""));
  const auto one = Session::open(client).or_throw();
  const auto two = Session::open(client).or_throw();
  auto mine = Election(one, "e").campaign("one").or_throw();
  ASSERT_TRUE(told.wait_for("one"));
  EXPECT_EQ(view.leader(), (Leader{"one", mine.key(), mine.token(), one.lease()}));
  auto next = std::async(std::launch::async, [&] { return Election(two, "e").campaign("two", {.timeout = 30s}); });
  ASSERT_TRUE(keys_become(client, "e/", 2));
  mine.proclaim("one again").or_throw();
  ASSERT_TRUE(told.wait_for("one again"));
  EXPECT_EQ(view.leader()->token, mine.token());
  mine.resign().or_throw();
  ASSERT_TRUE(told.wait_for("two"));
  auto theirs = next.get().or_throw();
  EXPECT_EQ(view.leader()->token, theirs.token());
  theirs.resign().or_throw();
  ASSERT_TRUE(told.wait_for(""));
  // Each once, and nothing for the one who only joined the queue.
  EXPECT_EQ(told.values(), (std::vector<std::string>{"", "one", "one again", "two", ""}));
}

TEST(LeaderView, PublishesFirstAndTellsTheNewest) {
  TestServer server;
  const Client client = server.client();
  const auto session = Session::open(client).or_throw();
  auto mine = Election(session, "e").campaign("0").or_throw();
  std::promise<void> go;
  std::shared_future<void> ready = go.get_future().share();
  std::promise<const LeaderView*> view_is;
  std::shared_future<const LeaderView*> the_view = view_is.get_future().share();
  std::atomic<int> calls{0};
  std::atomic<bool> older{false};
  std::mutex mutex;
  std::string last;
  auto view = LeaderView::open(client, {.election = "e",
                                        .on_change =
                                            [&](const std::optional<Leader>& now) {
                                              ++calls;
                                              const int seen = std::stoi(the_view.get()->leader()->value);
                                              if (seen < std::stoi(now->value)) older = true;
                                              ready.wait();
                                              std::scoped_lock lock(mutex);
                                              last = now->value;
                                            }})
                  .or_throw();
  view_is.set_value(&view);
  ASSERT_TRUE(eventually([&] { return calls == 1; }));
  constexpr int kProclaimed = 20;
  for (int i = 1; i <= kProclaimed; ++i) mine.proclaim(std::to_string(i)).or_throw();
  ASSERT_TRUE(eventually([&] { return view.leader()->value == std::to_string(kProclaimed); }));
  EXPECT_EQ(calls, 1);  // the first one still runs
  go.set_value();
  EXPECT_TRUE(eventually([&] {
    std::scoped_lock lock(mutex);
    return last == std::to_string(kProclaimed);
  }));
  EXPECT_EQ(calls, 2);
  EXPECT_FALSE(older);
}

TEST(LeaderView, FollowsThroughRestartsAndCompaction) {
  TestServer server;
  const Client client = server.client();
  const auto session = Session::open(client, {.ttl = 60s}).or_throw();
  auto mine = Election(session, "e").campaign("0").or_throw();
  const auto view = LeaderView::open(client, {.election = "e"}).or_throw();
  view.wait_ready({.timeout = 5s}).or_throw();
  for (int round = 1; round <= 3; ++round) {
    const auto before = view.snapshot();
    server.kill();
    EXPECT_EQ(view.leader(), before->leader);  // what it knew stays
    server.start();
    mine.proclaim(std::to_string(round), {.timeout = 10s}).or_throw();
    (void)client.compact(client.put("other", "x").or_throw().revision).or_throw();
    ASSERT_TRUE(eventually([&] { return view.leader()->value == std::to_string(round); }));
    EXPECT_EQ(view.leader()->token, mine.token());
    EXPECT_GT(view.snapshot()->revision, before->revision);
  }
  mine.resign({.timeout = 10s}).or_throw();
  EXPECT_TRUE(eventually([&] { return !view.leader().has_value(); }));
}

TEST(LeaderView, StartsByItselfOnceTheClusterIsThere) {
  TestServer server;
  server.kill();
  const Client client = server.client();
  Told told;
  const auto view = LeaderView::open(client, {.election = "e", .on_change = told.listener()}).or_throw();
  const auto early = view.wait_ready({.timeout = 300ms});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(number(view.snapshot()->revision), 0);
  EXPECT_TRUE(told.values().empty());
  server.start();
  ASSERT_TRUE(view.wait_ready({.timeout = 10s}));
  EXPECT_TRUE(told.wait_for(""));
}

TEST(LeaderView, TakesNobodyForTheLeaderBehindAKeyBelowItsName) {
  TestServer server;
  const Client client = server.client();
  const auto view = LeaderView::open(client, {.election = "a"}).or_throw();
  const auto before = client.put("a/b/1", "x").or_throw().revision;
  (void)client.put("a/1", "later").or_throw();
  ASSERT_TRUE(eventually([&] { return view.snapshot()->revision > before; }));
  EXPECT_FALSE(view.leader().has_value());
  (void)client.del("a/b/1").or_throw();
  EXPECT_TRUE(eventually([&] { return view.leader() && view.leader()->value == "later"; }));
}

TEST(LeaderView, MayBeDestroyedFromInsideItsCallbackAndIsSilentAfterwards) {
  TestServer server;
  const Client client = server.client();
  auto view = std::make_shared<std::optional<LeaderView>>();
  std::promise<void> go;
  std::promise<void> done;
  std::atomic<int> calls{0};
  view->emplace(LeaderView::open(client, {.election = "e",
                                          .on_change =
                                              [&, ready = go.get_future().share(), view](const auto&) {
                                                ++calls;
                                                ready.wait();
                                                view->reset();
                                                done.set_value();
                                              }})
                    .or_throw());
  ASSERT_TRUE(eventually([&] { return calls == 1; }));
  (void)client.put("e/1", "x").or_throw();
  go.set_value();
  ASSERT_EQ(done.get_future().wait_for(10s), std::future_status::ready);
  std::promise<void> seen;  // another view has seen the next change: the first one would have, too
  const auto other = LeaderView::open(client, {.election = "e",
                                               .on_change =
                                                   [&](const auto& now) {
                                                     if (now && now->value == "y") seen.set_value();
                                                   }})
                         .or_throw();
  (void)client.put("e/1", "y").or_throw();
  ASSERT_EQ(seen.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_EQ(calls, 1);
}

TEST(LeaderView, EndsWithItsClientAndRefusesBadArguments) {
  TestServer server;
  Client client = server.client();
  EXPECT_EQ(LeaderView::open(client, {}).error().code, Code::kInvalidArgument);
  (void)client.put("e/1", "x").or_throw();
  const auto view = LeaderView::open(client, {.election = "e"}).or_throw();
  view.wait_ready({.timeout = 5s}).or_throw();
  client.close().or_throw();
  EXPECT_EQ(view.leader()->value, "x");
  EXPECT_EQ(LeaderView::open(client, {.election = "e"}).error().code, Code::kFailedPrecondition);
}

}  // namespace
}  // namespace conclave
