#include "peer/network.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <atomic>

#include "base/thread.h"
#include "peer/address.h"
#include "peer/test_peer.h"

namespace peer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void introduce(Node& a, Node& b) {
  a.know({b.as_peer()});
  b.know({a.as_peer()});
}

TEST(Network, DeliversInEveryLaneAndDirection) {
  Node a(1);
  Node b(2);
  introduce(a, b);
  for (const Lane lane : kAllLanes) {
    EXPECT_TRUE(a.deliver(2, lane, "from a"));
    EXPECT_TRUE(b.deliver(1, lane, "from b"));
  }
  for (const Lane lane : kAllLanes) {
    EXPECT_TRUE(eventually([&] { return b.got().frames(1, lane) == std::vector<Bytes>{"from a"}; }));
    EXPECT_TRUE(eventually([&] { return a.got().frames(2, lane) == std::vector<Bytes>{"from b"}; }));
  }
}

// Equal where the privilege is missing, too.
TEST(Network, ItsThreadGoesBeforeOthersAsThatOfRaftDoes) {
  const auto priority = [] { return getpriority(PRIO_PROCESS, 0); };
  int hurried = 0;
  std::thread([&] {
    hurry_thread();
    hurried = priority();
  }).join();
  std::atomic<int> of_network = 20;
  Node a(1);
  Node b(2);
  b.got().hook = [&] { of_network = priority(); };
  introduce(a, b);
  ASSERT_TRUE(a.deliver(2, Lane::kControl, "from a"));
  EXPECT_TRUE(eventually([&] { return of_network == hurried; })) << of_network << ", not " << hurried;
}

TEST(Network, KeepsTheOrderWithinALane) {
  Node a(1);
  Node b(2);
  introduce(a, b);
  constexpr int kFrames = 3000;
  std::vector<Bytes> sent;
  for (int i = 0; i < kFrames; ++i) {
    sent.push_back(std::to_string(i) + Bytes(static_cast<size_t>(i % 7) * 100, 'x'));
    for (const Lane lane : kAllLanes) ASSERT_TRUE(a.deliver(2, lane, sent.back()));
  }
  for (const Lane lane : kAllLanes) {
    EXPECT_TRUE(eventually([&] { return b.got().count(1, lane) == size_t{kFrames}; }));
    EXPECT_EQ(b.got().frames(1, lane), sent);
  }
  EXPECT_EQ(a.got().unreachable(2), 0);
}

TEST(Network, CarriesFramesOfEverySizeUpToTheLanesLimit) {
  Node a(1);
  Node b(2);
  introduce(a, b);
  const std::vector<size_t> sizes = {0, 1, 65'536, 1'000'001, Network::kFrameBytesMax};
  for (const size_t size : sizes) ASSERT_TRUE(a.deliver(2, Lane::kAppend, Bytes(size, 'y'))) << size;
  EXPECT_TRUE(eventually([&] { return b.got().count(1, Lane::kAppend) == sizes.size(); }));
  const auto got = b.got().frames(1, Lane::kAppend);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], Bytes(sizes[i], 'y')) << sizes[i];

  EXPECT_FALSE(a.network().send(2, Lane::kAppend, Bytes(Network::kFrameBytesMax + 1, 'y')));
  const size_t control_max = Options().lanes[0].frame_bytes_max;
  EXPECT_TRUE(a.deliver(2, Lane::kControl, Bytes(control_max, 'y')));
  EXPECT_FALSE(a.network().send(2, Lane::kControl, Bytes(control_max + 1, 'y')));
}

TEST(Network, ReachesAPeerThatComesLater) {
  std::string url;
  {
    auto free = Listener::bind({"http://127.0.0.1:0"});
    ASSERT_TRUE(free);
    url = (*free)->urls()[0];
  }
  Node a(1);
  a.know({{.id = 2, .urls = {url}}});
  EXPECT_FALSE(a.network().send(2, Lane::kControl, "nobody there"));
  metrics::Registry registry;
  Recorder recorder;
  const auto late = make_network({.cluster_id = kCluster, .member_id = 2, .listen_urls = {url}}, registry);
  ASSERT_TRUE(late->start(recorder));
  late->set_peers({a.as_peer()}, {});
  EXPECT_TRUE(a.deliver(2, Lane::kControl, "there you are"));
  EXPECT_TRUE(eventually([&] { return recorder.frames(1, Lane::kControl) == std::vector<Bytes>{"there you are"}; }));
  late->stop();
}

TEST(Network, ReachesAPeerThatRestarts) {
  Node a(1);
  Node b(2);
  introduce(a, b);
  for (const Lane lane : kAllLanes) ASSERT_TRUE(a.deliver(2, lane, "one"));
  const std::string active = R"(etcd_network_active_peers{Local="1",Remote="2"} )";
  EXPECT_TRUE(eventually([&] { return a.has_metric(active + "1"); }));
  b.stop();
  EXPECT_TRUE(eventually([&] { return a.got().unreachable(2) >= 4; })) << "once a lane";
  EXPECT_TRUE(a.has_metric(active + "0"));
  EXPECT_TRUE(a.has_metric(R"(etcd_network_disconnected_peers_total{Local="1",Remote="2"} 1)"));
  EXPECT_FALSE(a.network().send(2, Lane::kControl, "nobody there"));
  b.restart();
  b.know({a.as_peer()});
  for (const Lane lane : kAllLanes) {
    EXPECT_TRUE(a.deliver(2, lane, "two"));
    EXPECT_TRUE(eventually([&] { return b.got().frames(1, lane) == std::vector<Bytes>{"two"}; }));
  }
  EXPECT_TRUE(a.has_metric(active + "1"));
}

TEST(Network, ForgetsAPeerThatIsNoMemberAnyMore) {
  Node a(1);
  Node b(2);
  introduce(a, b);
  ASSERT_TRUE(a.deliver(2, Lane::kControl, "x"));
  ASSERT_TRUE(b.deliver(1, Lane::kControl, "x"));
  a.know({});
  EXPECT_FALSE(a.network().send(2, Lane::kControl, "x"));
  EXPECT_TRUE(eventually([&] { return b.got().unreachable(1) > 0; })) << "its connections to a were not closed";
  a.know({b.as_peer()});
  EXPECT_TRUE(a.deliver(2, Lane::kControl, "again"));
  EXPECT_TRUE(b.deliver(1, Lane::kControl, "again"));
}

TEST(Network, TriesSeveralUrlsAndResolvesNames) {
  Node a(1);
  Node b(2);
  b.know({a.as_peer()});
  const std::string port = b.url().substr(b.url().rfind(':'));
  // Nobody listens at the first; the second does not resolve (RFC 6761); the third is of no kind that works.
  a.know({{.id = 2,
           .urls = {"http://127.0.0.1:1", "http://no.such.host.invalid:1", "https://127.0.0.1:1",
                    "http://localhost" + port}}});
  EXPECT_TRUE(a.deliver(2, Lane::kControl, "x"));
  EXPECT_TRUE(eventually([&] { return !b.got().frames(1, Lane::kControl).empty(); }));
}

TEST(Network, TakesNewUrlsOfAPeer) {
  Node a(1);
  Node b(2);
  b.know({a.as_peer()});
  a.know({{.id = 2, .urls = {"https://127.0.0.1:1"}}});
  EXPECT_FALSE(a.network().send(2, Lane::kControl, "x"));
  a.know({b.as_peer()});
  EXPECT_TRUE(a.deliver(2, Lane::kControl, "x"));
}

TEST(Network, SaysWhichAddressIsTaken) {
  Node a(1);
  metrics::Registry registry;
  Recorder recorder;
  const auto network = make_network({.cluster_id = kCluster, .member_id = 2, .listen_urls = {a.url()}}, registry);
  const auto status = network->start(recorder);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kUnavailable);
  EXPECT_THAT(status.error().message, HasSubstr(a.url()));
  EXPECT_THAT(status.error().message, HasSubstr("in use"));
  const auto tls = Listener::bind({"https://127.0.0.1:0"});
  ASSERT_FALSE(tls);
  EXPECT_EQ(tls.error().code, Code::kUnimplemented);
  EXPECT_THAT(tls.error().message, HasSubstr("TLS"));
}

TEST(Network, AsksForTheCluster) {
  Node a(1);  // knows no peers
  const auto found = ask_cluster({"http://127.0.0.1:1", a.url()});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, "who we are");
}

TEST(Network, WhoIsAskedMayTakeItsTime) {
  Node a(1, [](Options& options) { options.hello_timeout = std::chrono::milliseconds(500); });
  std::thread elsewhere;
  a.got().describe = [&elsewhere](const auto& answer) { elsewhere = std::thread([answer] { answer("at last"); }); };
  const auto found = ask_cluster({a.url()});
  elsewhere.join();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, "at last");
  std::function<void(Bytes)> late;
  a.got().describe = [&late](const auto& answer) { late = answer; };
  const auto nothing = ask_cluster({a.url()});
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error().message, HasSubstr("no leader"));
  late("nobody listens any more");
  a.got().describe = [](const auto& answer) { answer("who we are"); };
  EXPECT_TRUE(ask_cluster({a.url()}));
}

TEST(Network, AskingNobodyTakesItsTimeAndSaysWhy) {
  const auto silent = Listener::bind({"http://127.0.0.1:0"});
  ASSERT_TRUE(silent);
  const auto found =
      ask_cluster({"http://127.0.0.1:1", "https://127.0.0.1:1", (*silent)->urls()[0]}, std::chrono::milliseconds(50));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kUnavailable);
  EXPECT_THAT(found.error().message, HasSubstr((*silent)->urls()[0]));
}

TEST(Network, CountsUnderEtcdsNames) {
  Node a(1, [](Options& options) { options.election_timeout = std::chrono::milliseconds(200); });
  Node b(0xab);
  a.know({b.as_peer()});
  b.know({a.as_peer()});
  ASSERT_TRUE(a.deliver(0xab, Lane::kForward, Bytes(84, 'x')));
  EXPECT_TRUE(eventually([&] { return a.has_metric(R"(etcd_network_peer_sent_bytes_total{To="ab"} 100)"); }));
  EXPECT_TRUE(eventually([&] { return b.has_metric(R"(etcd_network_peer_received_bytes_total{From="1"} 100)"); }));
  EXPECT_TRUE(b.has_metric(R"(etcd_network_peer_received_failures_total{From="1"} 0)"));
  EXPECT_TRUE(b.has_metric(R"(etcd_network_peer_sent_failures_total{To="1"} )"));
  EXPECT_TRUE(eventually([&] {
    const std::string count = R"(etcd_network_peer_round_trip_time_seconds_count{To="ab"} )";
    return a.has_metric(count) && !a.has_metric(count + "0");
  })) << "an idle connection is pinged";
}

}  // namespace
}  // namespace peer
