#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "conclave/watch.h"
#include "core.h"
#include "test_proxy.h"
#include "test_server.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using internal::Access;
using testing::TestProxy;
using testing::TestServer;

struct Seen {
  std::int64_t revision;
  std::string key;
  std::string value;
  EventType type;
  friend bool operator==(const Seen&, const Seen&) = default;
};

void append(std::vector<Seen>& seen, const WatchBatch& batch) {
  EXPECT_FALSE(batch.gap.has_value()) << batch.gap->reason;
  for (const Event& event : batch.events) {
    EXPECT_EQ(event.kv.mod_revision, batch.revision);
    seen.push_back({number(batch.revision), event.kv.key, event.kv.value, event.type});
  }
}

// What happened from `from` to `to`, read once more from the history.
std::vector<Seen> history(const Client& client, const std::string& prefix, Revision from, Revision to) {
  auto watch = Watch::open(client, {.key = prefix, .prefix = true, .from = from}).or_throw();
  std::vector<Seen> seen;
  while (seen.empty() || seen.back().revision < number(to)) append(seen, watch.next({.timeout = 10s}).or_throw());
  return seen;
}

TEST(Watch, GivesTheEventsOfOneRevisionTogether) {
  TestServer server;
  const Client client = server.client();
  (void)client.put("app/a", "1").or_throw();
  auto watch = Watch::open(client, {.key = "app/", .prefix = true, .prev_kv = true}).or_throw();
  watch.wait_ready({.timeout = 5s}).or_throw();
  (void)client.put("other", "x").or_throw();
  const auto txn = client.commit(Txn().then(op::put("app/a", "2"), op::put("app/b", "1"))).or_throw();
  (void)client.del("app/a").or_throw();
  const auto both = watch.next({.timeout = 5s}).or_throw();
  EXPECT_EQ(both.revision, txn.revision);
  ASSERT_EQ(both.events.size(), 2u);
  EXPECT_EQ(both.events[0].previous->value, "1");
  EXPECT_TRUE(both.events[1].created());
  const auto gone = watch.next({.timeout = 5s}).or_throw();
  ASSERT_EQ(gone.events.size(), 1u);
  EXPECT_EQ(gone.events[0].type, EventType::kDelete);
  EXPECT_EQ(gone.events[0].kv.key, "app/a");
  EXPECT_EQ(watch.synced(), gone.revision);
  EXPECT_EQ(watch.next({.timeout = 20ms}).error().code, Code::kDeadlineExceeded);
}

TEST(Watch, StartsAtAPastRevisionAndFilters) {
  TestServer server;
  const Client client = server.client();
  const auto first = client.put("a", "1").or_throw().revision;
  (void)client.put("a", "2").or_throw();
  (void)client.del("a").or_throw();
  auto watch = Watch::open(client, {.key = "a", .from = first, .puts = false}).or_throw();
  const auto batch = watch.next({.timeout = 5s}).or_throw();
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_EQ(batch.events[0].type, EventType::kDelete);
  EXPECT_EQ(number(batch.revision), number(first) + 2);
}

TEST(Watch, SeesEachEventOnceThroughKillsOfTheServerWhileOthersWrite) {
  TestServer server;
  const Client client = server.client();
  auto watch = Watch::open(client, {.key = "w/", .prefix = true}).or_throw();
  watch.wait_ready({.timeout = 5s}).or_throw();
  const Revision begin{number(client.put("begin", "").or_throw().revision) + 1};
  std::atomic<bool> stop{false};
  std::atomic<int> acknowledged{0};
  std::vector<std::jthread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      const Client own = server.client();
      for (int i = 0; !stop; ++i) {
        const auto put = own.put("w/" + std::to_string(w), std::to_string(i), {.call = {.timeout = 500ms}});
        if (put) ++acknowledged;
      }
    });
  }
  std::vector<Seen> seen;
  for (int kills = 0; kills < 4; ++kills) {
    const int before = acknowledged;
    while (acknowledged < before + 50) append(seen, watch.next({.timeout = 10s}).or_throw());
    server.kill();
    server.start();
  }
  stop = true;
  writers.clear();
  const Revision end = client.put("w/end", "").or_throw().revision;
  while (seen.back().revision < number(end)) append(seen, watch.next({.timeout = 10s}).or_throw());
  EXPECT_EQ(seen, history(client, "w/", begin, end));
  EXPECT_GT(acknowledged, 200);
}

TEST(Watch, TellsAGapWhenTheHistoryIsCompactedAndGoesOn) {
  TestServer server;
  const Client client = server.client();
  const auto first = client.put("a", "1").or_throw().revision;
  for (int i = 0; i < 5; ++i) (void)client.put("a", std::to_string(i)).or_throw();
  const auto last = client.put("a", "last").or_throw().revision;
  (void)client.compact(last).or_throw();
  auto watch = Watch::open(client, {.key = "a", .from = first}).or_throw();
  const auto gap = watch.next({.timeout = 5s}).or_throw();
  ASSERT_TRUE(gap.gap.has_value());
  EXPECT_EQ(number(gap.gap->after), number(first) - 1);
  EXPECT_EQ(number(gap.gap->resume), number(last) + 1);
  EXPECT_TRUE(gap.events.empty());
  const auto next = client.put("a", "after").or_throw().revision;
  const auto batch = watch.next({.timeout = 5s}).or_throw();
  EXPECT_EQ(batch.revision, next);
}

TEST(Watch, NoticesADeadConnectionByItself) {
  TestServer server;
  TestProxy proxy(server.port());
  const Client writer = server.client();
  const Client client = Client::open({.endpoints = {proxy.endpoint()}}).or_throw();
  Access::core(client).tuning().watch_quiet = 300ms;
  auto watch = Watch::open(client, {.key = "a"}).or_throw();
  watch.wait_ready({.timeout = 5s}).or_throw();
  proxy.kill_connections_silently();
  const auto put = writer.put("a", "1").or_throw().revision;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(watch.next({.timeout = 10s}).or_throw().revision, put);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);
}

TEST(Watch, LearnsTheProgressOfAQuietRangeSoThatACompactionIsNoGap) {
  TestServer server;
  TestProxy proxy(server.port());
  const Client writer = server.client();
  const Client client = Client::open({.endpoints = {proxy.endpoint()}}).or_throw();
  Access::core(client).tuning().watch_quiet = 200ms;
  auto watch = Watch::open(client, {.key = "quiet"}).or_throw();
  watch.wait_ready({.timeout = 5s}).or_throw();
  const auto busy = writer.put("busy", "1").or_throw().revision;
  (void)writer.put("busy", "2").or_throw();
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (watch.synced() < busy && std::chrono::steady_clock::now() < until) EXPECT_FALSE(watch.next({.timeout = 20ms}));
  EXPECT_GE(number(watch.synced()), number(busy));
}

TEST(Watch, LeavesAMemberThatHangs) {
  TestServer hanging;
  TestServer server;
  auto options = server.options();
  options.endpoints.push_back(hanging.endpoint());
  hanging.pause();
  for (int i = 0; i < 4; ++i) {
    const Client client = Client::open(options).or_throw();
    Access::core(client).tuning().watch_create = 300ms;
    auto watch = Watch::open(client, {.key = "a"}).or_throw();
    EXPECT_TRUE(watch.wait_ready({.timeout = 5s}));
  }
  hanging.resume();
}

TEST(Watch, KeepsItsMemoryBoundedForAReaderThatDoesNotRead) {
  TestServer server;
  const Client client = server.client();
  Access::core(client).tuning().watch_queue_bytes = 64 << 10;
  auto watch = Watch::open(client, {.key = "big/", .prefix = true}).or_throw();
  watch.wait_ready({.timeout = 5s}).or_throw();
  const std::string value(8 << 10, 'x');
  const Revision begin{number(client.put("begin", "").or_throw().revision) + 1};
  Revision end{};
  for (int i = 0; i < 100; ++i) end = client.put("big/" + std::to_string(i), value).or_throw().revision;
  std::vector<Seen> seen;
  while (seen.empty() || seen.back().revision < number(end)) append(seen, watch.next({.timeout = 10s}).or_throw());
  EXPECT_EQ(seen, history(client, "big/", begin, end));
}

TEST(Watch, EndsWithItsClient) {
  TestServer server;
  Client client = server.client();
  auto watch = Watch::open(client, {.key = "a"}).or_throw();
  auto next = std::async(std::launch::async, [&] { return watch.next(); });
  ASSERT_TRUE(client.close());
  const auto ended = next.get();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "client is closed");
  EXPECT_EQ(Watch::open(client, {.key = "a"}).error().code, Code::kFailedPrecondition);
}

TEST(Watch, RefusesWhatNeverWorks) {
  const Client client = Client::open({.endpoints = {"http://127.0.0.1:1"}}).or_throw();
  EXPECT_EQ(Watch::open(client, {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Watch::open(client, {.key = "a", .puts = false, .deletes = false}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Watch::open(client, {.key = "a", .prefix = true, .range_end = "b"}).error().code, Code::kInvalidArgument);
}

TEST(Subscription, PushesInOrderAndNeverAfterItsEnd) {
  TestServer server;
  const Client client = server.client();
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<Seen> seen;
  std::atomic<bool> over{false};
  {
    auto subscription = subscribe(client, {.key = "s/", .prefix = true}, [&](const WatchBatch& batch) {
                          EXPECT_FALSE(over);
                          std::scoped_lock lock(mutex);
                          append(seen, batch);
                          wake.notify_all();
                          if (seen.size() == 1) throw std::runtime_error("a handler's own affair");
                        }).or_throw();
    subscription.wait_ready({.timeout = 5s}).or_throw();
    for (int i = 0; i < 50; ++i) (void)client.put("s/k", std::to_string(i)).or_throw();
    std::unique_lock lock(mutex);
    EXPECT_TRUE(wake.wait_for(lock, 10s, [&] { return seen.size() >= 50; }));
    lock.unlock();
    (void)client.put("s/k", "late").or_throw();
  }
  over = true;
  (void)client.put("s/k", "later").or_throw();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)].value, std::to_string(i));
}

TEST(Subscription, MayBeDestroyedFromInsideItsHandler) {
  TestServer server;
  const Client client = server.client();
  std::promise<void> done;
  auto own = std::make_shared<std::optional<Subscription>>();
  own->emplace(subscribe(client, {.key = "a"}, [&, own](const WatchBatch&) {
                 own->reset();
                 done.set_value();
               }).or_throw());
  (*own)->wait_ready({.timeout = 5s}).or_throw();
  (void)client.put("a", "1").or_throw();
  (void)client.put("a", "2").or_throw();
  EXPECT_EQ(done.get_future().wait_for(5s), std::future_status::ready);
}

}  // namespace
}  // namespace conclave
