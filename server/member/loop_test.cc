#include "member/loop.h"

#include <gtest/gtest.h>

#include "base/memory_disk.h"

namespace member {
namespace {

struct HandClock final : public Clock {
  std::chrono::nanoseconds monotonic() override { return now; }
  std::chrono::nanoseconds wall() override { return now; }
  std::chrono::nanoseconds now = std::chrono::seconds(1);
};

// Counts the answers to calls for leases in what is sent.
struct Wire final : Network {
  Status start(Receiver&) override { return {}; }
  void stop() override {}
  void set_peers(std::vector<Peer>, std::vector<uint64_t>) override {}
  bool send(uint64_t, Lane lane, Bytes bytes) override {
    if (lane != Lane::kForward) return true;
    conclavepb::PeerFrame frame;
    EXPECT_TRUE(frame.ParseFromString(bytes));
    for (const auto& call : frame.calls()) {
      if (call.has_lease_answer()) ++answers[call.lease_answer().message()];
    }
    return true;
  }
  std::map<std::string, size_t> answers;
};

// Of two voters; the other one is the test's.
class LoopTest : public testing::Test {
 protected:
  LoopTest()
      : loop_(Options(), {.id = 1, .pre_vote = false}, {.membership = {.voters = {1, 2}}},
              {.clock = clock_,
               .random = random_,
               .failure = failure_,
               .waiters = waiters_,
               .leases = leases_,
               .network = &wire_,
               .persist =
                   [this](WalStage::Job job) {
                     if (job.batch) loop_.persisted(*job.batch);
                   },
               .commit = [](std::vector<LogEntry>) {},
               .members = [] { return std::vector<apply::Member>(); },
               .members_changed = [] {},
               .snapshot_needed = [](uint64_t, uint64_t) {},
               .snapshot_offered = [](const raft::SnapshotOffer&) {}}) {}

  void lead() {
    for (int i = 0; i < 100 && loop_.status().role != raft::Role::kLeader; ++i) {
      clock_.now += std::chrono::milliseconds(100);
      loop_.step();
      if (loop_.status().role != raft::Role::kCandidate) continue;
      loop_.receive({.type = raft::MessageType::kVoteResponse, .from = 2, .to = 1, .term = loop_.status().term});
      loop_.step();
    }
    ASSERT_EQ(loop_.status().role, raft::Role::kLeader);
  }
  static Bytes calls(size_t count) {
    conclavepb::PeerFrame frame;
    frame.set_version(kPeerFrameVersion);
    for (size_t i = 0; i < count; ++i) {
      auto& call = *frame.add_calls()->mutable_lease();
      call.set_call(i + 1);
      call.set_id(-1 - static_cast<int64_t>(i));  // ten bytes
    }
    return frame.SerializeAsString();
  }
  // Steps until there is nothing left of what came; how many it took.
  int steps() {
    int count = 1;
    while (loop_.step() == kNow) ++count;
    return count;
  }

  HandClock clock_;
  SeededRandom random_{1};
  Failure failure_;
  Waiters waiters_;
  lease::Table leases_;
  Wire wire_;
  Loop loop_;
};

TEST_F(LoopTest, ForwardedFramesWaitUpToALimitOfBytesAndAreReadAFewAtATime) {
  const Bytes frame = calls(100'000);
  ASSERT_GT(frame.size(), 1U << 20);
  for (int i = 0; i < 1000; ++i) loop_.receive_forwarded(7, frame);
  const size_t fit = kForwardedBytesMax / frame.size();
  EXPECT_EQ(loop_.forwarded_bytes(), fit * frame.size());
  EXPECT_GE(steps(), static_cast<int>(kForwardedBytesMax / kForwardedBytesPerStep) / 2);
  EXPECT_EQ(loop_.forwarded_bytes(), 0U);
  size_t answered = 0;
  for (const auto& [message, count] : wire_.answers) answered += count;
  EXPECT_EQ(answered, fit * 100'000) << "all of what fitted, and nothing of the rest";
  loop_.receive_forwarded(7, frame);
  EXPECT_EQ(loop_.forwarded_bytes(), frame.size()) << "there is room again";
}

TEST_F(LoopTest, ALeaderThatCannotConfirmItLeadsKeepsABoundedNumberOfLeaseCalls) {
  lead();
  for (int i = 0; i < 30; ++i) {
    loop_.receive_forwarded(7, calls(10'000));
    steps();
  }
  EXPECT_EQ(wire_.answers[kErrorTooManyRequests], 30 * 10'000 - kCallsWaitingMax);
  clock_.now += Options().request_timeout() + std::chrono::seconds(1);
  loop_.step();
  EXPECT_EQ(wire_.answers[kErrorTooManyRequests], 30 * 10'000 - kCallsWaitingMax);
  size_t answered = 0;
  for (const auto& [message, count] : wire_.answers) answered += count;
  EXPECT_EQ(answered, 30U * 10'000) << "those that waited are told that it took too long";
}

}  // namespace
}  // namespace member
