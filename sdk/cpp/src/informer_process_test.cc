#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>

#include "conclave/informer.h"
#include "core.h"
#include "test_informer.h"
#include "test_proxy.h"
#include "test_server.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using testing::kGone;
using testing::Now;
using testing::Numbers;
using testing::options;
using testing::TestServer;
using testing::Told;

TEST(Informer, ReconcilesEachKeyWhenAllWereReadAndAgainWhenItChanges) {
  TestServer server;
  const Client client = server.client();
  constexpr int kKeys = 50;
  for (int i = 0; i < kKeys; ++i) (void)client.put("n/" + std::to_string(i), std::to_string(i)).or_throw();
  (void)client.put("m", "1").or_throw();
  Told told;
  std::mutex mutex;
  std::set<std::size_t> sizes;
  std::optional<Numbers> informer;  // guarded by the mutex, as sizes: workers look into it
  auto with = options(told, 4);
  with.reconcile = [&](const std::string& key, const Now& now) {
    {
      const std::lock_guard lock(mutex);
      sizes.insert(informer->snapshot().size());
      if (now) {
        EXPECT_GE(informer->get(key)->mod_revision, now->mod_revision);
      }
    }
    return told.reconcile(key, now);
  };
  {
    const std::lock_guard lock(mutex);
    informer.emplace(Numbers::open(client, with).or_throw());
  }
  informer->wait_ready({.timeout = 10s}).or_throw();
  ASSERT_TRUE(told.wait([&] { return told.state.size() == kKeys; }));
  const auto all = informer->snapshot();
  EXPECT_TRUE(all.ready());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kKeys));
  int sum = 0;
  all.for_each([&](const Informed<int>& one) {
    EXPECT_EQ(one.key, "n/" + std::to_string(one.value));
    sum += one.value;
  });
  EXPECT_EQ(sum, kKeys * (kKeys - 1) / 2);

  const auto stored = client.put("n/7", "700").or_throw();
  ASSERT_TRUE(told.wait([&] { return told.state["n/7"] == 700; }));
  EXPECT_EQ(informer->get("n/7")->mod_revision, stored.revision);
  EXPECT_EQ(informer->snapshot().revision(), stored.revision);
  EXPECT_EQ(informer->snapshot().find("n/7")->version, 2);
  EXPECT_EQ(all.find("n/7")->value, 7);  // an old snapshot stays what it is
  EXPECT_EQ(informer->get("m"), nullptr);
  EXPECT_EQ(told.turns.size(), static_cast<std::size_t>(kKeys) + 1);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(sizes, std::set<std::size_t>{kKeys});  // never before the whole was there
}

TEST(Informer, TellsOfDeletedKeysWithoutAnObject) {
  TestServer server;
  const Client client = server.client();
  Told told;
  auto informer = Numbers::open(client, options(told)).or_throw();
  (void)client.put("n/a", "1").or_throw();
  (void)client.put("n/b", "2").or_throw();
  ASSERT_TRUE(told.wait([&] { return told.state.size() == 2; }));
  (void)client.del("n/", {.prefix = true}).or_throw();
  ASSERT_TRUE(told.wait([&] { return told.state["n/a"] == kGone && told.state["n/b"] == kGone; }));
  EXPECT_EQ(informer.get("n/a"), nullptr);
  EXPECT_EQ(informer.snapshot().size(), 0u);
}

TEST(Informer, ChangesDuringATurnAreOneTurnMore) {
  TestServer server;
  const Client client = server.client();
  Told told;
  told.held.insert("n/a");
  auto informer = Numbers::open(client, options(told, 4)).or_throw();
  (void)client.put("n/a", "1").or_throw();
  ASSERT_TRUE(told.wait([&] { return told.running.contains("n/a"); }));
  Revision last{};
  for (int i = 2; i <= 20; ++i) last = client.put("n/a", std::to_string(i)).or_throw().revision;
  (void)client.put("n/b", "1").or_throw();  // comes after all of these
  ASSERT_TRUE(told.wait([&] { return told.state.contains("n/b"); }));
  EXPECT_GT(informer.snapshot().revision(), last);
  EXPECT_EQ(informer.get("n/a")->value, 20);
  told.change([&] { told.held.clear(); });
  ASSERT_TRUE(told.wait([&] { return told.state["n/a"] == 20 && told.running.empty(); }));
  EXPECT_EQ(told.turns, (std::vector<std::pair<std::string, int>>{{"n/a", 1}, {"n/b", 1}, {"n/a", 20}}));
  EXPECT_FALSE(told.overlap);
}

TEST(Informer, NeverHasTwoWorkersOnOneKeyButOnDifferentOnes) {
  TestServer server;
  const Client client = server.client();
  Told told;
  told.held = {"n/0", "n/1", "n/2"};
  auto informer = Numbers::open(client, options(told, 8)).or_throw();
  for (int key = 0; key < 3; ++key) (void)client.put("n/" + std::to_string(key), "0").or_throw();
  ASSERT_TRUE(told.wait([&] { return told.most == 3; }));
  told.change([&] { told.held.clear(); });
  for (int i = 1; i <= 200; ++i) (void)client.put("n/" + std::to_string(i % 3), std::to_string(i)).or_throw();
  ASSERT_TRUE(
      told.wait([&] { return told.state["n/0"] == 198 && told.state["n/1"] == 199 && told.state["n/2"] == 200; }));
  EXPECT_FALSE(told.overlap);
}

TEST(Informer, ReportsWhatItCannotDecodeAndLeavesItOut) {
  TestServer server;
  const Client client = server.client();
  (void)client.put("n/a", "1").or_throw();
  (void)client.put("n/b", "bad").or_throw();
  Told told;
  auto informer = Numbers::open(client, options(told)).or_throw();
  informer.wait_ready({.timeout = 10s}).or_throw();
  ASSERT_TRUE(told.wait([&] { return told.state.contains("n/a") && !told.errors.empty(); }));
  EXPECT_EQ(told.errors[0], (std::pair<std::string, std::string>("n/b", "not a number")));
  EXPECT_EQ(informer.snapshot().size(), 1u);
  EXPECT_EQ(informer.snapshot().refused(), 1u);

  // A good value that turns bad is not taken for gone; an exception is a refusal like another.
  (void)client.put("n/a", "text").or_throw();
  ASSERT_TRUE(told.wait([&] { return told.errors.size() == 2; }));
  EXPECT_EQ(told.errors[1].first, "n/a");
  EXPECT_EQ(told.errors[1].second.find("decode threw: "), 0u) << told.errors[1].second;
  EXPECT_EQ(informer.get("n/a"), nullptr);
  EXPECT_EQ(informer.snapshot().refused(), 2u);
  (void)client.put("n/b", "2").or_throw();
  (void)client.put("n/c", "3").or_throw();
  ASSERT_TRUE(told.wait([&] { return told.state.contains("n/b") && told.state.contains("n/c"); }));
  EXPECT_EQ(told.count("n/a", kGone), 0);
  EXPECT_EQ(informer.snapshot().refused(), 1u);
  (void)client.del("n/a").or_throw();  // now it is gone
  ASSERT_TRUE(told.wait([&] { return told.count("n/a", kGone) == 1; }));
  EXPECT_EQ(informer.snapshot().refused(), 0u);
}

TEST(Informer, TriesAgainAfterErrorsWithABackOffOfThatKey) {
  TestServer server;
  const Client client = server.client();
  Told told;
  told.failures = 6;
  auto informer = Numbers::open(client, options(told, 1)).or_throw();
  (void)client.put("n/a", "1").or_throw();
  ASSERT_TRUE(told.wait([&] { return told.count("n/a", 1) == 7 && told.errors.size() == 6; }));
  EXPECT_EQ(told.errors[5], (std::pair<std::string, std::string>("n/a", "not now")));

  // The back-off of one key keeps neither the worker from others nor its own change waiting.
  auto patient = options(told, 1);
  std::promise<void> other;
  std::promise<void> changed;
  patient.prefix = "p/";
  patient.retry_max = 1h;
  patient.reconcile = [&](const std::string& key, const Now& now) -> Result<Requeue> {
    if (key == "p/other") {
      other.set_value();
    } else if (now->value == 2) {
      changed.set_value();
    } else {
      throw std::runtime_error("boom");
    }
    return Requeue::done();
  };
  told.change([&] { told.errors.clear(); });
  auto second = Numbers::open(client, patient).or_throw();
  (void)client.put("p/a", "1").or_throw();
  ASSERT_TRUE(told.wait([&] { return told.errors.size() >= 3; }));
  EXPECT_EQ(told.errors[0], (std::pair<std::string, std::string>("p/a", "reconcile threw: boom")));
  (void)client.put("p/other", "1").or_throw();
  EXPECT_EQ(other.get_future().wait_for(20s), std::future_status::ready);
  (void)client.put("p/a", "2").or_throw();
  EXPECT_EQ(changed.get_future().wait_for(20s), std::future_status::ready);
}

TEST(Informer, LooksAgainWhenAskedToAndAtEachResync) {
  TestServer server;
  const Client client = server.client();
  (void)client.put("n/a", "1").or_throw();
  (void)client.put("n/b", "2").or_throw();
  Told told;
  auto again = options(told);
  again.reconcile = [&](const std::string& key, const Now& now) -> Result<Requeue> {
    (void)told.reconcile(key, now);
    return key == "n/a" ? Requeue::in(20ms) : Requeue::done();
  };
  {
    auto informer = Numbers::open(client, again).or_throw();
    ASSERT_TRUE(told.wait([&] { return told.count("n/a", 1) >= 5; }));
    EXPECT_EQ(told.count("n/b", 2), 1);
  }
  Told synced;
  auto resync = options(synced);
  resync.resync = 50ms;
  auto informer = Numbers::open(client, resync).or_throw();
  ASSERT_TRUE(synced.wait([&] { return synced.count("n/a", 1) >= 4 && synced.count("n/b", 2) >= 4; }));
}

TEST(Informer, FollowsThroughRestartsOfTheServer) {
  TestServer server;
  const Client client = server.client();
  (void)client.put("n/stays", "1").or_throw();
  Told told;
  auto informer = Numbers::open(client, options(told)).or_throw();
  informer.wait_ready({.timeout = 10s}).or_throw();
  Revision before = informer.snapshot().revision();
  for (int round = 1; round < 4; ++round) {
    const std::string key = "n/r" + std::to_string(round);
    (void)client.put(key, "1").or_throw();
    ASSERT_TRUE(told.wait([&] { return told.state[key] == 1; }));
    server.kill();
    server.start();
    (void)client.del(key).or_throw();
    (void)client.put("n/last", std::to_string(round)).or_throw();
    ASSERT_TRUE(told.wait([&] { return told.state[key] == kGone && told.state["n/last"] == round; })) << round;
    EXPECT_GT(informer.snapshot().revision(), before);
    before = informer.snapshot().revision();
  }
  EXPECT_EQ(informer.snapshot().size(), 2u);
  EXPECT_EQ(informer.get("n/stays")->value, 1);
  EXPECT_EQ(told.count("n/stays", 1), 1);  // nothing comes twice
}

TEST(Informer, ReadsAllAgainWhenTheHistoryWasCompactedWhileItWasAway) {
  TestServer server;
  testing::TestProxy proxy(server.port());
  const Client near = server.client();
  const Client far = Client::open({.endpoints = {proxy.endpoint()}}).or_throw();
  internal::Access::core(far).tuning().watch_create = 200ms;
  for (const char* key : {"n/goes", "n/changes", "n/stays"}) (void)near.put(key, "1").or_throw();
  Told told;
  auto informer = Numbers::open(far, options(told)).or_throw();
  ASSERT_TRUE(told.wait([&] { return told.state.size() == 3; }));
  proxy.black_hole(true);
  server.kill();  // ends the watch, and the next one finds nobody
  server.start();
  (void)near.del("n/goes").or_throw();
  (void)near.put("n/changes", "2").or_throw();
  const auto last = near.put("n/new", "3").or_throw().revision;
  (void)near.compact(last).or_throw();
  EXPECT_EQ(informer.get("n/goes")->value, 1);
  proxy.black_hole(false);
  ASSERT_TRUE(told.wait([&] {
    return told.state["n/goes"] == kGone && told.state["n/changes"] == 2 && told.state["n/new"] == 3 &&
           told.count("n/stays", 1) == 2;
  }));
  EXPECT_EQ(informer.snapshot().revision(), last);
  EXPECT_EQ(informer.snapshot().size(), 3u);
}

}  // namespace
}  // namespace conclave
