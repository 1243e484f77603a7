// Many threads send while members come, go and stop. For TSan above all; what is checked besides: whole frames only,
// and silence after stop().
#include <atomic>

#include "peer/test_peer.h"

namespace peer {
namespace {

TEST(Threads, StopWhileEverybodySends) {
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Network::Peer> peers;
  for (uint64_t id = 1; id <= 3; ++id) {
    nodes.push_back(std::make_unique<Node>(id));
    peers.push_back(nodes.back()->as_peer());
  }
  for (const auto& node : nodes) node->know(peers);
  for (const auto& node : nodes) {
    for (const auto& peer : peers) {
      ASSERT_TRUE(peer.id == node->id() || node->deliver(peer.id, Lane::kAppend, "0"));
    }
  }
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (const auto& node : nodes) {
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&over, &peers, node = node.get()] {
        for (size_t n = 0; !over; ++n) {
          const char digit = static_cast<char>('0' + n % 10);
          const bool sent = node->network().send(peers[n % 3].id, kAllLanes[n % 4], Bytes(1 + n % 500, digit));
          if (!sent && n % 64 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      });
    }
  }
  threads.emplace_back([&over, &peers, &nodes] {
    for (size_t n = 0; !over; ++n) {
      Node& node = *nodes[n % 3];
      node.know({peers[n % 2], peers[1 + n % 2]});
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      node.know(peers);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  const auto frames = [](Node& node) {
    size_t all = 0;
    for (uint64_t from = 1; from <= 3; ++from) all += node.got().count(from, Lane::kAppend);
    return all;
  };
  for (const auto& node : nodes) {
    const size_t before = frames(*node);
    EXPECT_TRUE(eventually([&] { return frames(*node) > before + 200; }));
  }
  nodes[0]->stop();
  const int calls = nodes[0]->got().calls();
  const size_t others = frames(*nodes[1]);
  EXPECT_TRUE(eventually([&] { return frames(*nodes[1]) > others + 200; })) << "the other two go on";
  EXPECT_EQ(nodes[0]->got().calls(), calls);
  nodes[1]->stop();
  nodes[2]->stop();
  over = true;
  for (auto& thread : threads) thread.join();
  for (const auto& node : nodes) {
    for (uint64_t from = 1; from <= 3; ++from) {
      for (const Lane lane : kAllLanes) {
        for (const Bytes& frame : node->got().frames(from, lane)) {
          ASSERT_EQ(frame, Bytes(frame.size(), frame.empty() ? '0' : frame[0]));
        }
      }
    }
  }
}

TEST(Threads, StopsAtOnceWhatNeverGotAnywhere) {
  const auto silent = Listener::bind({"http://127.0.0.1:0"});
  ASSERT_TRUE(silent);
  Node a(1);
  // Connects to nobody, to one that says nothing, and to a name whose search may take long.
  a.know({{.id = 2, .urls = {"http://127.0.0.1:1"}},
          {.id = 3, .urls = {(*silent)->urls()[0]}},
          {.id = 4, .urls = {"http://no.such.host.invalid:1"}}});
  const auto begin = std::chrono::steady_clock::now();
  a.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  a.know({});
  EXPECT_FALSE(a.network().send(2, Lane::kControl, "x"));
}

}  // namespace
}  // namespace peer
