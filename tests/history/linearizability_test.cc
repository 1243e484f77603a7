#include "history/linearizability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "history/generator.h"
#include "history/test_builders.h"

namespace history {
namespace {

using testing::HasSubstr;
using testing::Not;

Verdict check(const std::vector<Operation>& operations) { return check_linearizable(operations); }
bool bad(const std::vector<Operation>& operations) {
  return check_linearizable(operations).kind == Verdict::Kind::kViolation;
}

TEST(Linearizability, AReadSeesWhatWasAcknowledged) {
  EXPECT_TRUE(check({put(0, 1, "a", "1"), get(2, 3, "a", {kv("a", "1")})}).ok());
  EXPECT_TRUE(bad({put(0, 1, "a", "1"), get(2, 3, "a", {})}));
  EXPECT_TRUE(bad({put(0, 1, "a", "1"), put(2, 3, "a", "2"), get(4, 5, "a", {kv("a", "1")})}));
}

TEST(Linearizability, ConcurrentOperationsComeInAnyOrder) {
  EXPECT_TRUE(check({put(0, 5, "a", "1"), put(0, 5, "a", "2"), get(6, 7, "a", {kv("a", "1")})}).ok());
  EXPECT_TRUE(check({put(0, 5, "a", "1"), put(0, 5, "a", "2"), get(6, 7, "a", {kv("a", "2")})}).ok());
  EXPECT_TRUE(check({put(0, 5, "a", "1"), get(1, 2, "a", {}), get(3, 4, "a", {kv("a", "1")})}).ok());
  // Seen, and then not any more.
  EXPECT_TRUE(bad({put(0, 9, "a", "1"), get(1, 2, "a", {kv("a", "1")}), get(3, 4, "a", {})}));
  // Two readers that disagree about the order of two writes.
  EXPECT_TRUE(bad({put(0, 9, "a", "1"), put(0, 9, "a", "2"), get(1, 2, "a", {kv("a", "1")}),
                   get(3, 4, "a", {kv("a", "2")}), get(5, 6, "a", {kv("a", "1")})}));
}

TEST(Linearizability, WithoutAnAnswerItMayHappenLateOrNever) {
  const Operation open = unknown(put(0, 1, "a", "1"));
  EXPECT_TRUE(check({open, get(2, 3, "a", {})}).ok());
  EXPECT_TRUE(check({open, get(2, 3, "a", {kv("a", "1")})}).ok());
  EXPECT_TRUE(check({open, get(2, 3, "a", {}), get(4, 5, "a", {kv("a", "1")})}).ok());
  EXPECT_TRUE(bad({open, get(2, 3, "a", {kv("a", "1")}), get(4, 5, "a", {})}));
  EXPECT_TRUE(bad({get(2, 3, "a", {kv("a", "1")}), unknown(put(4, 5, "a", "1"))}));  // not before its call
  // Once only.
  EXPECT_TRUE(bad({open, get(2, 3, "a", {kv("a", "1")}), erase(4, 5, "a", 1), get(6, 7, "a", {kv("a", "1")})}));
}

TEST(Linearizability, ARefusedOperationNeverHappens) {
  Operation refused = put(0, 1, "a", "1");
  refused.outcome = Outcome::kFailed;
  EXPECT_TRUE(check({refused, get(2, 3, "a", {})}).ok());
  EXPECT_TRUE(bad({refused, get(2, 3, "a", {kv("a", "1")})}));
}

TEST(Linearizability, AmongSwapsOnTheSameValueOneWins) {
  EXPECT_TRUE(check({put(0, 1, "a", "1"), swap(2, 5, "a", "1", "2", true), swap(2, 5, "a", "1", "3", false)}).ok());
  EXPECT_TRUE(bad({put(0, 1, "a", "1"), swap(2, 5, "a", "1", "2", true), swap(2, 5, "a", "1", "3", true)}));
  EXPECT_TRUE(bad({put(0, 1, "a", "1"), swap(2, 5, "a", "1", "2", false)}));
  // A failed swap needs somebody who was there before; he need not have been seen.
  EXPECT_TRUE(check({put(0, 1, "a", "1"), unknown(put(1, 2, "a", "9")), swap(3, 5, "a", "1", "2", false)}).ok());
}

TEST(Linearizability, DeletesTellWhetherThereWasAnything) {
  EXPECT_TRUE(check({put(0, 1, "a", "1"), erase(2, 3, "a", 1), erase(4, 5, "a", 0)}).ok());
  EXPECT_TRUE(bad({put(0, 1, "a", "1"), erase(2, 3, "a", 1), erase(4, 5, "a", 1)}));
  EXPECT_TRUE(bad({put(0, 1, "a", "1"), erase(2, 3, "a", 0)}));
}

TEST(Linearizability, RevisionsAndVersionsAreHeldAgainstTheOrder) {
  EXPECT_TRUE(check({put(0, 1, "a", "1", 2), put(2, 3, "a", "2", 5), get(4, 5, "a", {kv("a", "2", 5, 2, 2)}, 6)}).ok());
  EXPECT_TRUE(bad({put(0, 1, "a", "1", 2), put(2, 3, "a", "2", 5), get(4, 5, "a", {kv("a", "2", 5, 2, 3)}, 6)}));
  EXPECT_TRUE(bad({put(0, 1, "a", "1", 5), put(2, 3, "a", "2", 2)}));
  EXPECT_TRUE(bad({put(0, 9, "a", "1", 5), get(0, 9, "a", {}, 6)}));
  // The version tells of a put that nobody else saw.
  EXPECT_TRUE(check({put(0, 1, "a", "1", 2), unknown(put(1, 2, "a", "9")), put(2, 3, "a", "2", 5),
                     get(4, 5, "a", {kv("a", "2", 5, 2, 3)}, 6)})
                  .ok());
}

TEST(Linearizability, AKeyWithALeaseMayVanishOnce) {
  Operation leased = put(0, 1, "a", "1", 2);
  leased.success[0].lease = 7;
  EXPECT_TRUE(check({leased, get(2, 3, "a", {}, 5)}).ok());
  KeyValue seen = kv("a", "1", 2, 2, 1);
  seen.lease = 7;
  EXPECT_TRUE(bad({leased, get(2, 3, "a", {}, 5), get(4, 5, "a", {seen}, 6)}));
}

TEST(Linearizability, ATransactionOverTwoKeysIsSeenOnEach) {
  Operation both = put(0, 1, "a", "1", 2);
  both.success.push_back({.kind = Request::Kind::kPut, .key = "b", .value = "2"});
  both.answers.resize(2);
  EXPECT_TRUE(check({both, get(2, 3, "b", {kv("b", "2")})}).ok());
  EXPECT_TRUE(bad({both, get(2, 3, "b", {})}));
}

TEST(Linearizability, TheCounterexampleIsSmall) {
  std::vector<Operation> operations;
  for (int64_t i = 0; i < 500; ++i) {
    operations.push_back(put(10 * i, 10 * i + 5, "a", "v" + std::to_string(i), i + 2));
    operations.push_back(get(10 * i + 6, 10 * i + 7, "a", {kv("a", "v" + std::to_string(i), i + 2)}, i + 2));
  }
  operations[601].answers[0].kvs = {kv("a", "v299", 301)};  // instead of v300
  const Verdict verdict = check(operations);
  ASSERT_EQ(verdict.kind, Verdict::Kind::kViolation);
  EXPECT_THAT(verdict.text, HasSubstr("v299"));
  EXPECT_THAT(verdict.text, HasSubstr("put a=v300"));
  EXPECT_THAT(verdict.text, Not(HasSubstr("v297")));
  EXPECT_LE(std::count(verdict.text.begin(), verdict.text.end(), '\n'), 6) << verdict.text;
}

TEST(Linearizability, GivesUpAtItsLimit) {
  // Many swaps without an answer and a read that none of them explains.
  std::vector<Operation> operations = {put(0, 1, "a", "0")};
  for (int i = 0; i < 24; ++i) {
    operations.push_back(unknown(swap(2, 3, "a", "x" + std::to_string(i), "x" + std::to_string(i + 1), true)));
    operations.push_back(unknown(swap(2, 3, "a", "0", "x" + std::to_string(i), true)));
  }
  operations.push_back(get(4, 5, "a", {kv("a", "y")}));
  operations.push_back(unknown(put(6, 7, "a", "y")));
  EXPECT_EQ(check_linearizable(operations, {.states_max = 50}).kind, Verdict::Kind::kUndecided);
}

TEST(Linearizability, GoodHistoriesPass) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    GeneratorOptions options{.seed = seed, .operations = 400};
    options.unknown_percent = seed % 3 == 0 ? 25 : 6;
    options.revisions = seed % 4 != 0;
    const Verdict verdict = check_linearizable(generate(options).record.operations);
    EXPECT_TRUE(verdict.ok()) << "seed " << seed << ": " << verdict.text;
  }
}

TEST(Linearizability, TenThousandOperations) {
  const Generated generated = generate({.seed = 5, .operations = 10'000, .clients = 20, .keys = 10});
  const auto begin = std::chrono::steady_clock::now();
  const Verdict verdict = check_linearizable(generated.record.operations);
  EXPECT_TRUE(verdict.ok()) << verdict.text;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));  // usually far below one
}

// How many of 30 histories with the fault this checker alone finds out about.
struct Caught {
  int with_fault = 0;
  int caught = 0;
  int undecided = 0;
};
Caught caught(Bug bug) {
  Caught result;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Generated generated = generate({.seed = seed, .operations = 400, .bug = bug});
    if (!generated.has_bug) continue;
    ++result.with_fault;
    const Verdict verdict = check_linearizable(generated.record.operations);
    result.caught += verdict.kind == Verdict::Kind::kViolation;
    result.undecided += verdict.kind == Verdict::Kind::kUndecided;
  }
  return result;
}

TEST(Linearizability, BrokenHistoriesAreFound) {
  for (const Bug bug : {Bug::kLostWrite, Bug::kStaleRead, Bug::kStaleContent, Bug::kTwice, Bug::kCompareIgnored,
                        Bug::kWrongPrevious, Bug::kMixedRange, Bug::kRefusedHappens, Bug::kHalfTransaction}) {
    const Caught result = caught(bug);
    std::printf("fault %d: %d of %d found, %d undecided\n", static_cast<int>(bug), result.caught, result.with_fault,
                result.undecided);
    EXPECT_GE(result.with_fault, 20) << static_cast<int>(bug);
    EXPECT_GE(result.caught * 10, result.with_fault * 6) << static_cast<int>(bug);
  }
}

}  // namespace
}  // namespace history
