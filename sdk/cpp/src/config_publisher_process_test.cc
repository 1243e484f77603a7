#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "conclave/config_publisher.h"
#include "test_server.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using testing::TestServer;

ConfigMap numbered(int from, int to) {
  ConfigMap values;
  for (int i = from; i < to; ++i) values["k" + std::to_string(i)] = std::to_string(i);
  return values;
}

TEST(ConfigPublisher, WritesASetAtOneRevision) {
  TestServer server;
  const Client client = server.client();
  const ConfigPublisher publisher(client, {.prefix = "config/orders/"});
  EXPECT_TRUE(publisher.read().or_throw().values().empty());
  (void)client.put("config/orders/old", "1").or_throw();
  (void)client.put("config/orders", "neighbour").or_throw();
  (void)client.put("config/orders0", "neighbour").or_throw();

  const auto first = publisher.publish({{"a", "1"}, {"b", std::string("\0\xff", 2)}}).or_throw();
  EXPECT_EQ(first.stored, 2u);
  EXPECT_EQ(first.deleted, 0u);
  EXPECT_EQ(client.get("config/orders/a").or_throw()->mod_revision, first.revision);
  EXPECT_EQ(client.get("config/orders/b").or_throw()->mod_revision, first.revision);
  const auto set = publisher.read().or_throw();
  EXPECT_EQ(set.values(), (ConfigMap{{"a", "1"}, {"b", std::string("\0\xff", 2)}, {"old", "1"}}));
  EXPECT_EQ(set.revision(), first.revision);

  const auto second = publisher.publish({{"a", "2"}, {"c", "3"}}, {.remove_others = true}).or_throw();
  EXPECT_EQ(second.deleted, 2u);
  EXPECT_EQ(publisher.read().or_throw().values(), (ConfigMap{{"a", "2"}, {"c", "3"}}));
  EXPECT_EQ(publisher.read({.revision = first.revision}).or_throw().values(), set.values());
  EXPECT_EQ(publisher.read({.revision = first.revision}).or_throw().revision(), first.revision);

  EXPECT_EQ(publisher.publish({}, {.remove_others = true}).or_throw().deleted, 2u);
  EXPECT_EQ(publisher.publish({}, {.remove_others = true}).or_throw().deleted, 0u);
  EXPECT_TRUE(client.get("config/orders").or_throw().has_value());
  EXPECT_TRUE(client.get("config/orders0").or_throw().has_value());
}

TEST(ConfigPublisher, RefusesWhatIsTooMuchForATransaction) {
  TestServer server;
  const Client client = server.client();
  const ConfigPublisher publisher(client, {.prefix = "c/"});
  const auto most = publisher.publish(numbered(0, 128)).or_throw();
  EXPECT_EQ(most.stored, 128u);
  const auto more = publisher.publish(numbered(0, 129));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::kInvalidArgument);
  EXPECT_EQ(more.error().message, "c/: 129 keys; one transaction takes 128 operations");
  const auto with_deletes = publisher.publish({{"new", "1"}}, {.remove_others = true});
  ASSERT_FALSE(with_deletes);
  EXPECT_EQ(with_deletes.error().message, "c/: 1 keys and 128 to delete; one transaction takes 128 operations");
  const auto compared = publisher.publish({{"k1", "1"}}, {.based_on = most.revision});
  ASSERT_FALSE(compared);
  EXPECT_EQ(compared.error().code, Code::kInvalidArgument);
  EXPECT_EQ(compared.error().outcome, Outcome::kNeverWorks);
  EXPECT_EQ(publisher.read().or_throw().values(), numbered(0, 128));
  (void)client.del("c/k127").or_throw();
  const auto now = publisher.read().or_throw().revision();
  EXPECT_EQ(publisher.publish({{"k0", "0"}}, {.remove_others = true, .based_on = now}).or_throw().deleted, 126u);
  // A server with another limit.
  const ConfigPublisher small(client, {.prefix = "c/", .operations_max = 2});
  EXPECT_EQ(small.publish(numbered(0, 3)).error().message, "c/: 3 keys; one transaction takes 2 operations");
  EXPECT_TRUE(small.publish(numbered(0, 2)));
}

TEST(ConfigPublisher, WritesNothingWhenTheSetItWasBasedOnHasChanged) {
  TestServer server;
  const Client client = server.client();
  const ConfigPublisher publisher(client, {.prefix = "c/"});
  const ConfigMap changed{{"a", "changed"}};
  // Nothing there yet: a revision before the first key will do.
  const auto empty = client.put("elsewhere", "").or_throw().revision;
  (void)publisher.publish({{"a", "1"}, {"b", "2"}}, {.based_on = empty}).or_throw();
  EXPECT_EQ(publisher.publish(changed, {.based_on = empty}).error().code, Code::kAborted);

  const auto refused = [&](auto change) {
    (void)publisher.publish({{"a", "1"}, {"b", "2"}}, {.remove_others = true}).or_throw();
    const auto base = publisher.read().or_throw().revision();
    change();
    const auto before = publisher.read().or_throw().values();
    for (const bool remove_others : {false, true}) {
      const auto result = publisher.publish(changed, {.remove_others = remove_others, .based_on = base});
      EXPECT_FALSE(result);
      if (result) return;
      EXPECT_EQ(result.error().code, Code::kAborted);
      EXPECT_EQ(result.error().outcome, Outcome::kNothingHappened);
      EXPECT_EQ(result.error().message,
                "c/: changed since revision " + std::to_string(number(base)) + "; nothing was written");
      EXPECT_EQ(publisher.read().or_throw().values(), before);
    }
  };
  refused([&] { (void)client.put("c/b", "other").or_throw(); });
  refused([&] { (void)client.put("c/new", "").or_throw(); });
  refused([&] { (void)client.del("c/b").or_throw(); });
  refused([&] {
    (void)client.del("c/b").or_throw();
    (void)client.put("c/b", "2").or_throw();
  });

  const auto base = publisher.read().or_throw().revision();
  (void)client.put("elsewhere", "").or_throw();
  const auto stored = publisher.publish(changed, {.remove_others = true, .based_on = base}).or_throw();
  EXPECT_EQ(publisher.read().or_throw().values(), changed);
  EXPECT_TRUE(publisher.publish(changed, {.based_on = stored.revision}));  // what publish gave is a base too
}

TEST(ConfigPublisher, RestoresTheSetOfARevision) {
  TestServer server;
  const Client client = server.client();
  const ConfigPublisher publisher(client, {.prefix = "c/"});
  const auto nothing = client.put("elsewhere", "").or_throw().revision;
  const auto good = publisher.publish({{"a", "1"}, {"b", "2"}}).or_throw().revision;
  const auto bad = publisher.publish({{"a", "x"}, {"z", "y"}}, {.remove_others = true}).or_throw().revision;
  const auto restored = publisher.restore(good).or_throw();
  EXPECT_EQ(restored.stored, 2u);
  EXPECT_EQ(restored.deleted, 1u);
  EXPECT_EQ(publisher.read({.revision = restored.revision}).or_throw().values(), (ConfigMap{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(publisher.restore(bad, {.based_on = good}).error().code, Code::kAborted);
  EXPECT_EQ(publisher.restore(nothing).error().code, Code::kNotFound);
  EXPECT_EQ(publisher.restore(Revision{number(restored.revision) + 100}).error().code, Code::kOutOfRange);
  EXPECT_EQ(publisher.restore(Revision{}).error().code, Code::kInvalidArgument);
  (void)client.compact(restored.revision).or_throw();
  EXPECT_EQ(publisher.restore(good).error().code, Code::kOutOfRange);
  EXPECT_EQ(publisher.publish({{"a", "3"}}, {.based_on = good}).error().code, Code::kOutOfRange);
  EXPECT_EQ(publisher.read().or_throw().values(), (ConfigMap{{"a", "1"}, {"b", "2"}}));
}

TEST(ConfigPublisher, DeletesTheOthersAlsoWhileTheyCome) {
  TestServer server;
  const Client client = server.client();
  const ConfigPublisher publisher(client, {.prefix = "c/"});
  std::atomic<bool> stop{false};
  std::atomic<int> created{0};
  std::jthread others([&] {
    while (!stop && created < 120) {  // fewer than a transaction can delete
      (void)client.put("c/other" + std::to_string(created++), "").or_throw();
      std::this_thread::sleep_for(1ms);  // so that there are some during each publication
    }
  });
  const ConfigMap set{{"a", "1"}, {"b", "2"}};
  std::size_t deleted = 0;
  for (int i = 0; i < 20; ++i) {
    const auto published = publisher.publish(set, {.remove_others = true, .call = {.timeout = 60s}}).or_throw();
    EXPECT_EQ(publisher.read({.revision = published.revision}).or_throw().values(), set);
    deleted += published.deleted;
  }
  stop = true;
  others.join();
  EXPECT_GT(deleted, 0u);
  EXPECT_LE(deleted, static_cast<std::size_t>(created));
}

TEST(ConfigPublisher, RefusesWhatCannotBe) {
  TestServer server;
  const Client client = server.client();
  const ConfigPublisher everything(client, {});
  EXPECT_EQ(everything.read().error().code, Code::kInvalidArgument);
  EXPECT_EQ(everything.publish({{"a", "1"}}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(everything.restore(Revision{1}).error().code, Code::kInvalidArgument);
  const ConfigPublisher publisher(client, {.prefix = "c/"});
  EXPECT_EQ(publisher.publish({}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(publisher.publish({{"a", "1"}}, {.based_on = Revision{}}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(publisher.publish({{"a", "1"}}, {.call = {.timeout = 0ms}}).error().code, Code::kDeadlineExceeded);
  EXPECT_FALSE(client.get("c/a").or_throw().has_value());
}

}  // namespace
}  // namespace conclave
