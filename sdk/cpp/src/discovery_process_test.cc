#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
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

ServiceOptions pay(std::string id) {
  return {.service = "pay", .id = std::move(id), .address = "127.0.0.1", .port = 8080};
}

std::set<std::string> ids(const InstanceList& list) {
  std::set<std::string> result;
  for (const Instance& instance : list.instances) result.insert(instance.id);
  return result;
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

void put_record(const Client& client, const std::string& id, const std::string& more = "") {
  (void)client
      .put("/services/pay/" + id,
           R"({"v":1,"id":")" + id + R"(","service":"pay","address":"127.0.0.1","port":80)" + more + "}")
      .or_throw();
}

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/conclave-discovery-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file() const { return path_ + "/copy"; }

 private:
  std::string path_;
};

TEST(Discovery, SeesInstancesComeChangeAndGo) {
  TestServer server;
  const Client client = server.client();
  auto view = Discovery::open(client, {.service = "pay"}).or_throw();
  view.wait_ready({.timeout = 5s}).or_throw();
  EXPECT_EQ(view.snapshot()->source, ViewSource::kServer);
  EXPECT_EQ(view.pick().error().code, Code::kUnavailable);
  Registry registry{client};
  auto first = registry.add(pay("one")).or_throw();
  auto second = registry.add(pay("two")).or_throw();
  ASSERT_TRUE(eventually([&] { return ids(*view.snapshot()) == std::set<std::string>{"one", "two"}; }));
  std::set<std::string> picked;
  for (int i = 0; i < 4; ++i) picked.insert(view.pick()->instance().id);
  EXPECT_EQ(picked.size(), 2u);
  EXPECT_TRUE(second.drain({.grace = 0ms}));
  EXPECT_TRUE(eventually([&] { return ids(*view.snapshot()) == std::set<std::string>{"one"}; }));
  EXPECT_EQ(view.pick()->instance().host_port(), "127.0.0.1:8080");
}

TEST(Discovery, AnExpiredInstanceDisappears) {
  TestServer server;
  const Client client = server.client();
  auto view = Discovery::open(client, {.service = "pay"}).or_throw();
  auto session = Session::open(client, {.ttl = 1s}).or_throw();
  (void)client
      .put("/services/pay/a", R"({"v":1,"id":"a","service":"pay","address":"h","port":1})", {.lease = session.lease()})
      .or_throw();
  ASSERT_TRUE(eventually([&] { return ids(*view.snapshot()).contains("a"); }));
  session.orphan();
  EXPECT_TRUE(eventually([&] { return ids(*view.snapshot()).empty(); }, 5s));
}

TEST(Discovery, SeesOnlyItsOwnServiceAndSkipsWhatItCannotRead) {
  TestServer server;
  std::mutex mutex;
  std::vector<std::string> lines;
  auto options = server.options();
  options.log = [&](const LogLine& line) {
    std::scoped_lock lock(mutex);
    lines.push_back(line.text);
  };
  const Client client = Client::open(options).or_throw();
  (void)client.put("/services/pay/broken", "{").or_throw();
  (void)client.put("/services/pay/x/y", R"({"v":1,"id":"x","service":"pay","address":"h","port":1})").or_throw();
  (void)client.put("/services/pay-eu/z", R"({"v":1,"id":"z","service":"pay-eu","address":"h","port":1})").or_throw();
  put_record(client, "good");
  auto view = Discovery::open(client, {.service = "pay"}).or_throw();
  view.wait_ready({.timeout = 5s}).or_throw();
  EXPECT_EQ(ids(*view.snapshot()), std::set<std::string>{"good"});
  EXPECT_EQ(view.snapshot()->unreadable, 2u);
  (void)client.put("/services/pay/broken", "{{").or_throw();
  put_record(client, "later");
  ASSERT_TRUE(eventually([&] { return ids(*view.snapshot()).contains("later"); }));
  put_record(client, "broken");
  ASSERT_TRUE(eventually([&] { return ids(*view.snapshot()).contains("broken"); }));
  EXPECT_EQ(view.snapshot()->unreadable, 1u);
  EXPECT_TRUE(eventually([&] {
    std::scoped_lock lock(mutex);
    return std::ranges::count_if(lines, [](const auto& l) { return l.find("cannot be read") != l.npos; }) == 2;
  }));
}

TEST(Discovery, FollowsThroughRestartsAndCompaction) {
  TestServer server;
  const Client client = server.client();
  auto view = Discovery::open(client, {.service = "pay"}).or_throw();
  view.wait_ready({.timeout = 5s}).or_throw();
  for (int round = 0; round < 3; ++round) {
    const std::string id = "r" + std::to_string(round);
    put_record(client, id);
    ASSERT_TRUE(eventually([&] { return ids(*view.snapshot()).contains(id); }));
    server.kill();
    server.start();
    (void)client.del("/services/pay/" + id).or_throw();
    const auto last = client.put("/services/pay/unrelated", "").or_throw().revision;
    (void)client.compact(last).or_throw();
    put_record(client, "after-" + id);
    ASSERT_TRUE(eventually([&] { return ids(*view.snapshot()).contains("after-" + id); }));
    EXPECT_FALSE(ids(*view.snapshot()).contains(id));
  }
}

TEST(Discovery, TellsOfChangesConflatedAndNeverAfterItsEnd) {
  TestServer server;
  const Client client = server.client();
  std::atomic<bool> over{false};
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::mutex mutex;
  std::vector<std::size_t> seen;
  std::optional<Discovery> view;
  std::atomic<int> calls{0};
  view.emplace(Discovery::open(client, {.service = "pay",
                                        .on_change =
                                            [&](const auto& now) {
                                              EXPECT_FALSE(over);
                                              if (++calls == 1) released.wait();
                                              std::scoped_lock lock(mutex);
                                              seen.push_back(now->instances.size());
                                            }})
                   .or_throw());
  ASSERT_TRUE(eventually([&] { return calls == 1; }));
  for (int i = 0; i < 20; ++i) put_record(client, "i" + std::to_string(i));
  ASSERT_TRUE(eventually([&] { return view->snapshot()->instances.size() == 20; }));
  release.set_value();
  EXPECT_TRUE(eventually([&] {
    std::scoped_lock lock(mutex);
    return !seen.empty() && seen.back() == 20;
  }));
  EXPECT_LE(calls, 3);
  view.reset();
  over = true;
  put_record(client, "late");
}

TEST(Discovery, StartsFromItsCopyOnDiskAndThenFollowsTheServer) {
  const Folder folder;
  TestServer server;
  {
    const Client client = server.client();
    put_record(client, "kept", R"(,"zone":"eu")");
    auto view = Discovery::open(client, {.service = "pay", .cache_file = folder.file()}).or_throw();
    view.wait_ready({.timeout = 5s}).or_throw();
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder.file()); }));
  }
  server.kill();
  const Client client = server.client();
  auto view = Discovery::open(client, {.service = "pay", .cache_file = folder.file()}).or_throw();
  ASSERT_TRUE(view.wait_ready({.timeout = 1s}));
  EXPECT_EQ(view.snapshot()->source, ViewSource::kDisk);
  EXPECT_EQ(view.pick()->instance().zone, "eu");
  server.start();
  EXPECT_TRUE(eventually([&] { return view.snapshot()->source == ViewSource::kServer; }));
  put_record(client, "new");
  EXPECT_TRUE(eventually([&] { return ids(*view.snapshot()) == std::set<std::string>{"kept", "new"}; }));
}

TEST(Discovery, UsesTheCopyByItselfWhenNobodyWaits) {
  const Folder folder;
  TestServer server;
  auto options = server.options();
  options.call_timeout = 300ms;
  {
    const Client client = Client::open(options).or_throw();
    put_record(client, "kept");
    auto view = Discovery::open(client, {.service = "pay", .cache_file = folder.file()}).or_throw();
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder.file()); }));
  }
  server.kill();
  const Client client = Client::open(options).or_throw();
  auto view = Discovery::open(client, {.service = "pay", .cache_file = folder.file()}).or_throw();
  EXPECT_TRUE(eventually([&] { return view.snapshot()->source == ViewSource::kDisk; }));
}

TEST(Discovery, DoesNotUseADamagedCopyOrThatOfAnotherService) {
  const Folder folder;
  TestServer server;
  {
    const Client client = server.client();
    put_record(client, "kept");
    auto view = Discovery::open(client, {.service = "pay", .cache_file = folder.file()}).or_throw();
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder.file()); }));
  }
  server.kill();
  const Client client = server.client();
  auto other = Discovery::open(client, {.service = "pay-eu", .cache_file = folder.file()}).or_throw();
  EXPECT_FALSE(other.wait_ready({.timeout = 400ms}));
  std::string text = (std::stringstream() << std::ifstream(folder.file()).rdbuf()).str();
  text.replace(text.find("127.0.0.1"), 9, "127.0.0.9");
  std::ofstream(folder.file()) << text;
  auto view = Discovery::open(client, {.service = "pay", .cache_file = folder.file()}).or_throw();
  const auto ready = view.wait_ready({.timeout = 400ms});
  ASSERT_FALSE(ready);
  EXPECT_NE(ready.error().message.find("checksum"), std::string::npos) << ready.error().message;
}

TEST(Discovery, EndsWithItsClientAndRefusesBadArguments) {
  Client client = Client::open({.endpoints = {"http://127.0.0.1:1"}}).or_throw();
  EXPECT_EQ(Discovery::open(client, {.service = "a/b"}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Discovery::open(client, {.service = "a", .balancer = static_cast<Balancer>(9)}).error().code,
            Code::kInvalidArgument);
  auto view = Discovery::open(client, {.service = "pay"}).or_throw();
  auto waiting = std::async(std::launch::async, [&] { return view.wait_ready(); });
  (void)client.close();
  EXPECT_EQ(waiting.get().error().message, "client is closed");
  EXPECT_EQ(Discovery::open(client, {.service = "pay"}).error().code, Code::kFailedPrecondition);
}

}  // namespace
}  // namespace conclave
