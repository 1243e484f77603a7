#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "codec.h"
#include "conclave/conclave.h"
#include "core.h"
#include "record.h"
#include "test_server.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using testing::TestServer;

ServiceOptions orders(std::string id = {}) {
  return {.service = "orders", .id = std::move(id), .address = "127.0.0.1", .port = 8080, .metadata = {{"a", "b"}}};
}

std::optional<Instance> stored(const Client& client, const std::string& id) {
  const auto kv = client.get("/services/orders/" + id).or_throw();
  if (!kv) return std::nullopt;
  return internal::decode_record(kv->key, kv->value).or_throw();
}

template <class Ready>
bool eventually(Ready ready, std::chrono::milliseconds limit = 10s) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    if (ready()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return ready();
}

// What on_state told, in order.
class Told {
 public:
  auto listener() {
    return [this](RegistrationState state, const std::string& why) {
      std::scoped_lock lock(mutex_);
      states_.push_back(state);
      why_ = why;
      wake_.notify_all();
    };
  }
  bool wait_for(RegistrationState state, std::chrono::milliseconds limit = 10s) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, limit, [&] { return !states_.empty() && states_.back() == state; });
  }
  std::vector<RegistrationState> states() {
    std::scoped_lock lock(mutex_);
    return states_;
  }
  std::string why() {
    std::scoped_lock lock(mutex_);
    return why_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<RegistrationState> states_;
  std::string why_;
};

LeaseId lease_of(const Client& client, const std::string& id) {
  return client.get("/services/orders/" + id).or_throw()->lease;
}

void revoke(const Client& client, LeaseId lease) {
  (void)internal::Access::core(client)
      .call(internal::path::kLeaseRevoke, internal::Json::object().set("ID", internal::int64(number(lease))),
            internal::Effect::kOnce, {})
      .or_throw();
}

TEST(Registry, RegistersUnderOneLeaseAndGoesWithDraining) {
  TestServer server;
  const Client client = server.client();
  std::string id;
  Revision before{};
  {
    Registry registry{client, {.ttl = 5s}};
    auto first = registry.add(orders()).or_throw();
    auto second = registry.add(orders("second")).or_throw();
    first.wait_ready({.timeout = 5s}).or_throw();
    second.wait_ready({.timeout = 5s}).or_throw();
    id = first.id();
    const auto record = stored(client, id);
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->metadata.at("a"), "b");
    EXPECT_EQ(record->start.size(), 16u);
    EXPECT_GT(record->started_ms, 1'600'000'000'000);
    EXPECT_NE(number(lease_of(client, id)), 0);
    EXPECT_EQ(lease_of(client, id), lease_of(client, "second"));
    before = client.range({.key = "/services/", .prefix = true}).or_throw().revision;
  }
  EXPECT_TRUE(eventually([&] { return !stored(client, id) && !stored(client, "second"); }, 2s));
  // Both were marked draining before they went: nobody takes them for expired.
  auto history = Watch::open(client, {.key = "/services/orders/", .prefix = true, .from = Revision{number(before) + 1}})
                     .or_throw();
  std::set<std::string> draining;  // keys: the mark may be written twice
  for (int gone = 0; gone < 2;) {
    for (const Event& event : history.next({.timeout = 5s}).or_throw().events) {
      if (event.type == EventType::kDelete) {
        EXPECT_TRUE(draining.contains(event.kv.key)) << event.kv.key;
        ++gone;
      } else if (internal::decode_record(event.kv.value).or_throw().draining) {
        draining.insert(event.kv.key);
      }
    }
  }
}

TEST(Registry, RegistersByItselfOnceTheClusterIsThere) {
  TestServer server;
  server.kill();
  const Client client = server.client();
  Registry registry{client};
  Told told;
  auto options = orders("late");
  options.on_state = told.listener();
  auto self = registry.add(std::move(options)).or_throw();
  const auto early = self.wait_ready({.timeout = 300ms});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(self.state(), RegistrationState::kRegistering);
  server.start();
  ASSERT_TRUE(self.wait_ready({.timeout = 10s}));
  EXPECT_TRUE(stored(client, "late"));
  EXPECT_TRUE(told.wait_for(RegistrationState::kRegistered));
}

TEST(Registry, ReplacesALostLeaseForEver) {
  TestServer server;
  const Client client = server.client();
  Registry registry{client, {.ttl = 2s}};
  Told told;
  auto options = orders("phoenix");
  options.on_state = told.listener();
  auto self = registry.add(std::move(options)).or_throw();
  self.wait_ready({.timeout = 5s}).or_throw();
  const auto start = stored(client, "phoenix")->start;
  for (int i = 0; i < 3; ++i) {
    const LeaseId lease = lease_of(client, "phoenix");
    revoke(client, lease);
    ASSERT_TRUE(eventually([&] { return stored(client, "phoenix") && lease_of(client, "phoenix") != lease; }));
  }
  EXPECT_EQ(stored(client, "phoenix")->start, start);
  EXPECT_TRUE(told.wait_for(RegistrationState::kRegistered));
  EXPECT_NE(std::ranges::count(told.states(), RegistrationState::kRegistering), 0);
}

TEST(Registry, SurvivesRestartsOfTheServer) {
  TestServer server;
  const Client client = server.client();
  Registry registry{client, {.ttl = 3s}};
  auto self = registry.add(orders("steady")).or_throw();
  self.wait_ready({.timeout = 5s}).or_throw();
  for (int i = 0; i < 3; ++i) {
    server.kill();
    server.start();
  }
  std::this_thread::sleep_for(4s);  // longer than the TTL: the keepalives must go on
  EXPECT_TRUE(eventually([&] { return stored(client, "steady").has_value(); }));
  EXPECT_EQ(self.state(), RegistrationState::kRegistered);
}

TEST(Registry, PutsBackWhatWasDeletedOrOverwritten) {
  TestServer server;
  const Client client = server.client();
  Registry registry{client};
  auto self = registry.add(orders("fixed")).or_throw();
  self.wait_ready({.timeout = 5s}).or_throw();
  (void)client.del("/services/orders/fixed").or_throw();
  EXPECT_TRUE(eventually([&] { return stored(client, "fixed").has_value(); }));
  (void)client.put("/services/orders/fixed", "rubbish").or_throw();
  EXPECT_TRUE(eventually([&] { return client.get("/services/orders/fixed").or_throw()->value != "rubbish"; }));
  EXPECT_EQ(stored(client, "fixed")->id, "fixed");
}

TEST(Registry, TheNewestStartWinsAndTheOlderDoesNotFightBack) {
  TestServer server;
  const Client client = server.client();
  const Client other = server.client();
  Registry old_registry{client};
  Registry new_registry{other};
  Told told;
  auto options = orders("same");
  options.on_state = told.listener();
  auto old_one = old_registry.add(std::move(options)).or_throw();
  old_one.wait_ready({.timeout = 5s}).or_throw();
  std::this_thread::sleep_for(2ms);  // a later started_ms
  auto new_one = new_registry.add(orders("same")).or_throw();
  new_one.wait_ready({.timeout = 5s}).or_throw();
  ASSERT_TRUE(told.wait_for(RegistrationState::kDisplaced));
  EXPECT_NE(told.why().find("newer instance"), std::string::npos);
  EXPECT_EQ(old_one.state(), RegistrationState::kDisplaced);
  EXPECT_EQ(old_one.wait_ready({.timeout = 1s}).error().code, Code::kAborted);
  EXPECT_EQ(old_one.drain({.grace = 0ms}).error().code, Code::kAborted);
  EXPECT_EQ(new_one.state(), RegistrationState::kRegistered);
  { auto leaving = std::move(old_one); }
  const auto now = stored(client, "same");
  ASSERT_TRUE(now.has_value());  // the older one's end did not take the newer one's key
  EXPECT_FALSE(now->draining);
}

TEST(Registry, HealthFallsAndRises) {
  TestServer server;
  const Client client = server.client();
  Registry registry{client};
  std::atomic<bool> alive{true};
  std::atomic<bool> throws{false};
  auto options = orders("checked");
  options.health = {.check = [&]() -> Health {
                      if (throws) throw std::runtime_error("no database");
                      return alive ? Health::passing() : Health::critical("database");
                    },
                    .every = 20ms,
                    .fall = 2,
                    .rise = 2};
  auto self = registry.add(std::move(options)).or_throw();
  self.wait_ready({.timeout = 5s}).or_throw();
  EXPECT_EQ(stored(client, "checked")->health, Health::passing());
  alive = false;
  EXPECT_TRUE(eventually([&] { return stored(client, "checked")->health == Health::critical("database"); }));
  alive = true;
  EXPECT_TRUE(eventually([&] { return stored(client, "checked")->health == Health::passing(); }));
  throws = true;
  EXPECT_TRUE(eventually([&] { return stored(client, "checked")->health.level == HealthLevel::kCritical; }));
  EXPECT_EQ(stored(client, "checked")->health.reason, "the check threw: no database");
}

TEST(Registry, AnUnhealthyStartIsRegisteredAsSuch) {
  TestServer server;
  const Client client = server.client();
  Registry registry{client};
  auto options = orders("sick");
  options.health = {.check = [] { return Health::critical("cold"); }, .every = 1h};
  auto self = registry.add(std::move(options)).or_throw();
  self.wait_ready({.timeout = 5s}).or_throw();
  EXPECT_EQ(stored(client, "sick")->health, Health::critical("cold"));
}

TEST(Registry, ACheckThatHangsKeepsTheOthersAndTheLeaseAlive) {
  TestServer server;
  const Client client = server.client();
  std::promise<void> release;
  const auto released = release.get_future().share();
  Registry registry{client, {.ttl = 1s}};
  auto healthy = registry.add(orders("healthy")).or_throw();
  auto options = orders("hangs");
  options.health = {.check = [released] { return released.wait(), Health::passing(); }, .every = 20ms};
  auto hangs = registry.add(std::move(options)).or_throw();
  ASSERT_TRUE(healthy.wait_ready({.timeout = 5s}));
  const auto waiting = hangs.wait_ready({.timeout = 2s});
  ASSERT_FALSE(waiting);
  EXPECT_NE(waiting.error().message.find("health check"), std::string::npos);
  EXPECT_TRUE(stored(client, "healthy").has_value());
  release.set_value();
  EXPECT_TRUE(hangs.wait_ready({.timeout = 5s}));
}

TEST(Registry, DrainWaitsForIdleThenRemoves) {
  TestServer server;
  const Client client = server.client();
  Registry registry{client};
  Told told;
  auto options = orders("leaving");
  options.on_state = told.listener();
  auto self = registry.add(std::move(options)).or_throw();
  self.wait_ready({.timeout = 5s}).or_throw();
  std::atomic<bool> idle{false};
  auto drained =
      std::async(std::launch::async, [&] { return self.drain({.grace = 20s, .idle = [&] { return idle.load(); }}); });
  EXPECT_TRUE(eventually([&] { return stored(client, "leaving")->draining; }));
  EXPECT_EQ(drained.wait_for(200ms), std::future_status::timeout);
  EXPECT_EQ(self.state(), RegistrationState::kDraining);
  idle = true;
  const auto result = drained.get();
  EXPECT_TRUE(result) << to_string(result.error());
  EXPECT_FALSE(stored(client, "leaving"));
  EXPECT_EQ(self.state(), RegistrationState::kGone);
  EXPECT_TRUE(told.wait_for(RegistrationState::kGone));
  EXPECT_EQ(told.states(),
            (std::vector{RegistrationState::kRegistered, RegistrationState::kDraining, RegistrationState::kGone}));
  auto again = registry.add(orders("leaving")).or_throw();
  EXPECT_TRUE(again.wait_ready({.timeout = 5s}));
}

TEST(Registry, DrainAgainstADeadClusterEndsInTimeAndTells) {
  TestServer server;
  const Client client = server.client();
  Registry registry{client};
  auto self = registry.add(orders("x")).or_throw();
  self.wait_ready({.timeout = 5s}).or_throw();
  server.kill();
  const auto start = std::chrono::steady_clock::now();
  const auto drained = self.drain({.grace = 100ms, .call = {.timeout = 300ms}});
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
  ASSERT_FALSE(drained);
  EXPECT_EQ(drained.error().outcome, Outcome::kMayHaveHappened);
}

TEST(Registry, IsEndedQuicklyWhenNobodyAnswers) {
  TestServer server;
  const Client client = server.client();
  auto registry = std::make_optional<Registry>(client);
  auto self = std::make_optional(registry->add(orders("x")).or_throw());
  self->wait_ready({.timeout = 5s}).or_throw();
  server.pause();
  const auto start = std::chrono::steady_clock::now();
  registry.reset();
  EXPECT_EQ(self->state(), RegistrationState::kGone);
  self.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);  // 200 ms, and a busy machine
  server.resume();
  EXPECT_TRUE(eventually([&] { return !stored(client, "x"); }));
}

TEST(Registry, EndsWithItsClient) {
  TestServer server;
  const Client watcher = server.client();
  Client client = server.client();
  Registry registry{client};
  auto self = registry.add(orders("x")).or_throw();
  self.wait_ready({.timeout = 5s}).or_throw();
  EXPECT_TRUE(client.close());
  EXPECT_FALSE(stored(watcher, "x"));
  EXPECT_EQ(self.state(), RegistrationState::kGone);
  EXPECT_EQ(registry.add(orders("y")).error().code, Code::kFailedPrecondition);
}

TEST(Registry, RefusesBadArgumentsByName) {
  const Client client = Client::open({.endpoints = {"http://127.0.0.1:1"}}).or_throw();
  Registry registry{client};
  const auto refused = [&](auto change, const std::string& name) {
    auto options = orders("a");
    change(options);
    const auto added = registry.add(std::move(options));
    ASSERT_FALSE(added) << name;
    EXPECT_EQ(added.error().code, Code::kInvalidArgument);
    EXPECT_TRUE(added.error().message.starts_with(name)) << added.error().message;
  };
  refused([](auto& o) { o.service = "a/b"; }, "service");
  refused([](auto& o) { o.id = "a b"; }, "id");
  refused([](auto& o) { o.address = ""; }, "address");
  refused([](auto& o) { o.address = "[::1]"; }, "address");
  refused([](auto& o) { o.port = 0; }, "port");
  refused([](auto& o) { o.weight = 65536; }, "weight");
  refused([](auto& o) { o.zone = "\xFF"; }, "zone");
  refused([](auto& o) { o.metadata["x"] = std::string(70000, 'x'); }, "metadata");
  refused([](auto& o) { o.health = {.check = [] { return Health(); }, .fall = 0}; }, "health.fall");
  auto once = registry.add(orders("twice")).or_throw();
  EXPECT_EQ(registry.add(orders("twice")).error().code, Code::kInvalidArgument);
  Registry bad_ttl{client, {.ttl = 0s}};
  EXPECT_EQ(bad_ttl.add(orders()).error().code, Code::kInvalidArgument);
}

TEST(Registry, MayBeDestroyedFromInsideItsCallback) {
  TestServer server;
  const Client client = server.client();
  auto registry = std::make_shared<Registry>(client);
  auto own = std::make_shared<std::optional<Registration>>();
  std::promise<void> go;
  std::promise<void> done;
  auto options = orders("suicidal");
  options.on_state = [&, ready = go.get_future().share(), own, registry](RegistrationState state,
                                                                         const std::string&) mutable {
    if (state != RegistrationState::kRegistered) return;
    ready.wait();
    own->reset();
    registry.reset();
    done.set_value();
  };
  own->emplace(registry->add(std::move(options)).or_throw());
  registry.reset();
  go.set_value();
  EXPECT_EQ(done.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_TRUE(eventually([&] { return !stored(client, "suicidal"); }));
}

}  // namespace
}  // namespace conclave
