#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "conclave/client.h"
#include "conclave/session.h"
#include "test_server.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using testing::TestServer;

TEST(Client, PutsGetsAndDeletesAnyBytes) {
  TestServer server;
  const Client client = server.client();
  const std::string key("a\0\xff/k", 5);
  const std::string value("v\n\0\x80", 4);
  EXPECT_FALSE(client.get(key).or_throw().has_value());
  const auto put = client.put(key, value).or_throw();
  const auto got = client.get(key).or_throw();
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->key, key);
  EXPECT_EQ(got->value, value);
  EXPECT_EQ(got->mod_revision, put.revision);
  EXPECT_EQ(got->version, 1);
  const auto again = client.put(key, "", {.prev_kv = true}).or_throw();
  ASSERT_TRUE(again.previous.has_value());
  EXPECT_EQ(again.previous->value, value);
  const auto gone = client.del(key, {.prev_kv = true}).or_throw();
  EXPECT_EQ(gone.deleted, 1);
  ASSERT_EQ(gone.previous.size(), 1u);
  EXPECT_EQ(gone.previous[0].value, "");
  EXPECT_EQ(client.state(), ConnectionState::kConnected);
  EXPECT_GT(number(client.status().or_throw().revision), 1);
}

TEST(Client, ReadsRangesWithAllTheirOptions) {
  TestServer server;
  const Client client = server.client();
  for (const char* key : {"app/c", "app/a", "app/b", "apq"}) (void)client.put(key, key).or_throw();
  const auto page = client
                        .range({.key = "app/",
                                .prefix = true,
                                .limit = 2,
                                .order = SortOrder::kDescend,
                                .sort_by = SortTarget::kCreate,
                                .call = {.timeout = 1s}})
                        .or_throw();
  ASSERT_EQ(page.kvs.size(), 2u);
  EXPECT_EQ(page.kvs[0].key, "app/b");
  EXPECT_EQ(page.kvs[1].key, "app/a");
  EXPECT_TRUE(page.more);
  EXPECT_EQ(page.count, 3);
  const auto all = client.range({.key = "", .prefix = true, .count_only = true}).or_throw();
  EXPECT_EQ(all.count, 4);
  EXPECT_EQ(client.range({.key = "app/b", .range_end = std::string(1, '\0'), .keys_only = true}).or_throw().kvs.size(),
            3u);
  EXPECT_EQ(client.get("app/a", {.revision = page.revision}).or_throw()->value, "app/a");
  const auto past = client.get("app/a", {.revision = Revision{number(page.revision) + 100}});
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().code, Code::kOutOfRange);
  EXPECT_EQ(past.error().outcome, Outcome::kNeverWorks);
}

TEST(Client, CommitsTransactionsAlsoNested) {
  TestServer server;
  const Client client = server.client();
  Txn txn;
  txn.when(compare::create_revision("k") == 0).then(op::put("k", "v")).otherwise(op::get("k"));
  EXPECT_TRUE(client.commit(txn).or_throw().succeeded);
  const auto second = client.commit(txn).or_throw();
  EXPECT_FALSE(second.succeeded);
  ASSERT_NE(second.results.at(0).range(), nullptr);
  EXPECT_EQ(second.results[0].range()->kvs.at(0).value, "v");
  Txn outer;
  outer.when(compare::value("k") == "v", compare::version("k") < 2, compare::exists("k"))
      .then(op::txn(Txn().when(compare::missing("z")).then(op::del("k"))), op::put("y", "1"));
  const auto nested = client.commit(outer).or_throw();
  ASSERT_TRUE(nested.succeeded);
  ASSERT_NE(nested.results.at(0).txn(), nullptr);
  EXPECT_TRUE(nested.results[0].txn()->succeeded);
  EXPECT_EQ(nested.results[0].txn()->results.at(0).del()->deleted, 1);
  ASSERT_NE(nested.results.at(1).put(), nullptr);
}

TEST(Client, KeepsItsNamespaceToItself) {
  TestServer server;
  const Client whole = server.client();
  auto options = server.options();
  options.key_prefix = "tenant/";
  const Client inside = Client::open(options).or_throw();
  (void)whole.put("tenanu", "outside").or_throw();
  (void)inside.put("a", "1").or_throw();
  EXPECT_EQ(whole.get("tenant/a").or_throw()->value, "1");
  const auto all = inside.range({.key = "", .range_end = std::string(1, '\0')}).or_throw();
  ASSERT_EQ(all.kvs.size(), 1u);
  EXPECT_EQ(all.kvs[0].key, "a");
  EXPECT_EQ(
      inside.commit(Txn().when(compare::exists("a")).then(op::get("a"))).or_throw().results[0].range()->kvs.size(), 1u);
  EXPECT_EQ(inside.del("", {.prefix = true}).or_throw().deleted, 1);
  EXPECT_TRUE(whole.get("tenanu").or_throw().has_value());
  EXPECT_EQ(inside.get("").error().code, Code::kInvalidArgument);
}

TEST(Client, TellsWhatTheServerRefuses) {
  TestServer server;
  const Client client = server.client();
  const auto lease = client.put("k", "v", {.lease = LeaseId{12345}});
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, Code::kNotFound);
  EXPECT_EQ(lease.error().message, "etcdserver: requested lease not found");
  EXPECT_EQ(lease.error().outcome, Outcome::kNeverWorks);
  EXPECT_EQ(lease.error().endpoint, server.endpoint());
  const auto revision = client.put("k", "v").or_throw().revision;
  (void)client.compact(revision).or_throw();
  EXPECT_EQ(client.get("k", {.revision = Revision{1}}).error().code, Code::kOutOfRange);
}

TEST(Client, GoesOnWithAnotherMemberWhenOneIsDead) {
  TestServer server;
  auto options = server.options();
  options.endpoints.insert(options.endpoints.begin(), "http://127.0.0.1:" + std::to_string(testing::free_port()));
  options.endpoints.push_back("http://127.0.0.1:" + std::to_string(testing::free_port()));
  for (int i = 0; i < 6; ++i) {
    const Client client = Client::open(options).or_throw();
    EXPECT_TRUE(client.put("k", "v"));
    EXPECT_TRUE(client.get("k"));
  }
}

TEST(Client, WritesAgainAfterTheServerRestarted) {
  TestServer server;
  const Client client = server.client();
  (void)client.put("k", "1").or_throw();
  server.kill();
  const auto down = client.put("k", "2", {.call = {.timeout = 300ms}});
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().code, Code::kUnavailable);
  server.start();
  EXPECT_TRUE(client.put("k", "3"));
  EXPECT_EQ(client.get("k").or_throw()->value, "3");
}

TEST(Client, WaitsForAServerThatIsDownAsLongAsItMay) {
  TestServer server;
  const Client client = server.client();
  server.kill();
  for (int i = 0; i < 30; ++i) {  // more than a budget of retries would allow
    EXPECT_EQ(client.get("k", {.call = {.timeout = 60ms}}).error().code, Code::kUnavailable);
  }
  auto put = std::async(std::launch::async, [&client] { return client.put("k", "v", {.call = {.timeout = 20s}}); });
  EXPECT_EQ(put.wait_for(300ms), std::future_status::timeout) << to_string(put.get().error());
  server.start();
  EXPECT_TRUE(put.get());
}

TEST(Client, TellsThatAnUnansweredWriteMayHaveHappened) {
  TestServer server;
  const Client client = server.client();
  (void)client.put("k", "1").or_throw();
  server.pause();
  const auto start = std::chrono::steady_clock::now();
  const auto put = client.put("k", "2", {.call = {.timeout = 300ms}});
  const auto get = client.get("k", {.call = {.timeout = 300ms}});
  const auto took = std::chrono::steady_clock::now() - start;
  server.resume();
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(put.error().outcome, Outcome::kMayHaveHappened);
  ASSERT_FALSE(get);
  EXPECT_EQ(get.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(get.error().outcome, Outcome::kNothingHappened);
  EXPECT_LT(took, 900ms);
}

TEST(Client, EndsACallWhenItIsStopped) {
  TestServer server;
  const Client client = server.client();
  server.pause();
  std::stop_source source;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);  // most likely the call is out by then; before that it must end as well
    source.request_stop();
  });
  const auto get = client.get("k", {.call = {.stop = source.get_token()}});
  server.resume();
  ASSERT_FALSE(get);
  EXPECT_EQ(get.error().code, Code::kCancelled);
}

TEST(Client, SendsNothingWhenThereIsNoTime) {
  TestServer server;
  const Client client = server.client();
  const auto put = client.put("k", "v", {.call = {.timeout = 0ms}});
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(put.error().outcome, Outcome::kNothingHappened);
  EXPECT_FALSE(client.get("k").or_throw().has_value());
}

Result<std::string> one_more(const std::optional<KeyValue>& now) {
  return std::to_string((now ? std::stoi(now->value) : 0) + 1);
}

TEST(ClientUpdate, LosesNoChangeOfSeveralAtOnce) {
  TestServer server;
  const Client client = server.client();
  constexpr int kThreads = 4;
  constexpr int kEach = 25;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&client] {
      for (int n = 0; n < kEach; ++n) (void)client.update("n", one_more, {.call = {.timeout = 60s}}).or_throw();
    });
  }
  threads.clear();
  const auto counted = client.get("n").or_throw();
  EXPECT_EQ(counted->value, std::to_string(kThreads * kEach));
  EXPECT_EQ(counted->version, kThreads * kEach);
}

TEST(ClientUpdate, ReadsAgainWhatChangedMeanwhile) {
  TestServer server;
  const Client client = server.client();
  std::vector<std::string> seen;
  const auto updated = client
                           .update("k",
                                   [&](const std::optional<KeyValue>& now) -> Result<std::string> {
                                     seen.push_back(now ? now->value : "nothing");
                                     if (seen.size() < 4) (void)client.put("k", std::to_string(seen.size())).or_throw();
                                     return seen.back() + "!";
                                   })
                           .or_throw();
  EXPECT_EQ(seen, (std::vector<std::string>{"nothing", "1", "2", "3"}));
  EXPECT_EQ(updated.previous->value, "3");
  const auto stored = client.get("k").or_throw();
  EXPECT_EQ(stored->value, "3!");
  EXPECT_EQ(stored->mod_revision, updated.revision);
}

TEST(ClientUpdate, StoresNothingWhenTheFunctionRefusesOrTheOthersNeverRest) {
  TestServer server;
  const Client client = server.client();
  const auto refused = client.update(
      "k", [](const auto&) -> Result<std::string> { return fail(Code::kNotFound, "there is no such order"); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "there is no such order");
  EXPECT_FALSE(client.get("k").or_throw().has_value());
  EXPECT_EQ(client.update("k", nullptr).error().code, Code::kInvalidArgument);
  EXPECT_EQ(client.update("", one_more).error().code, Code::kInvalidArgument);
  EXPECT_EQ(client.update("k", one_more, {.call = {.timeout = 0ms}}).error().code, Code::kDeadlineExceeded);

  const auto late = client.update("k",
                                  [&](const auto&) -> Result<std::string> {
                                    (void)client.put("k", "theirs").or_throw();
                                    return "ours";
                                  },
                                  {.call = {.timeout = 500ms}});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(client.get("k").or_throw()->value, "theirs");

  std::stop_source source;
  const auto stopped = client.update("k",
                                     [&](const auto&) -> Result<std::string> {
                                       source.request_stop();
                                       return "ours";
                                     },
                                     {.call = {.stop = source.get_token()}});
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
  EXPECT_EQ(client.get("k").or_throw()->value, "theirs");
}

TEST(ClientUpdate, KeepsTheLeaseUnlessTold) {
  TestServer server;
  const Client client = server.client();
  auto session = Session::open(client, {.ttl = 10s}).or_throw();
  (void)client.update("n", one_more, {.lease = session.lease()}).or_throw();
  EXPECT_EQ(client.get("n").or_throw()->lease, session.lease());
  (void)client.update("n", one_more).or_throw();
  EXPECT_EQ(client.get("n").or_throw()->lease, session.lease());
  (void)client.update("n", one_more, {.lease = LeaseId{}}).or_throw();
  EXPECT_EQ(client.get("n").or_throw()->lease, LeaseId{});
}

TEST(ClientUpdate, TellsThatAnUnansweredStoreMayHaveHappened) {
  TestServer server;
  const Client client = server.client();
  int calls = 0;
  const auto updated = client.update("k",
                                     [&](const auto&) -> Result<std::string> {
                                       ++calls;
                                       server.pause();
                                       return "v";
                                     },
                                     {.call = {.timeout = 300ms}});
  server.resume();
  ASSERT_FALSE(updated);
  EXPECT_EQ(updated.error().outcome, Outcome::kMayHaveHappened);
  EXPECT_EQ(calls, 1);
}

TEST(Client, RefusesEverythingOnceClosed) {
  TestServer server;
  Client client = server.client();
  (void)client.put("k", "v").or_throw();
  ASSERT_TRUE(client.close());
  const auto get = client.get("k");
  ASSERT_FALSE(get);
  EXPECT_EQ(get.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(get.error().message, "client is closed");
  EXPECT_EQ(client.state(), ConnectionState::kClosed);
}

}  // namespace
}  // namespace conclave
