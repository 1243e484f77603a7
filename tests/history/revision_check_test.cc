#include "history/revision_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "history/generator.h"
#include "history/test_builders.h"

namespace history {
namespace {

using testing::HasSubstr;

std::string fault(const std::vector<Operation>& operations, const Events* events = nullptr) {
  return check_revisions(operations, events).text;
}

TEST(Revisions, AWriteHasItsOwn) {
  EXPECT_EQ(fault({put(0, 5, "a", "1", 2), put(0, 5, "b", "2", 3)}), "");
  EXPECT_THAT(fault({put(0, 5, "a", "1", 2), put(0, 5, "b", "2", 2)}), HasSubstr("the same revision"));
}

TEST(Revisions, TheyNeverGoBackInRealTime) {
  EXPECT_THAT(fault({put(0, 1, "a", "1", 3), put(2, 3, "b", "2", 2)}), HasSubstr("later revision was known"));
  EXPECT_THAT(fault({put(0, 1, "a", "1", 3), get(2, 3, "b", {}, 2)}), HasSubstr("older than what was known"));
  EXPECT_EQ(fault({put(0, 5, "a", "1", 3), get(2, 3, "b", {}, 2)}), "");  // at the same time
}

TEST(Revisions, SerializableReadsMayLagButNotGoBackOnAMember) {
  const auto stale = [](int64_t call, uint64_t member, int64_t revision, std::vector<KeyValue> found) {
    Operation read = get(call, call + 1, "a", std::move(found), revision);
    read.serializable = true;
    read.member = member;
    return read;
  };
  const auto one = kv("a", "1", 2, 2, 1);
  const auto two = kv("a", "2", 3, 2, 2);
  const std::vector<Operation> writes = {put(0, 1, "a", "1", 2), put(2, 3, "a", "2", 3)};
  const auto with = [&writes](std::vector<Operation> reads) {
    reads.insert(reads.begin(), writes.begin(), writes.end());
    return reads;
  };
  EXPECT_EQ(fault(with({stale(4, 1, 2, {one}), stale(6, 2, 3, {two}), stale(8, 1, 3, {two})})), "");
  EXPECT_EQ(fault(with({stale(4, 1, 3, {two}), stale(6, 2, 2, {one})})), "");
  EXPECT_THAT(fault(with({stale(4, 1, 3, {two}), stale(6, 1, 2, {one})})), HasSubstr("went back"));
  EXPECT_THAT(fault(with({stale(4, 1, 3, {one})})), HasSubstr("an old state"));
  // A state that only later writes lead to.
  EXPECT_NE(fault({put(0, 1, "a", "1", 2), stale(2, 1, 3, {two}), put(5, 6, "a", "2", 3)}), "");
}

TEST(Revisions, AReadIsTheStateAsOfItsHeader) {
  const std::vector<Operation> writes = {put(0, 1, "a", "1", 2), put(2, 3, "a", "2", 3), erase(4, 5, "a", 1, 4)};
  const auto with = [&writes](Operation read) {
    auto all = writes;
    all.push_back(std::move(read));
    return all;
  };
  EXPECT_EQ(fault(with(get(4, 9, "a", {kv("a", "2", 3, 2, 2)}, 3))), "");
  EXPECT_EQ(fault(with(get(4, 9, "a", {}, 4))), "");
  EXPECT_THAT(fault(with(get(4, 9, "a", {}, 3))), HasSubstr("missing"));
  EXPECT_THAT(fault(with(get(4, 9, "a", {kv("a", "2", 3, 2, 2)}, 4))), HasSubstr("old state"));
  EXPECT_THAT(fault(with(get(4, 9, "a", {kv("a", "2", 3, 2, 1)}, 3))), HasSubstr("differs"));
  EXPECT_THAT(fault(with(get(4, 9, "a", {kv("a", "3", 3, 2, 2)}, 3))), HasSubstr("nobody wrote"));
  Operation old = get(8, 9, "a", {kv("a", "1", 2, 2, 1)}, 4);
  old.success[0].revision = 2;
  EXPECT_EQ(fault(with(old)), "");
  old.success[0].revision = 3;
  EXPECT_THAT(fault(with(old)), HasSubstr("old state"));
}

TEST(Revisions, ATransactionIsSeenWhole) {
  Operation both = put(0, 1, "a", "1", 2);
  both.success.push_back({.kind = Request::Kind::kPut, .key = "b", .value = "2"});
  both.answers.resize(2);
  Operation range = get(2, 3, "a", {kv("a", "1", 2, 2, 1), kv("b", "2", 2, 2, 1)}, 2);
  range.success[0].end = "c";
  EXPECT_EQ(fault({both, range}), "");
  EXPECT_EQ(fault({unknown(both), range}), "");
  range.answers[0].kvs.pop_back();
  EXPECT_THAT(fault({both, range}), HasSubstr("b is missing"));
  EXPECT_THAT(fault({unknown(both), range}), HasSubstr("b is missing"));
}

TEST(Revisions, WithoutAnAnswerItHappensOnceAndNotBeforeItsCall) {
  const Operation open = unknown(put(0, 1, "a", "1"));
  EXPECT_EQ(fault({open, get(4, 5, "a", {kv("a", "1", 2, 2, 1)}, 2)}), "");
  EXPECT_EQ(fault({open, get(4, 5, "a", {}, 1)}), "");
  EXPECT_THAT(fault({open, get(2, 3, "a", {kv("a", "1", 2, 2, 1)}, 2), get(4, 5, "a", {kv("a", "1", 3, 2, 2)}, 3)}),
              HasSubstr("happened twice"));
  EXPECT_NE(fault({put(0, 1, "b", "7", 5), unknown(put(2, 3, "a", "1")), get(4, 6, "a", {kv("a", "1", 3, 3, 1)}, 5)}),
            "");
}

TEST(Revisions, ARefusedOperationNeverHappens) {
  Operation refused = put(0, 1, "a", "1");
  refused.outcome = Outcome::kFailed;
  EXPECT_THAT(fault({refused, get(4, 5, "a", {kv("a", "1", 2, 2, 1)}, 2)}), HasSubstr("not its own"));
}

TEST(Revisions, EventsLeaveNothingOpen) {
  const Event first{false, kv("a", "1", 2, 2, 1)};
  Events events = {{2, {first}}};
  const std::vector<Operation> operations = {put(0, 1, "a", "1", 2), get(2, 3, "a", {kv("a", "1", 2, 2, 1)}, 2)};
  EXPECT_EQ(fault(operations, &events), "");
  const Events nothing;
  EXPECT_THAT(fault(operations, &nothing), HasSubstr("not what its operation does"));
  events[3] = {{true, kv("a", "", 3)}};
  EXPECT_THAT(fault(operations, &events), HasSubstr("nobody deleted"));
  events[3] = {{false, kv("a", "2", 3, 2, 2)}};
  EXPECT_THAT(fault(operations, &events), HasSubstr("nobody wrote"));
}

TEST(Revisions, GoodHistoriesPass) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    GeneratorOptions options{.seed = seed, .operations = 400};
    options.unknown_percent = seed % 3 == 0 ? 25 : 6;
    const Generated generated = generate(options);
    Verdict verdict = check_revisions(generated.record.operations);
    EXPECT_TRUE(verdict.ok()) << "seed " << seed << ": " << verdict.text;
    verdict = check_revisions(generated.record.operations, &generated.events);
    EXPECT_TRUE(verdict.ok()) << "seed " << seed << ", with events: " << verdict.text;
  }
}

TEST(Revisions, TenThousandOperations) {
  const Generated generated = generate({.seed = 5, .operations = 10'000, .clients = 20, .keys = 10});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(check_revisions(generated.record.operations).ok());
  EXPECT_TRUE(check_revisions(generated.record.operations, &generated.events).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));  // usually far below one
}

TEST(Revisions, BrokenHistoriesAreFound) {
  for (const Bug bug :
       {Bug::kLostWrite, Bug::kStaleRead, Bug::kStaleContent, Bug::kTwice, Bug::kHalfTransaction, Bug::kRefusedHappens,
        Bug::kCompareIgnored, Bug::kWrongPrevious, Bug::kMixedRange, Bug::kGoesBack}) {
    int with_fault = 0;
    int caught = 0;
    int caught_with_events = 0;
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      const Generated generated = generate({.seed = seed, .operations = 400, .bug = bug});
      if (!generated.has_bug) continue;
      ++with_fault;
      caught += !check_revisions(generated.record.operations).ok();
      caught_with_events += !check_revisions(generated.record.operations, &generated.events).ok();
    }
    std::printf("fault %d: %d of %d found, %d with events\n", static_cast<int>(bug), caught, with_fault,
                caught_with_events);
    EXPECT_GE(with_fault, 20) << static_cast<int>(bug);
    // Without events a compare is looked at only where nothing is open: that is check_linearizable()'s business.
    if (bug != Bug::kCompareIgnored) {
      EXPECT_GE(caught * 10, with_fault * 7) << static_cast<int>(bug);
    }
    EXPECT_GE(caught_with_events * 10, with_fault * 9) << static_cast<int>(bug);
  }
}

}  // namespace
}  // namespace history
