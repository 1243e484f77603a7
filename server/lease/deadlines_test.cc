#include "lease/deadlines.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <map>
#include <random>

namespace lease {
namespace {

using namespace std::chrono_literals;

constexpr size_t kAll = 1'000'000;

std::vector<int64_t> sorted(std::vector<int64_t> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(Deadlines, ExpiresAtTheDeadlineAndNotBefore) {
  Deadlines deadlines;
  EXPECT_FALSE(deadlines.next());
  deadlines.granted(1, 10, 100s);
  deadlines.granted(2, 20, 100s);
  EXPECT_EQ(deadlines.remaining(1, 104s), Time(6s));
  EXPECT_TRUE(deadlines.expired(110s - 1ns, kAll).empty());
  EXPECT_EQ(deadlines.expired(110s, kAll), (std::vector<int64_t>{1}));
  EXPECT_TRUE(deadlines.revoking(1));
  EXPECT_EQ(deadlines.remaining(1, 115s), Time(0s));
  EXPECT_TRUE(deadlines.expired(111s, kAll).empty()) << "handed out once only";
  EXPECT_FALSE(deadlines.renew(1, 111s)) << "its revocation is under way";
  deadlines.removed(1);
  EXPECT_FALSE(deadlines.remaining(1, 111s));
  EXPECT_FALSE(deadlines.renew(1, 111s));
  EXPECT_FALSE(deadlines.revoking(1));
  EXPECT_EQ(deadlines.size(), 1u);
  EXPECT_EQ(deadlines.expired(120s, kAll), (std::vector<int64_t>{2}));
}

TEST(Deadlines, RenewGivesTheWholeTtl) {
  Deadlines deadlines;
  deadlines.granted(1, 10, 0s);
  for (Time now = 9s; now < 200s; now += 9s) {
    EXPECT_TRUE(deadlines.expired(now, kAll).empty());
    EXPECT_TRUE(deadlines.renew(1, now));
    EXPECT_EQ(deadlines.remaining(1, now), Time(10s));
  }
  EXPECT_TRUE(deadlines.expired(207s, kAll).empty());
  EXPECT_EQ(deadlines.expired(208s, kAll).size(), 1u);
}

TEST(Deadlines, AKeepaliveAfterAGapCountsWhenItIsHandledFirst) {
  Deadlines deadlines;
  deadlines.granted(1, 5, 0s);
  deadlines.granted(2, 5, 0s);
  EXPECT_TRUE(deadlines.due_checkpoints(60s, kAll).empty()) << "over, so there is nothing left to remember";
  EXPECT_TRUE(deadlines.renew(1, 60s));
  EXPECT_EQ(deadlines.expired(60s, kAll), (std::vector<int64_t>{2}));
  EXPECT_EQ(deadlines.due_checkpoints(62s, kAll).size(), 1u) << "renewed leases are checkpointed again";
}

TEST(Deadlines, RetryBringsALeaseUpAgain) {
  Deadlines deadlines;
  deadlines.granted(1, 5, 0s);
  ASSERT_EQ(deadlines.expired(5s, kAll).size(), 1u);
  deadlines.retry(1, 6s);
  EXPECT_FALSE(deadlines.revoking(1));
  ASSERT_TRUE(deadlines.next());
  EXPECT_LE(*deadlines.next(), Time(6s));
  EXPECT_EQ(deadlines.expired(6s, kAll).size(), 1u);
  deadlines.retry(1, 7s);
  EXPECT_TRUE(deadlines.renew(1, 7s)) << "the revocation failed, so a keepalive still saves it";
  EXPECT_TRUE(deadlines.expired(11s, kAll).empty());
  EXPECT_EQ(deadlines.expired(12s, kAll).size(), 1u);
  deadlines.retry(99, 12s);
}

TEST(Deadlines, MaxHoldsBackTheRest) {
  Deadlines deadlines;
  for (int64_t id = 1; id <= 10; ++id) deadlines.granted(id, 5, 0s);
  std::vector<int64_t> all;
  for (size_t part : {4u, 4u, 2u}) {
    ASSERT_LE(*deadlines.next(), Time(5s));
    auto ids = deadlines.expired(5s, 4);
    EXPECT_EQ(ids.size(), part);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(sorted(all), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST(Deadlines, CheckpointsFirstAtFourTenthsThenByInterval) {
  Deadlines deadlines;
  deadlines.granted(1, 100, 0s);
  EXPECT_TRUE(deadlines.due_checkpoints(40s - 1ns, kAll).empty());
  EXPECT_FALSE(deadlines.checkpointed(1));
  std::vector<std::pair<int, int64_t>> seen;
  for (int second = 40; second < 100; ++second) {
    for (auto [id, remaining] : deadlines.due_checkpoints(std::chrono::seconds(second), kAll)) {
      seen.emplace_back(second, remaining);
    }
  }
  EXPECT_EQ(seen, (std::vector<std::pair<int, int64_t>>{{40, 60}, {50, 50}, {60, 40}, {70, 30}, {80, 20}, {90, 10}}));
  EXPECT_TRUE(deadlines.checkpointed(1));
}

TEST(Deadlines, CheckpointIntervalIsASecondAtLeastAndRoundsUp) {
  Deadlines deadlines;
  deadlines.granted(1, 2, 0s);
  auto first = deadlines.due_checkpoints(800ms, kAll);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].remaining, 2) << "1.2 s, rounded up";
  EXPECT_TRUE(deadlines.due_checkpoints(1700ms, kAll).empty());
  auto second = deadlines.due_checkpoints(1800ms, kAll);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].remaining, 1) << "0.2 s";
}

TEST(Deadlines, RenewedLeasesAreNotCheckpointed) {
  Deadlines deadlines;
  deadlines.granted(1, 30, 0s);
  for (Time now = 0s; now < 1000s; now += 10s) {
    ASSERT_TRUE(deadlines.renew(1, now));
    EXPECT_TRUE(deadlines.due_checkpoints(now, kAll).empty());
    EXPECT_TRUE(deadlines.expired(now, kAll).empty());
  }
  EXPECT_FALSE(deadlines.checkpointed(1));
}

TEST(Deadlines, NoCheckpointBetweenARenewalAndItsReset) {
  Deadlines deadlines;
  deadlines.granted(1, 10, 0s);
  ASSERT_EQ(deadlines.due_checkpoints(4s, kAll).size(), 1u);
  ASSERT_TRUE(deadlines.checkpointed(1));
  ASSERT_TRUE(deadlines.renew(1, 5s));
  EXPECT_TRUE(deadlines.checkpointed(1)) << "until the reset is committed";
  EXPECT_TRUE(deadlines.due_checkpoints(9s, kAll).empty());
  deadlines.reset_done(1);
  EXPECT_FALSE(deadlines.checkpointed(1));
  EXPECT_EQ(deadlines.due_checkpoints(9s, kAll).size(), 1u);
  EXPECT_TRUE(deadlines.checkpointed(1));
  deadlines.reset_done(404);
}

TEST(Deadlines, RebuildTakesTheReplicatedRemaining) {
  Deadlines deadlines;
  deadlines.granted(77, 5, 0s);
  deadlines.rebuild({{.id = 1, .ttl = 100, .remaining = 0}, {.id = 2, .ttl = 100, .remaining = 30}}, 1000s);
  EXPECT_EQ(deadlines.size(), 2u);
  EXPECT_FALSE(deadlines.renew(77, 1000s));
  EXPECT_EQ(deadlines.remaining(1, 1000s), Time(100s));
  EXPECT_EQ(deadlines.remaining(2, 1000s), Time(30s));
  EXPECT_FALSE(deadlines.checkpointed(1));
  EXPECT_TRUE(deadlines.checkpointed(2));
  auto due = deadlines.due_checkpoints(1010s, kAll);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].id, 2);
  EXPECT_EQ(due[0].remaining, 20);
  EXPECT_TRUE(deadlines.expired(1029s, kAll).empty());
  EXPECT_EQ(deadlines.expired(1030s, kAll), (std::vector<int64_t>{2}));
  deadlines.clear();
  EXPECT_EQ(deadlines.size(), 0u);
  EXPECT_FALSE(deadlines.next());
}

TEST(Deadlines, TheLongestTtlFits) {
  Deadlines deadlines;
  const Time up = std::chrono::hours(24 * 365 * 5);
  deadlines.granted(1, kTtlMaxSeconds, up);
  EXPECT_EQ(deadlines.remaining(1, up), Time(std::chrono::seconds(kTtlMaxSeconds)));
  EXPECT_TRUE(deadlines.expired(up + 1000h, kAll).empty());
}

TEST(Deadlines, FiftyThousandIdleLeasesCostNothingPerTick) {
  Deadlines deadlines;
  constexpr int64_t kLeases = 50'000;
  for (int64_t id = 1; id <= kLeases; ++id) deadlines.granted(id, 3600, 0s);
  const auto begin = std::chrono::steady_clock::now();
  size_t found = 0;
  for (int tick = 0; tick < 1'000'000; ++tick) {
    Time now = tick * 1ms;
    found += deadlines.expired(now, 1000).size() + deadlines.due_checkpoints(now, 1000).size();
  }
  const auto spent = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(found, 0u);
  // A walk over all leases would need minutes; this needs some tens of milliseconds.
  EXPECT_LT(spent, 5s);
}

// All of them renewed at 0.3 TTL for five TTLs, on ticks of 100 ms: no checkpoint, no expiry, and no call does more
// than its limit of corrections.
TEST(Deadlines, FiftyThousandHealthyLeases) {
  Deadlines deadlines;
  constexpr int64_t kLeases = 50'000;
  for (int64_t id = 0; id < kLeases; ++id) deadlines.granted(id + 1, 60, Time(id * 1us));
  const std::clock_t begin = std::clock();  // of this process alone, however busy the machine is
  for (Time now = 100ms; now < 300s; now += 100ms) {
    if (now % 18s == 0s) {
      for (int64_t id = 1; id <= kLeases; ++id) ASSERT_TRUE(deadlines.renew(id, now));
    }
    ASSERT_TRUE(deadlines.due_checkpoints(now, 1000).empty());
    ASSERT_TRUE(deadlines.expired(now, 1000).empty());
    ASSERT_LE(deadlines.heap_size(), 2 * static_cast<size_t>(kLeases));
  }
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 20);
}

TEST(Deadlines, GarbageOfRemovedLeasesIsBounded) {
  Deadlines deadlines;
  for (int64_t id = 1; id <= 100; ++id) deadlines.granted(id, 1'000'000, 0s);
  for (int64_t id = 1000; id < 201'000; ++id) {
    deadlines.granted(id, 1'000'000, 0s);
    deadlines.removed(id);
    ASSERT_LE(deadlines.heap_size(), 2 * (2 * deadlines.size() + kGarbageMin) + 2);
  }
  // The same id again and again leaves outdated entries too.
  for (int round = 0; round < 100'000; ++round) deadlines.granted(5, 1'000'000, 0s);
  EXPECT_LE(deadlines.heap_size(), 2 * (2 * deadlines.size() + kGarbageMin) + 2);
  EXPECT_EQ(deadlines.size(), 100u);
}

TEST(Deadlines, ExpiresAfterGarbageWasDropped) {
  Deadlines deadlines;
  deadlines.granted(1, 10, 0s);
  deadlines.granted(2, 10, 0s);
  ASSERT_TRUE(deadlines.renew(2, 5s));
  for (int64_t id = 1000; id < 10'000; ++id) {
    deadlines.granted(id, 1'000'000, 0s);
    deadlines.removed(id);
  }
  EXPECT_EQ(deadlines.expired(10s, kAll), (std::vector<int64_t>{1}));
  EXPECT_EQ(deadlines.expired(15s, kAll), (std::vector<int64_t>{2}));
}

// Against a model that walks over everything.
TEST(Deadlines, AgreesWithAModel) {
  struct Model {
    Time deadline;
    int64_t ttl;
    bool revoking;
  };
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&random](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    Deadlines deadlines;
    std::map<int64_t, Model> model;
    Time now = 50s;
    for (int step = 0; step < 3000; ++step) {
      now += std::chrono::milliseconds(pick(700));
      int64_t id = 1 + pick(40);
      switch (pick(8)) {
        case 0: {
          int64_t ttl = 2 + pick(20);
          deadlines.granted(id, ttl, now);
          model[id] = {now + std::chrono::seconds(ttl), ttl, false};
          break;
        }
        case 1:
          deadlines.removed(id);
          model.erase(id);
          break;
        case 2:
          if (auto at = model.find(id); at != model.end() && at->second.revoking) {
            deadlines.retry(id, now);
            at->second.revoking = false;
          }
          break;
        case 3:
          deadlines.reset_done(id);
          break;
        default: {
          auto at = model.find(id);
          bool alive = at != model.end() && !at->second.revoking;
          ASSERT_EQ(deadlines.renew(id, now), alive);
          if (alive) at->second.deadline = now + std::chrono::seconds(at->second.ttl);
        }
      }
      for (auto [due, remaining] : deadlines.due_checkpoints(now, 3)) {
        ASSERT_TRUE(model.contains(due));
        ASSERT_FALSE(model[due].revoking);
        ASSERT_GT(model[due].deadline, now);
        ASSERT_GE(std::chrono::seconds(remaining), model[due].deadline - now) << "never shorter than what is left";
        ASSERT_LE(remaining, model[due].ttl);
      }
      std::vector<int64_t> expected;
      for (auto& [known, entry] : model) {
        if (!entry.revoking && entry.deadline <= now) {
          expected.push_back(known);
          entry.revoking = true;
        }
      }
      ASSERT_EQ(sorted(deadlines.expired(now, kAll)), expected) << "seed " << seed << " step " << step;
      for (const auto& [known, entry] : model) {
        if (!entry.revoking) {
          ASSERT_LE(*deadlines.next(), entry.deadline);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lease
