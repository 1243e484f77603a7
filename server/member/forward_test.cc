#include "member/forward.h"

#include <gtest/gtest.h>

#include "member/options.h"

namespace member {
namespace {

using std::chrono::seconds;

// Keeps what is sent.
struct Wire final : Network {
  bool open = true;
  std::vector<std::pair<uint64_t, Bytes>> sent;
  Status start(Receiver&) override { return {}; }
  void stop() override {}
  void set_peers(std::vector<Peer>, std::vector<uint64_t>) override {}
  bool send(uint64_t to, Lane lane, Bytes frame) override {
    EXPECT_EQ(lane, Lane::kForward);
    if (open) sent.emplace_back(to, std::move(frame));
    return open;
  }
};

struct Side {
  Wire wire;
  Waiters waiters;
  Forward forward{{.network = &wire, .waiters = waiters, .answer_within = seconds(5)}};
};

Command command(uint64_t id, size_t bytes = 3) {
  return {.request_id = id, .data = std::make_shared<const Bytes>(bytes, 'x')};
}

struct Answers {
  std::vector<std::string> texts;
  Done done() {
    return [this](const Result<apply::Message>& answer) { texts.push_back(answer ? "done" : answer.error().message); };
  }
  KeptAlive kept() {
    return [this](const Result<int64_t>& ttl) {
      texts.push_back(ttl ? "ttl " + std::to_string(*ttl) : ttl.error().message);
    };
  }
  Remaining remaining() {
    return [this](const Result<std::optional<Time>>& left) {
      texts.push_back(!left ? left.error().message : *left ? std::to_string((*left)->count()) + " ns" : "none");
    };
  }
};

TEST(Forward, ProposalsTravelTogetherAndOnlyARefusalIsAnswered) {
  Side follower;
  Side leader;
  Answers answers;
  for (const uint64_t id : {1, 2}) {
    follower.waiters.add(id, seconds(9), answers.done());
    follower.forward.propose(7, command(id));
  }
  EXPECT_TRUE(follower.wire.sent.empty()) << "gathered until flush()";
  follower.forward.flush();
  ASSERT_EQ(follower.wire.sent.size(), 1u);
  EXPECT_EQ(follower.wire.sent[0].first, 7u);

  const auto asked = leader.forward.take(3, follower.wire.sent[0].second);
  ASSERT_TRUE(asked);
  ASSERT_EQ(asked->proposals.size(), 2u);
  EXPECT_EQ(asked->proposals[0].from, 3u);
  EXPECT_EQ(*asked->proposals[0].data, "xxx");
  leader.forward.refuse(asked->proposals[1], {Code::kResourceExhausted, kErrorTooManyRequests});
  leader.forward.flush();
  ASSERT_EQ(leader.wire.sent.size(), 1u);
  EXPECT_EQ(leader.wire.sent[0].first, 3u);
  ASSERT_TRUE(follower.forward.take(7, leader.wire.sent[0].second));
  EXPECT_EQ(answers.texts, std::vector<std::string>{kErrorTooManyRequests});
  EXPECT_EQ(follower.waiters.size(), 1u) << "the other one waits until it is applied";
}

TEST(Forward, WhatCannotBeSentIsRefusedAtOnce) {
  Side follower;
  Answers answers;
  follower.wire.open = false;
  follower.waiters.add(1, seconds(9), answers.done());
  follower.forward.propose(7, command(1));
  follower.forward.keep_alive(7, 5, seconds(0), answers.kept());
  follower.forward.flush();
  EXPECT_EQ(answers.texts, (std::vector<std::string>{kErrorNoLeader, kErrorNoLeader}));
}

TEST(Forward, LargeProposalsFillFramesOfTheirOwn) {
  Side follower;
  for (const uint64_t id : {1, 2, 3}) follower.forward.propose(7, command(id, kForwardFrameBytes / 2));
  follower.forward.flush();
  EXPECT_EQ(follower.wire.sent.size(), 3u);
  for (const auto& [to, frame] : follower.wire.sent) EXPECT_LT(frame.size(), kForwardFrameBytes);
}

TEST(Forward, LeaseCallsGetTheirAnswers) {
  Side follower;
  Side leader;
  Answers answers;
  follower.forward.keep_alive(7, 100, seconds(0), answers.kept());
  follower.forward.keep_alive(7, 101, seconds(0), answers.kept());
  follower.forward.remaining(7, 100, seconds(0), answers.remaining());
  follower.forward.remaining(7, 101, seconds(0), answers.remaining());
  follower.forward.flush();
  const auto asked = leader.forward.take(3, follower.wire.sent.at(0).second);
  ASSERT_EQ(asked->leases.size(), 4u);
  EXPECT_EQ(asked->leases[1].call.id(), 101);
  leader.forward.answer(asked->leases[0], Result<int64_t>(60));
  leader.forward.answer(asked->leases[1], Result<int64_t>(::fail(Code::kUnavailable, kErrorTimeout)));
  leader.forward.answer(asked->leases[2], Result<std::optional<Time>>(Time(42)));
  leader.forward.answer(asked->leases[3], Result<std::optional<Time>>(std::nullopt));
  leader.forward.flush();
  ASSERT_TRUE(follower.forward.take(7, leader.wire.sent.at(0).second));
  EXPECT_EQ(answers.texts, (std::vector<std::string>{"ttl 60", kErrorTimeout, "42 ns", "none"}));
  ASSERT_TRUE(follower.forward.take(7, leader.wire.sent.at(0).second)) << "a repeated answer finds nobody";
  EXPECT_EQ(answers.texts.size(), 4u);
}

TEST(Forward, LeaseCallsEndWithTheLeaderOrTheirTime) {
  Side follower;
  Answers answers;
  follower.forward.keep_alive(7, 1, seconds(0), answers.kept());
  follower.forward.leader_changed();
  EXPECT_EQ(answers.texts, std::vector<std::string>{kErrorNoLeader});
  follower.forward.keep_alive(7, 2, seconds(0), answers.kept());
  follower.forward.expire(seconds(4));
  EXPECT_EQ(answers.texts.size(), 1u);
  follower.forward.expire(seconds(5));
  EXPECT_EQ(answers.texts.back(), kErrorTimeout);
}

// Seed 24 of the cluster simulation: the answer to a keepalive from before a restart was taken for a new one's.
TEST(Forward, AnAnswerFromBeforeARestartFindsNobody) {
  Wire wire;
  Waiters waiters;
  Answers answers;
  Side leader;
  Forward before({.network = &wire, .waiters = waiters, .answer_within = seconds(5), .first_call = 1000});
  before.keep_alive(7, 100, seconds(0), answers.kept());
  before.flush();
  const auto asked = leader.forward.take(3, wire.sent.at(0).second);
  leader.forward.answer(asked->leases.at(0), Result<int64_t>(60));
  leader.forward.flush();

  Forward after({.network = &wire, .waiters = waiters, .answer_within = seconds(5), .first_call = 5});
  after.keep_alive(7, 101, seconds(0), answers.kept());
  ASSERT_TRUE(after.take(7, leader.wire.sent.at(0).second));
  EXPECT_TRUE(answers.texts.empty());
}

TEST(Forward, NonsenseIsDropped) {
  Side leader;
  EXPECT_EQ(leader.forward.take(3, "nonsense").error().code, Code::kInvalidArgument);
  conclavepb::PeerFrame frame;
  frame.set_version(kPeerFrameVersion + 1);
  EXPECT_FALSE(leader.forward.take(3, frame.SerializeAsString()));
  frame.set_version(kPeerFrameVersion);
  frame.add_calls()->mutable_proposal()->set_type(9);
  frame.add_calls();
  EXPECT_TRUE(leader.forward.take(3, frame.SerializeAsString())->proposals.empty());
}

}  // namespace
}  // namespace member
