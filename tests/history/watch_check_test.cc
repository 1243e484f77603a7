#include "history/watch_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory_disk.h"
#include "history/generator.h"
#include "history/test_builders.h"

namespace history {
namespace {

using testing::HasSubstr;
using Kind = WatchItem::Kind;

// Revision r puts a=r; revision 5 deletes a and puts b.
Events events_until(int64_t last) {
  Events events;
  for (int64_t r = 2; r <= last; ++r) {
    events[r] = {{false, kv("a", std::to_string(r), r, r > 5 ? 6 : 2, r > 5 ? r - 5 : r - 1)}};
  }
  events[5] = {{true, kv("a", "", 5)}, {false, kv("b", "5", 5, 5, 1)}};
  return events;
}

WatchRecord watch_of(const Events& events, int64_t from, int64_t to) {
  WatchRecord watch{.name = "w", .key = "a", .end = "c"};
  watch.items.push_back({.kind = Kind::kStarted, .revision = from});
  for (auto it = events.lower_bound(from); it != events.end() && it->first <= to; ++it) {
    watch.items.push_back({.revision = it->first, .events = it->second});
  }
  return watch;
}

class Watch : public testing::Test {
 protected:
  std::string fault(int64_t through = 9) { return check_watch(watch, events, through).text; }
  Events events = events_until(9);
  WatchRecord watch = watch_of(events, 2, 9);
};

TEST_F(Watch, CompleteAndInOrder) {
  EXPECT_EQ(fault(), "");
  watch = watch_of(events, 4, 7);
  EXPECT_EQ(fault(7), "");
  EXPECT_THAT(fault(9), HasSubstr("missing"));
}

TEST_F(Watch, AGapIsFound) {
  watch.items.erase(watch.items.begin() + 3);
  EXPECT_THAT(fault(), HasSubstr("missing (before 5)"));
}

TEST_F(Watch, ARepeatIsFound) {
  watch.items.insert(watch.items.begin() + 4, watch.items[3]);
  EXPECT_THAT(fault(), HasSubstr("a repeat"));
}

TEST_F(Watch, OutOfOrderIsFound) {
  std::swap(watch.items[3], watch.items[4]);
  EXPECT_NE(fault(), "");
}

TEST_F(Watch, HalfARevisionIsFound) {
  watch.items[4].events.pop_back();
  EXPECT_THAT(fault(), HasSubstr("revision 5 arrived as"));
}

TEST_F(Watch, ARevisionInTwoPartsIsFound) {
  WatchItem second = watch.items[4];
  second.events.erase(second.events.begin());
  watch.items[4].events.pop_back();
  watch.items.insert(watch.items.begin() + 5, second);
  EXPECT_NE(fault(), "");
}

TEST_F(Watch, AWrongValueIsFound) {
  watch.items[2].events[0].kv.value = "other";
  EXPECT_THAT(fault(), HasSubstr("arrived as"));
}

TEST_F(Watch, AnEventThatNeverHappenedIsFound) {
  watch.items.push_back({.revision = 10, .events = {{false, kv("a", "10", 10, 6, 5)}}});
  EXPECT_THAT(fault(), HasSubstr("revision 10 arrived as"));
}

TEST_F(Watch, ResumesByRevision) {
  watch.items.insert(watch.items.begin() + 4, {.kind = Kind::kStarted, .revision = 5});
  EXPECT_EQ(fault(), "");
  watch.items[4].revision = 6;
  EXPECT_THAT(fault(), HasSubstr("leaves a gap"));
  watch.items[4].revision = 4;  // asks for a repeat, and must get it
  EXPECT_NE(fault(), "");
  watch.items.insert(watch.items.begin() + 5, watch.items[3]);
  EXPECT_EQ(fault(), "");
}

TEST_F(Watch, ProgressPromisesThatNothingIsMissing) {
  watch.items.insert(watch.items.begin() + 4, {.kind = Kind::kProgress, .revision = 4});
  EXPECT_EQ(fault(), "");
  watch.items[4].revision = 5;
  EXPECT_THAT(fault(), HasSubstr("progress 5"));
}

TEST_F(Watch, OnlyWhatIsCompactedEndsIt) {
  watch.items.resize(3);  // next is 4
  watch.items.push_back({.kind = Kind::kCompacted, .revision = 6});
  watch.items.push_back({.kind = Kind::kStarted, .revision = 6});
  for (int64_t r = 6; r <= 9; ++r) watch.items.push_back({.revision = r, .events = events[r]});
  EXPECT_EQ(fault(), "");
  watch.items[3].revision = 4;
  EXPECT_THAT(fault(), HasSubstr("everything from 4 on is there"));
}

TEST_F(Watch, FiltersAndRanges) {
  watch.end = "";
  EXPECT_THAT(fault(), HasSubstr("arrived as"));  // b was not asked for
  watch.items[4].events.pop_back();
  EXPECT_EQ(fault(), "");
  watch.deletes = false;
  watch.items.erase(watch.items.begin() + 4);
  EXPECT_EQ(fault(), "");
}

TEST_F(Watch, PreviousValues) {
  watch.previous = true;
  std::optional<KeyValue> before;
  for (WatchItem& item : watch.items) {
    for (const Event& event : item.events) {
      item.previous.push_back(event.kv.key == "a" ? before : std::nullopt);
      if (event.kv.key == "a") before = event.is_delete ? std::nullopt : std::optional(event.kv);
    }
  }
  EXPECT_EQ(fault(), "");
  watch.items[3].previous[0]->value = "other";
  EXPECT_THAT(fault(), HasSubstr("the value before"));
  watch.items[3].previous[0].reset();
  EXPECT_THAT(fault(), HasSubstr("absent"));
}

TEST_F(Watch, WatchesThatDisagreeAreFound) {
  WatchRecord other = watch_of(events, 4, 9);
  Events merged;
  EXPECT_TRUE(merge_watches({watch, other}, merged).ok());
  EXPECT_EQ(merged, events);
  other.items[2].events[0].kv.value = "other";
  EXPECT_FALSE(merge_watches({watch, other}, merged).ok());
}

TEST_F(Watch, AcknowledgedWritesAreHeard) {
  const std::vector<Operation> writes = {put(0, 1, "a", "3", 3), put(2, 3, "a", "8", 8)};
  EXPECT_TRUE(check_watch_hears(watch, writes).ok());
  watch.items.erase(watch.items.begin() + 7);
  EXPECT_THAT(check_watch_hears(watch, writes).text, HasSubstr("put a=8"));
}

// Every kind of damage to a long recording is found wherever it is.
TEST(WatchGenerated, DamageIsFoundAnywhere) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Generated generated = generate({.seed = seed, .operations = 300});
    const int64_t last = generated.events.rbegin()->first;
    for (const WatchRecord& watch : generated.record.watches) {
      const Verdict verdict = check_watch(watch, generated.events, last);
      EXPECT_TRUE(verdict.ok()) << "seed " << seed << ": " << verdict.text;
    }
    const WatchRecord& all = generated.record.watches[0];
    SeededRandom random(seed);
    for (int i = 0; i < 40; ++i) {
      WatchRecord damaged = all;
      size_t at = random.below(all.items.size());
      while (all.items[at].kind != Kind::kEvents) at = random.below(all.items.size());
      const auto place = damaged.items.begin() + static_cast<std::ptrdiff_t>(at);
      switch (i % 4) {
        case 0:
          damaged.items.erase(place);
          break;
        case 1:
          damaged.items.insert(place, all.items[at]);
          break;
        case 2:
          damaged.items[at].events[0].kv.version += 1;
          break;
        default:
          damaged.items[at].events.back().kv.mod_revision += 1;
      }
      EXPECT_FALSE(check_watch(damaged, generated.events, last).ok()) << "seed " << seed << " damage " << i % 4;
    }
  }
}

}  // namespace
}  // namespace history
