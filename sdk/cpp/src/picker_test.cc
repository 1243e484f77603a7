#include "picker.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace conclave {
namespace {

using namespace std::chrono_literals;
using internal::Picker;
using internal::TimePoint;

constexpr TimePoint kStart{std::chrono::hours(1)};

std::shared_ptr<const InstanceList> list(std::initializer_list<std::pair<std::string, int>> instances) {
  auto list = std::make_shared<InstanceList>();
  for (const auto& [id, weight] : instances) {
    Instance instance;
    instance.id = id;
    instance.weight = weight;
    list->instances.push_back(instance);
  }
  return list;
}

std::string pick_and_release(Picker& picker, TimePoint now = kStart) {
  const auto choice = picker.pick({}, now);
  if (!choice) return "";
  picker.released(*choice, false);
  return choice->instance().id;
}

void fail_three_times(Picker& picker, const std::string& id, TimePoint now) {
  for (int failures = 0; failures < 3;) {
    const auto choice = picker.pick({}, now);
    const bool failed = choice->instance().id == id;
    if (failed) {
      picker.failed(*choice, now);
      ++failures;
    }
    picker.released(*choice, failed);
  }
}

TEST(Picker, GoesRoundByWeight) {
  Picker picker(Balancer::kRoundRobin);
  picker.update(list({{"a", 200}, {"b", 100}, {"c", 100}}));
  std::string turns;
  for (int i = 0; i < 8; ++i) turns += pick_and_release(picker);
  EXPECT_EQ(turns, "abcaabca");
}

TEST(Picker, RandomHeedsTheWeights) {
  Picker picker(Balancer::kRandom);
  picker.update(list({{"a", 300}, {"b", 100}, {"never", 0}}));
  std::map<std::string, int> picked;
  for (int i = 0; i < 4000; ++i) ++picked[pick_and_release(picker)];
  EXPECT_NEAR(picked["a"], 3000, 200);
  EXPECT_EQ(picked.count("never"), 0u);
}

TEST(Picker, TakesTheOneWithTheFewestPending) {
  Picker picker(Balancer::kLeastPending);
  picker.update(list({{"a", 100}, {"b", 100}, {"c", 200}}));
  std::map<std::string, int> picked;
  std::vector<Picker::Choice> held;
  for (int i = 0; i < 40; ++i) {
    held.push_back(*picker.pick({}, kStart));
    ++picked[held.back().instance().id];
  }
  EXPECT_EQ(picked, (std::map<std::string, int>{{"a", 10}, {"b", 10}, {"c", 20}}));
  for (const auto& choice : held)
    if (choice.instance().id == "a") picker.released(choice, false);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(picker.pick({}, kStart)->instance().id, "a");
}

TEST(Picker, NeverPicksWhatIsCriticalDrainingWithoutWeightOrExcluded) {
  auto all =
      std::make_shared<InstanceList>(*list({{"critical", 1}, {"draining", 1}, {"zero", 0}, {"warning", 1}, {"ok", 1}}));
  all->instances[0].health = Health::critical("x");
  all->instances[1].draining = true;
  all->instances[3].health = Health::warning("x");
  Picker picker(Balancer::kRoundRobin);
  EXPECT_EQ(pick_and_release(picker), "");
  picker.update(all);
  std::set<std::string> seen;
  for (int i = 0; i < 10; ++i) seen.insert(pick_and_release(picker));
  EXPECT_EQ(seen, (std::set<std::string>{"warning", "ok"}));
  EXPECT_EQ(picker.pick({"ok"}, kStart)->instance().id, "warning");
  EXPECT_FALSE(picker.pick({"ok", "warning"}, kStart));
}

TEST(Picker, KeepsOneThatFailsOutForAWhile) {
  Picker picker(Balancer::kRoundRobin);
  picker.update(list({{"a", 1}, {"b", 1}, {"c", 1}}));
  fail_three_times(picker, "b", kStart);
  for (int i = 0; i < 12; ++i) EXPECT_NE(pick_and_release(picker, kStart + 9s), "b");
  std::set<std::string> seen;
  for (int i = 0; i < 12; ++i) seen.insert(pick_and_release(picker, kStart + 11s));
  EXPECT_EQ(seen.count("b"), 1u);
}

TEST(Picker, NeverKeepsOutMoreThanHalf) {
  Picker picker(Balancer::kRoundRobin);
  picker.update(list({{"a", 1}, {"b", 1}, {"c", 1}}));
  for (const char* id : {"a", "b"}) fail_three_times(picker, id, kStart);
  std::set<std::string> seen;
  for (int i = 0; i < 12; ++i) seen.insert(pick_and_release(picker));
  EXPECT_EQ(seen, (std::set<std::string>{"b", "c"}));
  Picker alone(Balancer::kRoundRobin);
  alone.update(list({{"a", 1}}));
  fail_three_times(alone, "a", kStart);
  EXPECT_EQ(pick_and_release(alone), "a");
}

TEST(Picker, ASuccessEndsTheRowOfFailures) {
  Picker picker(Balancer::kRoundRobin);
  picker.update(list({{"a", 1}, {"b", 1}}));
  for (int i = 0; i < 20; ++i) {
    const auto choice = picker.pick({}, kStart);
    const bool failed = choice->instance().id == "a" && i % 6 != 0;  // two of three
    if (failed) picker.failed(*choice, kStart);
    picker.released(*choice, failed);
  }
  std::set<std::string> seen;
  for (int i = 0; i < 4; ++i) seen.insert(pick_and_release(picker));
  EXPECT_EQ(seen.size(), 2u);
}

TEST(Picker, RemembersInstancesThatStayAndAChoiceOutlivesTheList) {
  Picker picker(Balancer::kLeastPending);
  picker.update(list({{"a", 1}, {"b", 1}}));
  const auto first = *picker.pick({}, kStart);
  const std::string busy = first.instance().id;
  picker.update(list({{"a", 1}, {"b", 1}, {"c", 1}}));
  for (int i = 0; i < 2; ++i) EXPECT_NE(picker.pick({}, kStart)->instance().id, busy);
  picker.update(list({}));
  EXPECT_EQ(first.instance().id, busy);
  picker.released(first, false);
}

}  // namespace
}  // namespace conclave
