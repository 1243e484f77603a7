#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <optional>

#include "conclave/informer.h"
#include "test_informer.h"
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

TEST(Informer, OpensWithoutAServer) {
  TestServer server;
  server.kill();
  const Client client = server.client();
  Told told;
  auto informer = Numbers::open(client, options(told)).or_throw();
  EXPECT_EQ(informer.wait_ready({.timeout = 100ms}).error().code, Code::kDeadlineExceeded);
  EXPECT_FALSE(informer.snapshot().ready());
  EXPECT_EQ(informer.snapshot().size(), 0u);
  server.start();
  informer.wait_ready({.timeout = 30s}).or_throw();
  EXPECT_TRUE(informer.snapshot().ready());
}

TEST(Informer, RefusesWhatCannotBe) {
  const Client client = Client::open({.endpoints = {"http://127.0.0.1:1"}}).or_throw();
  Told told;
  const auto refused = [&](auto change) {
    auto wrong = options(told);
    change(wrong);
    const auto opened = Numbers::open(client, wrong);
    return opened ? Code::kUnknown : opened.error().code;
  };
  EXPECT_EQ(refused([](auto& o) { o.prefix.clear(); }), Code::kInvalidArgument);
  EXPECT_EQ(refused([](auto& o) { o.decode = nullptr; }), Code::kInvalidArgument);
  EXPECT_EQ(refused([](auto& o) { o.reconcile = nullptr; }), Code::kInvalidArgument);
  EXPECT_EQ(refused([](auto& o) { o.workers = 0; }), Code::kInvalidArgument);
  EXPECT_EQ(refused([](auto& o) { o.workers = 65; }), Code::kInvalidArgument);
  EXPECT_EQ(refused([](auto& o) { o.resync = -1ms; }), Code::kInvalidArgument);
  EXPECT_EQ(refused([](auto& o) { o.retry_max = 0ms; }), Code::kInvalidArgument);
}

TEST(Informer, ItsEndWaitsForARunningTurnAndStartsNoOther) {
  TestServer server;
  const Client client = server.client();
  for (const char* key : {"n/a", "n/b", "n/c"}) (void)client.put(key, "1").or_throw();
  Told told;
  told.held = {"n/a", "n/b", "n/c"};
  std::optional<Numbers> informer(Numbers::open(client, options(told, 1)).or_throw());
  ASSERT_TRUE(told.wait([&] { return told.running.size() == 1; }));
  auto ended = std::async(std::launch::async, [&] { informer.reset(); });
  EXPECT_EQ(ended.wait_for(50ms), std::future_status::timeout);
  told.change([&] { told.held.clear(); });
  ended.get();
  EXPECT_TRUE(told.running.empty());
  const std::size_t turns = told.turns.size();
  EXPECT_LE(turns, 3u);
  (void)client.put("n/d", "1").or_throw();
  EXPECT_EQ(told.turns.size(), turns);
}

TEST(Informer, MayBeDestroyedFromInsideOfATurnOrACallback) {
  TestServer server;
  const Client client = server.client();
  (void)client.put("n/a", "1").or_throw();
  Told told;
  for (const bool in_callback : {false, true}) {
    std::mutex mutex;
    std::optional<Numbers> informer;
    const auto destroyed = std::make_shared<std::promise<void>>();
    const auto destroy = [&mutex, &informer, destroyed] {
      {
        const std::lock_guard lock(mutex);
        informer.reset();
      }
      destroyed->set_value();
    };
    auto with = options(told);
    with.reconcile = [destroy, in_callback](const std::string&, const Now&) -> Result<Requeue> {
      if (in_callback) return fail(Code::kUnavailable, "tell it");
      destroy();
      return Requeue::done();
    };
    with.retry_max = 1h;
    with.on_error = [destroy](const std::string&, const Error&) { destroy(); };
    {
      const std::lock_guard lock(mutex);
      informer.emplace(Numbers::open(client, with).or_throw());
    }
    EXPECT_EQ(destroyed->get_future().wait_for(20s), std::future_status::ready) << in_callback;
  }
}

TEST(Informer, EndsWithItsClient) {
  TestServer server;
  Client client = server.client();
  Told told;
  auto informer = Numbers::open(client, options(told)).or_throw();
  informer.wait_ready({.timeout = 10s}).or_throw();
  ASSERT_TRUE(client.close());
  (void)server.client().put("n/a", "1").or_throw();
  EXPECT_TRUE(informer.wait_ready({.timeout = 1s}));  // what was read stays
  EXPECT_EQ(informer.get("n/a"), nullptr);
  EXPECT_EQ(Numbers::open(client, options(told)).error().message, "client is closed");
}

}  // namespace
}  // namespace conclave
