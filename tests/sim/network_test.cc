#include "sim/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/clock.h"

namespace sim {
namespace {

using std::chrono::milliseconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Lane = Network::Lane;

struct Heard : Network::Receiver {
  void on_frame(uint64_t from, Lane, Bytes frame) override {
    frames.push_back(std::to_string(from) + ":" + frame);
    if (answer) answer(from);
  }
  void on_unreachable(uint64_t peer) override { unreachable.push_back(peer); }
  void on_removed() override { ++removed; }
  void on_other_folder() override { ++removed; }
  void describe_cluster(std::function<void(Bytes)> tell) override {
    if (later) {
      asks.push_back(std::move(tell));
    } else {
      tell("cluster");
    }
  }

  std::vector<std::string> frames;
  std::vector<uint64_t> unreachable;
  int removed = 0;
  std::function<void(uint64_t)> answer;
  bool later = false;
  std::vector<std::function<void(Bytes)>> asks;
};

class SimNetwork : public testing::Test {
 protected:
  static constexpr size_t kNodes = 3;
  void SetUp() override {
    for (uint32_t node = 0; node < kNodes; ++node) open(node);
  }
  static std::string url(size_t node) { return "http://m" + std::to_string(node) + ":2380"; }
  static uint64_t id(size_t node) { return 100 + node; }
  void open(uint32_t node) {
    endpoints[node].reset();
    endpoints[node] = network.open(node, {url(node)});
    endpoints[node]->set_id(id(node));
    ASSERT_TRUE(endpoints[node]->start(heard[node]));
    set_peers(node, {});
  }
  void set_peers(size_t node, std::vector<uint64_t> removed) {
    std::vector<Network::Peer> peers;
    for (size_t other = 0; other < kNodes; ++other) {
      const bool gone = std::find(removed.begin(), removed.end(), id(other)) != removed.end();
      if (other != node && !gone) peers.push_back({id(other), {"http://elsewhere:1", url(other)}});
    }
    endpoints[node]->set_peers(peers, std::move(removed));
  }
  bool send(size_t from, size_t to, const std::string& text, Lane lane = Lane::kAppend) {
    return endpoints[from]->send(id(to), lane, text);
  }
  void run(milliseconds time = milliseconds(2000)) {
    const auto end = clock.monotonic() + time;
    while (network.next_time() <= end) {
      clock.advance_to(network.next_time());
      network.step();
    }
    clock.advance_to(end);
  }

  SimClock clock;
  SimulatedNetwork network{clock, 1};
  Heard heard[kNodes];
  std::unique_ptr<SimulatedNetwork::Endpoint> endpoints[kNodes];
};

TEST_F(SimNetwork, FramesArriveInOrderAndLater) {
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(send(0, 1, std::to_string(i)));
  EXPECT_THAT(heard[1].frames, IsEmpty());
  run();
  ASSERT_THAT(heard[1].frames, SizeIs(50));
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(heard[1].frames[i], "100:" + std::to_string(i));
  EXPECT_THAT(heard[2].frames, IsEmpty());
}

TEST_F(SimNetwork, AReceiverMayAnswerAtOnce) {
  heard[1].answer = [this](uint64_t) { send(1, 0, "answer"); };
  send(0, 1, "question");
  run();
  EXPECT_THAT(heard[0].frames, ElementsAre("101:answer"));
}

TEST_F(SimNetwork, LosesRepeatsAndReorders) {
  network.set_quality({.lost_per_million = 100'000, .repeated_per_million = 100'000, .reordered_per_million = 200'000});
  for (int i = 0; i < 1000; ++i) {
    send(0, 1, std::to_string(1000 + i));
    clock.advance(milliseconds(1));
  }
  run();
  const std::set<std::string> different(heard[1].frames.begin(), heard[1].frames.end());
  EXPECT_NEAR(static_cast<double>(different.size()), 900, 50);
  EXPECT_NEAR(static_cast<double>(heard[1].frames.size() - different.size()), 90, 40);
  EXPECT_FALSE(std::is_sorted(heard[1].frames.begin(), heard[1].frames.end()));
  EXPECT_EQ(network.stats().delivered, heard[1].frames.size());
  EXPECT_EQ(network.stats().sent, 1000U);
}

TEST_F(SimNetwork, ACutIsOfOneDirectionAndLane) {
  network.cut(0, 1, Lane::kAppend);
  EXPECT_TRUE(send(0, 1, "lost"));
  EXPECT_TRUE(send(0, 1, "control", Lane::kControl));
  EXPECT_TRUE(send(1, 0, "back"));
  run();
  EXPECT_THAT(heard[1].frames, ElementsAre("100:control"));
  EXPECT_THAT(heard[0].frames, ElementsAre("101:back"));
  EXPECT_THAT(heard[0].unreachable, ElementsAre(id(1)));
  network.heal(0, 1);
  send(0, 1, "again");
  run();
  EXPECT_THAT(heard[1].frames, ElementsAre("100:control", "100:again"));
}

TEST_F(SimNetwork, ACutTakesWhatIsUnderWay) {
  send(0, 1, "under way");
  network.cut_off(1, {0, 1, 2});
  run();
  EXPECT_THAT(heard[1].frames, IsEmpty());
  send(1, 2, "out");
  run();
  EXPECT_THAT(heard[2].frames, IsEmpty());
  network.heal_all();
  send(1, 2, "out");
  run();
  EXPECT_THAT(heard[2].frames, SizeIs(1));
}

TEST_F(SimNetwork, APausedMachineHearsItAllAfterwards) {
  network.pause(1);
  for (int i = 0; i < 3; ++i) send(0, 1, std::to_string(i));
  run();
  EXPECT_THAT(heard[1].frames, IsEmpty());
  network.resume(1);
  run();
  EXPECT_THAT(heard[1].frames, ElementsAre("100:0", "100:1", "100:2"));
  network.pause(1);
  const std::string large(SimulatedNetwork::kHeldBytesMax / 4, 'x');
  for (int i = 0; i < 8; ++i) send(0, 1, large);
  run();
  network.resume(1);
  run();
  EXPECT_THAT(heard[1].frames, SizeIs(3 + 4));
}

TEST_F(SimNetwork, ARestartLosesWhatWasUnderWay) {
  send(0, 1, "old");
  endpoints[1].reset();
  EXPECT_FALSE(send(0, 1, "nobody there"));
  open(1);
  send(0, 1, "new");
  run();
  EXPECT_THAT(heard[1].frames, ElementsAre("100:new"));
  EXPECT_THAT(heard[0].unreachable, Contains(id(1)));
}

TEST_F(SimNetwork, NothingIsHeardAfterStop) {
  send(0, 1, "x");
  endpoints[1]->stop();
  run();
  EXPECT_THAT(heard[1].frames, IsEmpty());
  EXPECT_FALSE(endpoints[1]->send(id(0), Lane::kControl, "y"));
}

TEST_F(SimNetwork, OneLaneDoesNotWaitForAnother) {
  network.set_quality(Lane::kSnapshot, {.bytes_per_second = 1'000'000, .queue_bytes_max = 3'000'000});
  EXPECT_TRUE(send(0, 1, std::string(2'000'000, 's'), Lane::kSnapshot));
  EXPECT_TRUE(send(0, 1, std::string(2'000'000, 's'), Lane::kSnapshot));
  EXPECT_FALSE(send(0, 1, "full", Lane::kSnapshot));
  EXPECT_TRUE(send(0, 1, "beat", Lane::kControl));
  run(milliseconds(100));
  EXPECT_THAT(heard[1].frames, ElementsAre("100:beat"));
  run(milliseconds(2000));
  EXPECT_THAT(heard[1].frames, SizeIs(2));
  run(milliseconds(2000));
  EXPECT_THAT(heard[1].frames, SizeIs(3));
}

TEST_F(SimNetwork, TheRemovedAreToldAndThoseWhoIntroduceThemselvesArePeers) {
  set_peers(1, {id(0)});
  send(0, 1, "I was a member");
  run();
  EXPECT_THAT(heard[1].frames, IsEmpty());
  EXPECT_EQ(heard[0].removed, 1);
  endpoints[1]->set_peers({}, {});
  send(2, 1, "I am new");
  run();
  EXPECT_THAT(heard[1].frames, SizeIs(1));
  EXPECT_TRUE(endpoints[1]->send(id(2), Lane::kControl, "welcome"));
  EXPECT_FALSE(endpoints[1]->send(id(0), Lane::kControl, "no peer"));
}

TEST_F(SimNetwork, AnswersWhoTheClusterIs) {
  EXPECT_EQ(*network.ask_cluster(0, {"http://elsewhere:1", url(1)}), "cluster");
  EXPECT_EQ(network.ask_cluster(0, {"http://elsewhere:1"}).error().code, Code::kUnavailable);
  network.cut(1, 0);
  EXPECT_FALSE(network.ask_cluster(0, {url(1)}));
}

TEST_F(SimNetwork, AnswersWhoTheClusterIsLater) {
  heard[1].later = true;
  EXPECT_FALSE(network.ask_cluster(0, {url(1)}));
  EXPECT_FALSE(network.ask_cluster(0, {url(1)})) << "it is not asked twice";
  ASSERT_EQ(heard[1].asks.size(), 1U);
  heard[1].asks[0]("cluster");
  EXPECT_EQ(*network.ask_cluster(0, {url(1)}), "cluster");
  EXPECT_FALSE(network.ask_cluster(0, {url(1)})) << "an answer is for one question";
  heard[1].asks[1](Bytes());
  EXPECT_FALSE(network.ask_cluster(0, {url(1)})) << "it could not tell";
  EXPECT_FALSE(network.ask_cluster(0, {url(1)}));
  network.ask_no_more(0);
  heard[1].asks[2]("too late");
  EXPECT_FALSE(network.ask_cluster(0, {url(1)}));
}

TEST_F(SimNetwork, AnAddressIsForOne) {
  const auto second = network.open(7, {url(1)});
  Heard other;
  EXPECT_EQ(second->start(other).error().code, Code::kUnavailable);
}

TEST(SimNetworkTrace, ASeedReplaysExactly) {
  const auto trace = [](uint64_t seed) {
    SimClock clock;
    SimulatedNetwork network(clock, seed);
    network.set_quality({.lost_per_million = 50'000, .repeated_per_million = 50'000, .reordered_per_million = 50'000});
    Heard heard[2];
    std::unique_ptr<SimulatedNetwork::Endpoint> endpoints[2];
    for (uint32_t node = 0; node < 2; ++node) {
      endpoints[node] = network.open(node, {"http://m" + std::to_string(node)});
      endpoints[node]->set_id(node + 1);
      EXPECT_TRUE(endpoints[node]->start(heard[node]));
      endpoints[node]->set_peers({{2 - node, {"http://m" + std::to_string(1 - node)}}}, {});
    }
    for (int i = 0; i < 500; ++i) {
      endpoints[i % 2]->send(2 - static_cast<uint64_t>(i % 2), Lane::kAppend, std::to_string(i));
      if (i == 200) network.cut(0, 1);
      if (i == 300) network.heal_all();
      while (network.next_time() <= clock.monotonic()) network.step();
      clock.advance(std::chrono::microseconds(100));
    }
    return network.trace();
  };
  EXPECT_EQ(trace(7), trace(7));
  EXPECT_NE(trace(7), trace(8));
}

}  // namespace
}  // namespace sim
