// Somebody who reaches the peer port and says what no member says. Nobody stops for it, and nothing of it is in the
// log that would stop them later.
#include <gtest/gtest.h>

#include "api/peer.pb.h"
#include "member/forward.h"
#include "raft/wire.h"
#include "sim/scenario.h"

namespace sim {
namespace {

constexpr uint64_t kStranger = 0xbad0000000000001;

class Stranger final : public Network::Receiver {
 public:
  explicit Stranger(Scenario& scenario)
      : scenario_(scenario), endpoint_(scenario.cluster.network.open(99, {"http://stranger:2380"})) {
    endpoint_->set_id(kStranger);
    EXPECT_TRUE(endpoint_->start(*this));
    std::vector<Network::Peer> peers;
    for (size_t i = 0; i < scenario.cluster.size(); ++i) {
      peers.push_back({scenario.member(i).member_id(), scenario.cluster.node(i).options.peer_urls});
    }
    endpoint_->set_peers(std::move(peers), {});
  }
  ~Stranger() override { endpoint_->stop(); }

  // One frame each, so that what is wrong with one does not hide another.
  void propose(size_t node, EntryType type, const Bytes& data) {
    conclavepb::PeerFrame frame;
    frame.set_version(member::kPeerFrameVersion);
    auto& proposal = *frame.add_calls()->mutable_proposal();
    proposal.set_request_id(++asked);
    proposal.set_type(static_cast<uint32_t>(type));
    proposal.set_data(data);
    EXPECT_TRUE(send(node, Network::Lane::kForward, frame.SerializeAsString()));
  }
  void say(size_t node, raft::Message message) {
    message.from = kStranger;
    message.to = scenario_.member(node).member_id();
    Bytes frame;
    raft::encode(message, frame);
    EXPECT_TRUE(send(node, Network::Lane::kControl, std::move(frame)));
  }
  bool send(size_t node, Network::Lane lane, Bytes frame) {
    return endpoint_->send(scenario_.member(node).member_id(), lane, std::move(frame));
  }

  void on_frame(uint64_t, Network::Lane lane, Bytes frame) override {
    if (lane != Network::Lane::kForward) return;
    conclavepb::PeerFrame parsed;
    ASSERT_TRUE(parsed.ParseFromString(frame));
    for (const auto& call : parsed.calls()) refused.push_back(call.refusal().message());
  }
  void on_unreachable(uint64_t) override {}
  void on_removed() override {}
  void on_other_folder() override {}
  void describe_cluster(std::function<void(Bytes)>) override {}

  uint64_t asked = 0;
  std::vector<std::string> refused;

 private:
  Scenario& scenario_;
  std::unique_ptr<SimulatedNetwork::Endpoint> endpoint_;
};

// They are the same members, and they work; also after all of them were started again.
void expect_unharmed(Scenario& scenario) {
  for (int starts = 0; starts < 2; ++starts) {
    const size_t leader = scenario.await_leader();
    if (testing::Test::HasFailure()) return;
    scenario.must(leader, command::put("k", "v"));
    EXPECT_TRUE(scenario.await_equal());
    for (size_t i = 0; i < scenario.cluster.size(); ++i) {
      EXPECT_EQ(scenario.cluster.node(i).starts, static_cast<uint64_t>(starts) + 1) << "member " << i << " stopped";
      EXPECT_EQ(scenario.member(i).members().size(), scenario.cluster.size());
    }
    for (size_t i = 0; starts == 0 && i < scenario.cluster.size(); ++i) scenario.stop(i);
    for (size_t i = 0; starts == 0 && i < scenario.cluster.size(); ++i) scenario.start(i);
  }
}

TEST(Stranger, ProposesNothingThatCannotBeApplied) {
  Scenario scenario({});
  const size_t leader = scenario.await_leader();
  Stranger stranger(scenario);
  conclavepb::Entry entry;
  entry.set_version(99);
  entry.mutable_put()->set_key("k");
  stranger.propose(leader, EntryType::kCommand, "\xff\xff garbage");
  stranger.propose(leader, EntryType::kCommand, entry.SerializeAsString());
  entry.set_version(1);
  entry.clear_put();
  stranger.propose(leader, EntryType::kCommand, entry.SerializeAsString());
  stranger.propose(leader, EntryType::kMembership, "\xff\xff garbage");
  conclavepb::MembershipChange nobody;
  nobody.add_peer_urls("http://127.0.0.1:3");
  nobody.set_is_learner(true);
  stranger.propose(leader, EntryType::kMembership, nobody.SerializeAsString());
  stranger.propose(leader, EntryType::kCommand, Bytes(raft::kWireEntryBytesMax + 1, 'x'));
  EXPECT_TRUE(scenario.until([&] { return stranger.refused.size() == stranger.asked; }));
  expect_unharmed(scenario);
}

TEST(Stranger, CannotSayThatEntriesAreLost) {
  Scenario scenario({});
  const size_t leader = scenario.await_leader();
  Stranger stranger(scenario);
  const uint64_t term = scenario.member(leader).term();
  for (size_t i = 0; i < scenario.cluster.size(); ++i) {
    stranger.say(i, {.type = raft::MessageType::kHeartbeat, .term = term + 1, .commit = 1'000'000'000});
  }
  scenario.run_for(std::chrono::seconds(1));
  EXPECT_EQ(scenario.member(leader).term(), term) << "nobody believes it";
  expect_unharmed(scenario);
}

// The last term there is, and more than that, which only bytes can say.
TEST(Stranger, CannotUseUpTheTerms) {
  Scenario scenario({});
  scenario.await_leader();
  Stranger stranger(scenario);
  const raft::Message last{.type = raft::MessageType::kHeartbeat, .term = raft::kTermMax};
  for (size_t i = 0; i < scenario.cluster.size(); ++i) {
    raft::Message message = last;
    message.from = kStranger;
    message.to = scenario.member(i).member_id();
    Bytes frame;
    raft::encode(message, frame);
    constexpr size_t kTermAt = 4 + 2 * sizeof(uint64_t);
    frame.replace(kTermAt, sizeof(uint64_t), sizeof(uint64_t), '\xff');
    EXPECT_TRUE(stranger.send(i, Network::Lane::kControl, std::move(frame)));
    stranger.say(i, last);
  }
  scenario.run_for(std::chrono::seconds(1));
  expect_unharmed(scenario);
}

}  // namespace
}  // namespace sim
