// Strangers, damage, peers that read slowly or not at all.
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>

#include "peer/frame.h"
#include "peer/limits.h"
#include "peer/test_peer.h"

namespace peer {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

const Hello kGood{.lane = Lane::kAppend, .cluster = kCluster, .sender = 2, .addressee = 1};

void hurry(Options& options) { options.hello_timeout = milliseconds(100); }

TEST(Hostile, GarbageIsHungUpOn) {
  Node a(1);
  std::string magic_and_more(64, '\xff');
  magic_and_more.replace(0, 1, 1, '\xc7');
  Bytes damaged = encode(kGood);
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  for (const Bytes& words : {Bytes("\xff\xff\xff"), magic_and_more, damaged, Bytes("\x16\x03\x01", 3)}) {
    Stranger stranger(a.url());
    stranger.say(words);
    EXPECT_TRUE(stranger.closed());
  }
}

TEST(Hostile, SilenceAndHalfAHelloAreHungUpOnInTime) {
  Node a(1, hurry);
  Stranger silent(a.url());
  Stranger half(a.url());
  half.say(encode(kGood).substr(0, 20));
  Stranger less(a.url());
  less.say(encode(kGood).substr(0, 3));
  Stranger gone(a.url());
  gone.say(encode(kGood).substr(0, 20));
  gone.finish();
  for (Stranger* stranger : {&silent, &half, &less, &gone}) EXPECT_TRUE(stranger->closed());
}

TEST(Hostile, CrowdOfStrangersDoesNotKeepPeersOut) {
  Node a(1);
  Node b(2);
  std::vector<Stranger> crowd;
  for (size_t i = 0; i < 3 * kUnknownConnectionsMax; ++i) crowd.emplace_back(a.url());
  a.know({b.as_peer()});
  b.know({a.as_peer()});
  for (const Lane lane : kAllLanes) EXPECT_TRUE(b.deliver(1, lane, "through the crowd"));
  EXPECT_TRUE(eventually([&] { return a.got().count(2, Lane::kControl) == 1; }));
  EXPECT_TRUE(crowd.front().closed()) << "the oldest makes room";
}

TEST(Hostile, HttpIsAnsweredInOneLine) {
  Node a(1);
  Stranger tool(a.url());
  tool.say("GET /version HTTP/1.1\r\nHost: a\r\n\r\n");
  const Bytes heard = tool.hear(4096);
  EXPECT_THAT(heard, StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(heard, HasSubstr("this port is for the cluster's members"));
}

TEST(Hostile, HttpIsGivenAwayUnread) {
  std::atomic<int> given = -1;
  Node a(1, [&](Options& options) { options.take_http = [&](int socket) { given = socket; }; });
  Stranger tool(a.url());
  tool.say("GET /version");
  ASSERT_TRUE(eventually([&] { return given >= 0; }));
  char buffer[64];
  EXPECT_EQ(std::string(buffer, static_cast<size_t>(::read(given, buffer, sizeof(buffer)))), "GET /version");
  EXPECT_EQ(::write(given, "hello", 5), 5);
  EXPECT_EQ(tool.hear(5), "hello");
  ::close(given);
}

TEST(Hostile, DamagedFrameBreaksItsConnectionAlone) {
  Node a(1);
  a.know({{.id = 2, .urls = {"http://127.0.0.1:1"}}});
  Stranger control(a.url());
  Hello hello = kGood;
  hello.lane = Lane::kControl;
  control.say(encode(hello));
  ASSERT_TRUE(control.answer());
  Stranger append(a.url());
  append.say(encode(kGood));
  ASSERT_TRUE(append.answer());
  const auto frame = [](Lane lane, std::string_view body) {
    Bytes out;
    append_header(out, FrameType::kData, lane, as_bytes(body));
    return out.append(body);
  };
  append.say(frame(Lane::kAppend, "good"));
  Bytes damaged = frame(Lane::kAppend, "bad");
  damaged.back() = 'x';
  append.say(damaged);
  EXPECT_TRUE(append.closed());
  EXPECT_EQ(a.got().frames(2, Lane::kAppend), std::vector<Bytes>{"good"});
  EXPECT_TRUE(a.has_metric(R"(etcd_network_peer_received_failures_total{From="2"} 1)"));
  control.say(frame(Lane::kControl, "still here"));
  EXPECT_TRUE(eventually([&] { return a.got().frames(2, Lane::kControl) == std::vector<Bytes>{"still here"}; }));
}

TEST(Hostile, NewConnectionOfAPeerTakesThePlaceOfTheOld) {
  Node a(1);
  a.know({{.id = 2, .urls = {"http://127.0.0.1:1"}}});
  Stranger before(a.url());
  before.say(encode(kGood));
  ASSERT_TRUE(before.answer());
  Stranger after(a.url());
  after.say(encode(kGood));
  ASSERT_TRUE(after.answer());
  EXPECT_TRUE(before.closed());
}

TEST(Hostile, SlowReaderFillsItsLaneAndNoOther) {
  constexpr size_t kQueueMax = 4 << 20;
  Node a(1, [](Options& options) {
    options.election_timeout = milliseconds(20'000);
    options.lanes[1].queue_bytes_max = kQueueMax;
  });
  Node b(2);
  Proxy proxy(b.url());
  b.know({a.as_peer()});
  a.know({{.id = 2, .urls = {proxy.url()}}});
  for (const Lane lane : kAllLanes) ASSERT_TRUE(a.deliver(2, lane, "begin"));
  ASSERT_TRUE(eventually([&] { return b.got().count(1, Lane::kAppend) == 1; }));
  proxy.freeze({Lane::kAppend});
  // The kernel takes some megabytes, then the queue fills and stays full.
  const Bytes frame(512 * 1024, 'z');
  size_t taken = 0;
  int refused_in_a_row = 0;
  EXPECT_TRUE(eventually([&] {
    const bool sent = a.network().send(2, Lane::kAppend, frame);
    taken += sent;
    refused_in_a_row = sent ? 0 : refused_in_a_row + 1;
    return refused_in_a_row >= 100;
  }));
  EXPECT_GE(taken * frame.size(), kQueueMax);
  EXPECT_LT(taken * frame.size(), kQueueMax + (64u << 20)) << "bounded";
  EXPECT_FALSE(a.has_metric(R"(etcd_network_peer_sent_failures_total{To="2"} 0)"));
  for (const Lane lane : {Lane::kControl, Lane::kForward, Lane::kSnapshot}) {
    EXPECT_TRUE(a.network().send(2, lane, "past it"));
    EXPECT_TRUE(eventually([&] { return b.got().count(1, lane) == 2; }));
  }
  EXPECT_EQ(b.got().count(1, Lane::kAppend), 1u);
  proxy.thaw();
  EXPECT_TRUE(eventually([&] { return b.got().count(1, Lane::kAppend) == 1 + taken; })) << "nothing is lost";
  EXPECT_EQ(a.got().unreachable(2), 0);
}

TEST(Hostile, QueueIsBoundedByFramesToo) {
  Node a(1, [](Options& options) {
    options.election_timeout = milliseconds(20'000);
    options.lanes[2].queue_frames_max = 8;
  });
  Node b(2);
  Proxy proxy(b.url());
  b.know({a.as_peer()});
  a.know({{.id = 2, .urls = {proxy.url()}}});
  ASSERT_TRUE(a.deliver(2, Lane::kForward, "begin"));
  proxy.freeze({Lane::kForward});
  ASSERT_TRUE(a.deliver(2, Lane::kForward, Bytes(Network::kFrameBytesMax, 'z')));  // more than kernels hold
  int taken = 1;
  while (taken < 100 && a.network().send(2, Lane::kForward, "")) ++taken;
  EXPECT_LE(taken, 8 + 1);  // one was perhaps on its way out when the large one came
  EXPECT_GE(taken, 8 - 1);
}

// A cable is pulled: nothing comes back, not even the end of the connection.
TEST(Hostile, HalfOpenPeerIsNoticedInAboutAnElectionTimeout) {
  const auto quick = [](Options& options) { options.election_timeout = milliseconds(300); };
  Node a(1, quick);
  Node b(2, quick);
  Proxy proxy(b.url());
  b.know({a.as_peer()});
  a.know({{.id = 2, .urls = {proxy.url()}}});
  for (const Lane lane : kAllLanes) ASSERT_TRUE(a.deliver(2, lane, "begin"));
  ASSERT_TRUE(eventually([&] { return b.got().count(1, Lane::kControl) == 1; }));
  proxy.freeze();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(eventually([&] { return a.got().unreachable(2) >= Network::kLanes; }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(3000));  // 375 ms when nobody else wants the machine
  for (const Lane lane : kAllLanes) EXPECT_FALSE(a.network().send(2, lane, "into the void"));
  proxy.thaw();
  for (const Lane lane : kAllLanes) {
    EXPECT_TRUE(a.deliver(2, lane, "again"));
    EXPECT_TRUE(eventually([&] { return b.got().count(1, lane) == 2; }));
  }
}

// As a process that was stopped: it finds everybody silent, because it did not listen.
TEST(Hostile, StandingStillIsNotTakenForTheSilenceOfOthers) {
  static constexpr milliseconds kTimeout{300};
  Node a(1, [](Options& options) { options.election_timeout = kTimeout; });
  Node b(2, [](Options& options) { options.election_timeout = milliseconds(20'000); });
  a.got().hook = [] { std::this_thread::sleep_for(3 * kTimeout); };
  a.know({b.as_peer()});
  b.know({a.as_peer()});
  const auto round_trips = [&] {
    const std::string name = R"(etcd_network_peer_round_trip_time_seconds_count{To="2"} )";
    const std::string all = a.metrics();
    const size_t at = all.find(name);
    return at == std::string::npos ? 0 : std::stoi(all.substr(at + name.size()));
  };
  ASSERT_TRUE(a.deliver(2, Lane::kControl, "x"));
  for (int i = 0; i < 3; ++i) {
    const int before = round_trips();
    ASSERT_TRUE(eventually([&] { return round_trips() > before; }));
    ASSERT_TRUE(b.deliver(1, Lane::kAppend, "stand still"));
    ASSERT_TRUE(eventually([&] { return a.got().count(2, Lane::kAppend) == static_cast<size_t>(i + 1); }));
  }
  const int before = round_trips();
  ASSERT_TRUE(eventually([&] { return round_trips() > before; }));
  EXPECT_EQ(a.got().unreachable(2), 0);
}

// The control connection lives on; the dead one is found by its own pings.
TEST(Hostile, HalfOpenLaneIsNoticedToo) {
  Node a(1, [](Options& options) { options.election_timeout = milliseconds(200); });
  Node b(2);
  Proxy proxy(b.url());
  b.know({a.as_peer()});
  a.know({{.id = 2, .urls = {proxy.url()}}});
  for (const Lane lane : kAllLanes) ASSERT_TRUE(a.deliver(2, lane, "begin"));
  proxy.freeze({Lane::kSnapshot});
  EXPECT_TRUE(eventually([&] { return a.got().unreachable(2) > 0; }));
  EXPECT_FALSE(a.network().send(2, Lane::kSnapshot, "x"));
  EXPECT_TRUE(a.network().send(2, Lane::kControl, "x"));
}

}  // namespace
}  // namespace peer
