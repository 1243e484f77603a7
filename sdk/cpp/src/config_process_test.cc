#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <stdexcept>

#include "conclave/config.h"
#include "test_server.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using testing::TestServer;

struct OrderConfig {
  int workers = 4;
  std::chrono::milliseconds timeout = 500ms;
};
using Reloader = ConfigReloader<OrderConfig>;
using SnapshotPtr = std::shared_ptr<const ConfigSnapshot<OrderConfig>>;

// What the callbacks told, to be waited for.
class Told {
 public:
  void changed(const SnapshotPtr& before, const SnapshotPtr& now) {
    const std::lock_guard lock(mutex_);
    changes.push_back({before->value.workers, now->value.workers});
    wake_.notify_all();
  }
  void rejected(Revision revision, const Error& why) {
    const std::lock_guard lock(mutex_);
    rejections.push_back({number(revision), why.message});
    wake_.notify_all();
  }
  template <class Done>
  bool wait(Done done, std::chrono::seconds most = 10s) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, most, done);
  }
  std::vector<std::pair<int, int>> changes;
  std::vector<std::pair<std::int64_t, std::string>> rejections;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
};

ConfigOptions<OrderConfig> options(Told& told, std::string cache_file = {}) {
  Fields<OrderConfig> fields;
  fields.required("workers", &OrderConfig::workers, between(1, 64)).optional("timeout", &OrderConfig::timeout);
  return {.prefix = "config/orders/",
          .bind = fields,
          .validate = [](const OrderConfig& c) -> Status {
            if (c.workers == 13) return fail(Code::kInvalidArgument, "workers: 13 brings bad luck");
            return {};
          },
          .cache_file = std::move(cache_file),
          .on_change = [&told](const SnapshotPtr& before, const SnapshotPtr& now) { told.changed(before, now); },
          .on_rejected = [&told](Revision revision, const Error& why) { told.rejected(revision, why); },
          .call = {.timeout = 3s}};
}

TEST(ConfigReloader, TakesOverWhatIsValidAndKeepsTheOldElse) {
  TestServer server;
  const Client client = server.client();
  Told told;
  (void)client.put("config/orders/workers", "4").or_throw();
  auto config = Reloader::open(client, options(told)).or_throw();
  EXPECT_EQ(config.snapshot()->value.workers, 4);
  EXPECT_EQ(config.snapshot()->source, ViewSource::kServer);

  const auto stored = client.put("config/orders/workers", "8").or_throw();
  ASSERT_TRUE(told.wait([&] { return told.changes.size() == 1; }));
  EXPECT_EQ(told.changes[0], (std::pair{4, 8}));
  EXPECT_EQ(config.snapshot()->value.workers, 8);
  EXPECT_EQ(config.snapshot()->revision, stored.revision);

  const auto bad = client.put("config/orders/workers", "13").or_throw();
  ASSERT_TRUE(told.wait([&] { return told.rejections.size() == 1; }));
  EXPECT_EQ(told.rejections[0],
            (std::pair{number(bad.revision), std::string("config/orders/workers: 13 brings bad luck")}));
  EXPECT_EQ(config.snapshot()->value.workers, 8);

  // Two keys in one step are one change.
  (void)client.commit(Txn().then(op::put("config/orders/workers", "9"), op::put("config/orders/timeout", "2s")))
      .or_throw();
  ASSERT_TRUE(told.wait([&] { return told.changes.size() == 2; }));
  EXPECT_EQ(told.changes[1], (std::pair{8, 9}));
  EXPECT_EQ(config.snapshot()->value.timeout, 2s);
}

TEST(ConfigReloader, AnExceptionOfTheValidationMeansNo) {
  TestServer server;
  const Client client = server.client();
  Told told;
  auto throwing = options(told);
  throwing.validate = [](const OrderConfig& c) -> Status {
    if (c.workers == 7) throw std::runtime_error("seven");
    return {};
  };
  (void)client.put("config/orders/workers", "7").or_throw();
  const auto refused = Reloader::open(client, throwing);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("threw: seven"), std::string::npos) << refused.error().message;
  (void)client.put("config/orders/workers", "8").or_throw();
  Told later;
  throwing.on_rejected = [&later](Revision revision, const Error& why) { later.rejected(revision, why); };
  auto config = Reloader::open(client, throwing).or_throw();
  (void)client.put("config/orders/workers", "7").or_throw();
  EXPECT_TRUE(later.wait([&] { return later.rejections.size() == 1; }));
  EXPECT_EQ(config.snapshot()->value.workers, 8);
}

TEST(ConfigReloader, WithoutAValidSetThereIsNoObject) {
  TestServer server;
  const Client client = server.client();
  Told told;
  const auto missing = Reloader::open(client, options(told));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "config/orders/workers: missing");
  auto nothing = options(told);
  nothing.bind = nullptr;
  EXPECT_EQ(Reloader::open(client, nothing).error().code, Code::kInvalidArgument);
  auto everything = options(told);
  everything.prefix = "";
  EXPECT_EQ(Reloader::open(client, everything).error().code, Code::kInvalidArgument);
}

TEST(ConfigReloader, StartsFromItsCopyAndGoesOnWithTheServer) {
  TestServer server;
  std::string pattern = ::testing::TempDir() + "config-XXXXXX";
  const std::string folder = ::mkdtemp(pattern.data());
  const std::string file = folder + "/orders.json";
  Told told;
  {
    const Client client = server.client();
    (void)client.put("config/orders/workers", "5").or_throw();
    (void)Reloader::open(client, options(told, file)).or_throw();
  }
  server.kill();
  {
    const Client client = server.client();
    auto config = Reloader::open(client, options(told, file)).or_throw();
    EXPECT_EQ(config.snapshot()->value.workers, 5);
    EXPECT_EQ(config.snapshot()->source, ViewSource::kDisk);
    server.start();
    (void)server.client().put("config/orders/workers", "6").or_throw();
    ASSERT_TRUE(told.wait([&] { return !told.changes.empty(); }, 20s));
    EXPECT_EQ(config.snapshot()->value.workers, 6);
    EXPECT_EQ(config.snapshot()->source, ViewSource::kServer);
  }
  std::filesystem::remove_all(folder);
}

TEST(ConfigReloader, FollowsThroughARestartOfTheServer) {
  TestServer server;
  const Client client = server.client();
  Told told;
  (void)client.put("config/orders/workers", "4").or_throw();
  auto config = Reloader::open(client, options(told)).or_throw();
  for (int workers = 5; workers < 8; ++workers) {
    server.kill();
    server.start();
    (void)client.put("config/orders/workers", std::to_string(workers)).or_throw();
    ASSERT_TRUE(told.wait([&] { return !told.changes.empty() && told.changes.back().second == workers; }, 20s))
        << workers;
  }
}

}  // namespace
}  // namespace conclave
