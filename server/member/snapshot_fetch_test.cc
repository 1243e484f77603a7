#include "member/snapshot_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory_disk.h"
#include "member/snapshot_files.h"
#include "snapshot/writer.h"

namespace member {
namespace {

using testing::HasSubstr;
using Operation = MemoryDisk::Operation;
using State = SnapshotFetch::State;

constexpr Generation kSnapshot{3, 40};
constexpr uint64_t kPeer = 7;
constexpr uint64_t kCluster = 99;
const std::string kIncoming = "data/snap/incoming-3-40.part";

// The member that has it, on a disk of its own.
class Peer {
 public:
  explicit Peer(uint64_t rows = 3000) {
    EXPECT_TRUE(disk.create_directory("data/snap"));
    auto writer = *snapshot::Writer::create(disk, snapshot_path("data", kSnapshot),
                                            {.cluster_id = kCluster, .index = 40, .term = 3});
    SeededRandom random(5);
    for (uint64_t id = 1; id <= rows; ++id) {
      Bytes value;
      while (value.size() < 64) append_integer(value, random.next());
      writer->add(
          {.id = static_cast<int64_t>(id), .create_revision = 1, .version = 1, .lease = 0, .key = "k", .value = value});
      EXPECT_TRUE(!writer->full() || writer->flush());
    }
    EXPECT_TRUE(writer->finish());
    content = *disk.content(snapshot_path("data", kSnapshot));
  }
  Bytes answer(const Bytes& request) { return encode(*chunks_.read(*decode_piece_request(as_bytes(request)), Time{})); }

  MemoryDisk disk;
  Bytes content;

 private:
  SnapshotChunks chunks_{disk, "data"};
};

SnapshotFetch::Options options_for_tests() {
  return {.data_dir = "data", .cluster_id = kCluster, .from = kPeer, .snapshot = kSnapshot, .piece_bytes = 10'000};
}

class SnapshotFetchTest : public testing::Test {
 protected:
  // Runs until it is over; every request is answered, in order, but for what `lost` says.
  void run(
      SnapshotFetch& fetch, const std::function<bool()>& lost = [] { return false; }) {
    std::vector<SnapshotFetch::Outgoing> out;
    for (int steps = 0; steps < 100'000; ++steps) {
      out.clear();
      const Time next = fetch.step(now_, out);
      if (fetch.state() == State::kDone || fetch.state() == State::kFailed) return;
      EXPECT_LE(out.size(), 4u);
      for (const auto& request : out) {
        EXPECT_EQ(request.to, kPeer);
        if (!lost()) fetch.take(kPeer, as_bytes(peer_.answer(request.frame)), now_);
      }
      if (out.empty() && next != kNow) {
        ASSERT_NE(next, kWhenWoken);
        now_ = std::max(now_, next);
      }
    }
    FAIL() << "endless";
  }
  void expect_done(const SnapshotFetch& fetch, const MemoryDisk& disk) {
    ASSERT_EQ(fetch.state(), State::kDone) << fetch.error().message;
    EXPECT_EQ(fetch.path(), kIncoming);
    EXPECT_TRUE(*disk.content(kIncoming) == peer_.content);
  }
  Peer peer_;
  MemoryDisk disk_;
  Time now_ = std::chrono::seconds(1);
};

TEST_F(SnapshotFetchTest, FetchesAllOfIt) {
  SnapshotFetch fetch(disk_, options_for_tests());
  run(fetch);
  expect_done(fetch, disk_);
  MemoryDisk crashed;
  SeededRandom random(1);
  disk_.crash(random, MemoryDisk::Loss::kEverything);
  EXPECT_TRUE(*disk_.content(kIncoming) == peer_.content) << "it is durable";
}

TEST_F(SnapshotFetchTest, AnswersInAnyOrderRepeatedAndLost) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SeededRandom random(seed);
    MemoryDisk disk;
    auto options = options_for_tests();
    options.attempts_max = 1000;
    SnapshotFetch fetch(disk, options);
    std::vector<Bytes> answers;
    std::vector<SnapshotFetch::Outgoing> out;
    while (fetch.state() == State::kFetching || fetch.state() == State::kVerifying) {
      out.clear();
      const Time next = fetch.step(now_, out);
      for (const auto& request : out) answers.push_back(peer_.answer(request.frame));
      if (answers.empty() && next != kNow && next != kWhenWoken) now_ = next;
      if (answers.empty()) continue;
      const size_t pick = random.below(answers.size());
      if (random.below(8) != 0) fetch.take(kPeer, as_bytes(answers[pick]), now_);
      if (random.below(8) != 0) answers.erase(answers.begin() + static_cast<ptrdiff_t>(pick));
      if (random.below(20) == 0) fetch.unreachable(kPeer, now_);
    }
    expect_done(fetch, disk);
  }
}

TEST_F(SnapshotFetchTest, AsksForOneUntilItKnowsTheLengthThenForAWindow) {
  SnapshotFetch fetch(disk_, options_for_tests());
  std::vector<SnapshotFetch::Outgoing> out;
  EXPECT_EQ(fetch.step(now_, out), now_ + std::chrono::seconds(5));
  ASSERT_EQ(out.size(), 1u);
  fetch.take(kPeer, as_bytes(peer_.answer(out[0].frame)), now_);
  out.clear();
  fetch.step(now_, out);
  EXPECT_EQ(out.size(), 4u);
  fetch.step(now_, out);
  EXPECT_EQ(out.size(), 4u) << "no more until something comes";
  // The first of them is missing: the others are kept, and nothing beyond the window is asked for.
  for (size_t i = 1; i < 4; ++i) fetch.take(kPeer, as_bytes(peer_.answer(out[i].frame)), now_);
  const Bytes first = out[0].frame;
  out.clear();
  fetch.step(now_, out);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(fetch.bytes_fetched(), 10'000u);
  fetch.take(kPeer, as_bytes(peer_.answer(first)), now_);
  EXPECT_EQ(fetch.bytes_fetched(), 50'000u);
}

TEST_F(SnapshotFetchTest, GivesUpWhenNobodyAnswers) {
  SnapshotFetch fetch(disk_, options_for_tests());
  const Time began = now_;
  run(fetch, [] { return true; });
  EXPECT_EQ(fetch.state(), State::kFailed);
  EXPECT_EQ(fetch.error().code, Code::kUnavailable);
  EXPECT_THAT(fetch.error().message, HasSubstr("member 7 does not answer"));
  EXPECT_EQ(now_ - began, std::chrono::seconds(5) * 21);
}

TEST_F(SnapshotFetchTest, GoesOnFromWhereItWasCutOff) {
  int answered = 0;
  {
    SnapshotFetch fetch(disk_, options_for_tests());
    run(fetch, [&] { return ++answered > 9; });
    ASSERT_EQ(fetch.state(), State::kFailed);
    EXPECT_EQ(fetch.bytes_fetched(), 90'000u);
  }
  answered = 0;
  SnapshotFetch fetch(disk_, options_for_tests());
  run(fetch, [&] {
    ++answered;
    return false;
  });
  expect_done(fetch, disk_);
  EXPECT_EQ(static_cast<size_t>(answered), (peer_.content.size() - 90'000 + 9'999) / 10'000 + 0);
}

TEST_F(SnapshotFetchTest, AWholeFileIsOnlyVerified) {
  disk_.put(kIncoming, as_bytes(peer_.content));
  int answered = 0;
  SnapshotFetch fetch(disk_, options_for_tests());
  run(fetch, [&] { return ++answered > 1; });
  expect_done(fetch, disk_);
}

TEST_F(SnapshotFetchTest, WhatDoesNotFitIsThrownAwayAndFetchedAnew) {
  Bytes longer = peer_.content + "too long";
  disk_.put(kIncoming, as_bytes(longer));
  SnapshotFetch first(disk_, options_for_tests());
  run(first);
  expect_done(first, disk_);
  Bytes torn = peer_.content.substr(0, 100'000);
  torn.replace(50'000, 4096, 4096, '\0');
  disk_.put(kIncoming, as_bytes(torn));
  SnapshotFetch second(disk_, options_for_tests());
  run(second);
  expect_done(second, disk_);
}

TEST_F(SnapshotFetchTest, OneThatIsDamagedWhereItComesFromFailsAtTheSecondAttempt) {
  peer_.disk.flip_bit(snapshot_path("data", kSnapshot), 8 * 1000);
  SnapshotFetch fetch(disk_, options_for_tests());
  run(fetch);
  ASSERT_EQ(fetch.state(), State::kFailed);
  EXPECT_EQ(fetch.error().code, Code::kDataLoss);
}

TEST_F(SnapshotFetchTest, OneThatIsGoneOrOfAnotherClusterFailsAtOnce) {
  auto options = options_for_tests();
  options.snapshot = {3, 41};
  SnapshotFetch gone(disk_, options);
  run(gone);
  EXPECT_EQ(gone.error().code, Code::kNotFound);
  options = options_for_tests();
  options.cluster_id = 1;
  SnapshotFetch foreign(disk_, options);
  run(foreign);
  EXPECT_EQ(foreign.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(foreign.error().message, HasSubstr("another cluster"));
}

TEST_F(SnapshotFetchTest, OthersThatWereBeingFetchedAreGivenUp) {
  disk_.put("data/snap/incoming-2-30.part", as_bytes("half"));
  SnapshotFetch fetch(disk_, options_for_tests());
  run(fetch);
  expect_done(fetch, disk_);
  EXPECT_EQ(disk_.list("data/snap")->size(), 1u);
}

TEST_F(SnapshotFetchTest, AnswersThatWereNotAskedForAreDropped) {
  SnapshotFetch fetch(disk_, options_for_tests());
  std::vector<SnapshotFetch::Outgoing> out;
  fetch.step(now_, out);
  const PieceRequest right = *decode_piece_request(as_bytes(out[0].frame));
  const Bytes answer = peer_.answer(out[0].frame);
  fetch.take(8, as_bytes(answer), now_);
  fetch.take(kPeer, as_bytes(answer.substr(0, answer.size() - 1)), now_);
  fetch.take(kPeer, as_bytes(out[0].frame), now_);
  auto other = right;
  other.offset += 1;
  fetch.take(kPeer, as_bytes(peer_.answer(encode(other))), now_);
  other = right;
  other.bytes -= 1;
  fetch.take(kPeer, as_bytes(peer_.answer(encode(other))), now_);
  EXPECT_EQ(fetch.bytes_fetched(), 0u);
  fetch.take(kPeer, as_bytes(answer), now_);
  EXPECT_EQ(fetch.bytes_fetched(), 10'000u);
}

TEST_F(SnapshotFetchTest, WaitsWhileTheDiskIsFull) {
  disk_.set_capacity(60'000);
  SnapshotFetch fetch(disk_, options_for_tests());
  const Time full_until = now_ + std::chrono::seconds(30);
  std::vector<SnapshotFetch::Outgoing> out;
  while (now_ < full_until) {
    out.clear();
    const Time next = fetch.step(now_, out);
    ASSERT_EQ(fetch.state(), State::kFetching) << fetch.error().message;
    for (const auto& request : out) fetch.take(kPeer, as_bytes(peer_.answer(request.frame)), now_);
    if (out.empty() && next != kNow) now_ = next;
  }
  disk_.set_capacity(1 << 30);
  run(fetch);
  expect_done(fetch, disk_);
}

// The power goes at every change; the next start goes on with what is there and ends with the same file.
TEST_F(SnapshotFetchTest, APowerCutAtAnyChange) {
  MemoryDisk whole;
  SnapshotFetch uncut(whole, options_for_tests());
  run(uncut);
  const uint64_t changes = whole.changes();
  ASSERT_GT(changes, 20u);
  for (uint64_t cut = 0; cut < changes; ++cut) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
      SCOPED_TRACE("cut " + std::to_string(cut) + " seed " + std::to_string(seed));
      MemoryDisk disk;
      disk.cut_power_at(cut);
      {
        SnapshotFetch fetch(disk, options_for_tests());
        run(fetch);
        ASSERT_EQ(fetch.state(), State::kFailed);
      }
      SeededRandom random(seed * 1000 + cut);
      disk.crash(random);
      SnapshotFetch again(disk, options_for_tests());
      run(again);
      expect_done(again, disk);
      if (HasFailure()) return;
    }
  }
}

TEST_F(SnapshotFetchTest, AFailingCallIsAFailureAndAFullDiskIsNot) {
  for (const Operation operation : {Operation::kWrite, Operation::kSync, Operation::kOpen, Operation::kTruncate}) {
    for (const Code code : {Code::kDataLoss, Code::kResourceExhausted}) {
      for (uint64_t n = 1; n <= 40; ++n) {
        MemoryDisk disk;
        disk.inject({.operation = operation,
                     .nth = n,
                     .code = code,
                     .path = {},
                     .partial_bytes = n * 100,
                     .loses_unsynced = false});
        SnapshotFetch fetch(disk, options_for_tests());
        run(fetch);
        const bool happened = disk.calls(operation) >= n;
        if (happened && code == Code::kDataLoss && fetch.state() == State::kFailed) {
          EXPECT_EQ(fetch.error().code, Code::kDataLoss);
        } else if (happened && code == Code::kDataLoss) {
          EXPECT_EQ(operation, Operation::kOpen) << "it could not be opened to be verified, and was fetched anew";
          expect_done(fetch, disk);
        } else {
          expect_done(fetch, disk);
        }
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace member
