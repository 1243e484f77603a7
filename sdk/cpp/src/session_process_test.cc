#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "codec.h"
#include "conclave/mutex.h"
#include "conclave/session.h"
#include "conclave/watch.h"
#include "core.h"
#include "test_proxy.h"
#include "test_server.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using internal::Access;
using internal::Json;
using testing::TestProxy;
using testing::TestServer;
using Clock = std::chrono::steady_clock;

// When a token was stopped.
class StoppedAt {
 public:
  explicit StoppedAt(const std::stop_token& token) : callback_(token, Note{this}) {}
  std::optional<Clock::time_point> wait(Clock::duration limit) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, limit, [this] { return at_.has_value(); });
    return at_;
  }

 private:
  struct Note {
    StoppedAt* self;
    void operator()() const {
      std::scoped_lock lock(self->mutex_);
      self->at_ = Clock::now();
      self->wake_.notify_all();
    }
  };
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Clock::time_point> at_;
  std::stop_callback<Note> callback_;
};

bool eventually(const std::function<bool()>& condition, Clock::duration limit) {
  const auto until = Clock::now() + limit;
  while (Clock::now() < until) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST(Session, OutlivesItsTtlAndTakesItsKeysAlongWhenDestroyed) {
  TestServer server;
  const Client client = server.client();
  {
    auto session = Session::open(client, {.ttl = 2s}).or_throw();
    (void)client.put("k", "v", {.lease = session.lease()}).or_throw();
    std::this_thread::sleep_for(session.ttl() + 1s);
    EXPECT_TRUE(session.held());
    EXPECT_EQ(session.state(), SessionState::kLive);
    EXPECT_TRUE(client.get("k").or_throw().has_value());
  }
  EXPECT_TRUE(eventually([&] { return !client.get("k").or_throw().has_value(); }, 1s));
}

TEST(Session, RevokesAtTheEndOfTheLastHandle) {
  TestServer server;
  const Client other = server.client();
  LeaseId lease{};
  {
    auto session = Session::open(server.client(), {.ttl = 60s}).or_throw();  // its client is gone already
    lease = session.lease();
    (void)other.put("k", "v", {.lease = lease}).or_throw();
  }
  EXPECT_FALSE(other.get("k").or_throw().has_value());
}

TEST(Session, IsLostOnTimeWhenTheServerHangs) {
  TestServer server;
  const Client client = server.client();
  std::mutex mutex;
  std::vector<SessionState> states;
  auto session = Session::open(client, {.ttl = 2s,
                                        .on_state =
                                            [&](SessionState state, const std::string&) {
                                              std::scoped_lock lock(mutex);
                                              states.push_back(state);
                                            }})
                     .or_throw();
  StoppedAt lost(session.lost());
  std::this_thread::sleep_for(1s);  // some keepalives
  ASSERT_TRUE(session.held());
  server.pause();
  const auto paused = Clock::now();
  const auto at = lost.wait(10s);
  ASSERT_TRUE(at.has_value());
  EXPECT_FALSE(session.held());
  EXPECT_EQ(session.state(), SessionState::kLost);
  EXPECT_LE(*at - paused, session.ttl() + 100ms);
  EXPECT_GE(*at - paused, session.ttl() / 2);  // a keepalive is at most a third of the TTL old
  server.resume();
  EXPECT_TRUE(eventually(
      [&] {
        std::scoped_lock lock(mutex);
        return states == std::vector{SessionState::kSuspect, SessionState::kLost};
      },
      2s));
  EXPECT_FALSE(session.held());  // final, even if the lease still lives
}

TEST(Session, SurvivesARestartOfTheServer) {
  TestServer server;
  const Client client = server.client();
  auto session = Session::open(client, {.ttl = 8s}).or_throw();
  (void)client.put("k", "v", {.lease = session.lease()}).or_throw();
  server.kill();
  server.start();
  std::this_thread::sleep_for(session.ttl() + 1s);
  EXPECT_TRUE(session.held());
  EXPECT_TRUE(client.get("k").or_throw().has_value());
}

TEST(Session, LeavesAConnectionThatDiedWithoutAWord) {
  TestServer server;
  TestProxy proxy(server.port());
  const Client client = Client::open({.endpoints = {proxy.endpoint()}}).or_throw();
  auto session = Session::open(client, {.ttl = 3s}).or_throw();
  for (int i = 0; i < 3; ++i) {
    proxy.kill_connections_silently();
    std::this_thread::sleep_for(1500ms);
    EXPECT_TRUE(session.held());
  }
}

TEST(Session, IsLostAtOnceWhenTheServerSaysSo) {
  TestServer server;
  const Client client = server.client();
  auto session = Session::open(client, {.ttl = 6s}).or_throw();
  StoppedAt lost(session.lost());
  const auto revoked = Access::core(client).call(internal::path::kLeaseRevoke,
                                                 Json::object().set("ID", internal::int64(number(session.lease()))),
                                                 internal::Effect::kIdempotent, {});
  ASSERT_TRUE(revoked);
  const auto start = Clock::now();
  const auto at = lost.wait(10s);
  ASSERT_TRUE(at.has_value());
  EXPECT_LT(*at - start, 3s);  // the next keepalive tells
}

TEST(Session, ClosesAndTells) {
  TestServer server;
  const Client client = server.client();
  auto session = Session::open(client, {.ttl = 60s}).or_throw();
  (void)client.put("k", "v", {.lease = session.lease()}).or_throw();
  ASSERT_TRUE(session.close());
  EXPECT_FALSE(client.get("k").or_throw().has_value());
  EXPECT_FALSE(session.held());
  EXPECT_TRUE(eventually([&] { return session.lost().stop_requested(); }, 1s));
}

TEST(Session, LeavesItsKeysWhenOrphaned) {
  TestServer server;
  const Client client = server.client();
  auto session = Session::open(client, {.ttl = 2s}).or_throw();
  (void)client.put("k", "v", {.lease = session.lease()}).or_throw();
  StoppedAt lost(session.lost());
  const auto start = Clock::now();
  session.orphan();
  EXPECT_TRUE(session.held());
  EXPECT_TRUE(client.get("k").or_throw().has_value());
  const auto at = lost.wait(10s);
  ASSERT_TRUE(at.has_value());
  EXPECT_LE(*at - start, 2100ms);
}

TEST(Session, OpensOnlyWithinItsDeadline) {
  const Client client =
      Client::open({.endpoints = {"http://127.0.0.1:" + std::to_string(testing::free_port())}}).or_throw();
  const auto start = Clock::now();
  const auto session = Session::open(client, {.call = {.timeout = 200ms}});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, Code::kUnavailable);
  EXPECT_LT(Clock::now() - start, 1s);
  EXPECT_EQ(Session::open(client, {.ttl = 0s}).error().code, Code::kInvalidArgument);
}

TEST(Session, EndsWithItsClient) {
  TestServer server;
  const Client other = server.client();
  Client client = server.client();
  auto session = Session::open(client, {.ttl = 60s}).or_throw();
  (void)client.put("k", "v", {.lease = session.lease()}).or_throw();
  ASSERT_TRUE(client.close({.timeout = 5s}));
  EXPECT_FALSE(other.get("k").or_throw().has_value());  // close waited for the revocation
  EXPECT_FALSE(session.held());
  EXPECT_EQ(Session::open(client).error().code, Code::kFailedPrecondition);
}

TEST(Session, AndAllElseEndsQuicklyWhileTheServerHangs) {
  TestServer server;
  auto client = std::make_unique<Client>(server.client());
  auto session = std::make_unique<Session>(Session::open(*client, {.ttl = 30s}).or_throw());
  auto lock = std::make_unique<Lock>(Mutex(*session, "l").lock().or_throw());
  auto watch = std::make_unique<Watch>(Watch::open(*client, {.key = "a"}).or_throw());
  auto subscription =
      std::make_unique<Subscription>(subscribe(*client, {.key = "a"}, [](const WatchBatch&) {}).or_throw());
  server.pause();
  const auto quick = [](auto& object) {
    const auto start = Clock::now();
    object.reset();
    return Clock::now() - start < 250ms;
  };
  EXPECT_TRUE(quick(subscription));
  EXPECT_TRUE(quick(watch));
  EXPECT_TRUE(quick(lock));
  EXPECT_TRUE(quick(session));
  EXPECT_TRUE(quick(client));
  server.resume();
}

TEST(Session, EndsQuicklyWithoutAServer) {
  auto server = std::make_unique<TestServer>();
  auto client = std::make_unique<Client>(server->client());
  auto session = std::make_unique<Session>(Session::open(*client, {.ttl = 30s}).or_throw());
  server.reset();
  const auto start = Clock::now();
  session.reset();
  client.reset();
  EXPECT_LT(Clock::now() - start, 300ms);
}

}  // namespace
}  // namespace conclave
