// etcd's record of consistency faults (etcd_record.md): what watches were told.
#include "sim/cut_alone.h"
#include "sim/seeds.h"

namespace sim {
namespace {

using history::WatchItem;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kQuick = "with progress every 100 ms";

void quick_progress(member::Options& options) { options.watch_progress_interval = milliseconds(100); }

size_t count(const WatchClient& watch, WatchItem::Kind kind) {
  const auto& items = watch.record().items;
  return static_cast<size_t>(
      std::count_if(items.begin(), items.end(), [kind](const WatchItem& item) { return item.kind == kind; }));
}

// #15220: progress that was asked for was answered past the stream's own queue, with a revision whose events were
// still to come; a client that takes it for "nothing is missing up to here" has lost them.
TEST(EtcdRecord, ProgressIsNotAheadOfEvents) {
  size_t runs = 0;
  size_t told = 0;
  for_seeds(10, [&](uint64_t seed) {
    const auto roomy = [](member::Options& options) { options.watcher_buffer_bytes = 1 << 20; };
    Scenario scenario({.nodes = 1, .seed = seed, .options = roomy});
    scenario.await_leader();
    scenario.fill(400, 4000);
    WatchClient& all = scenario.watch({});
    WatchClient& some = scenario.watch({.key = "fill/1", .end = "fill/2"});
    all.connect(0);
    some.join(all);
    SeededRandom& random = scenario.cluster.random;
    for (int i = 0; i < 60; ++i) {  // they catch up, and fall behind what is written meanwhile
      const auto put = scenario.ask(0, command::put("fill/1", std::string(100'000, 'x')));
      if (random.below(2) == 0) all.ask_progress();
      scenario.until([&] { return put->has_value(); });
      if (random.below(3) > 0) all.read(random.below(6));
    }
    all.ask_progress();
    const int64_t revision = scenario.published(0).revision;
    EXPECT_TRUE(scenario.until([&] {
      all.read();
      return all.progress() >= revision;
    }));
    scenario.check_watches(true);
    ++runs;
    told += count(all, WatchItem::Kind::kProgress);
  });
  EXPECT_GT(told, runs) << "only at the end";
}

// #17566: a watch that no event ever concerned got no progress, and its client fell behind every compaction.
TEST(EtcdRecord, AQuietWatchGetsProgress) {
  Scenario scenario({.nodes = 1, .options = quick_progress});
  scenario.await_leader();
  WatchClient& quiet = scenario.watch({.key = "quiet", .end = "", .progress_notify = true});
  quiet.connect(0);
  for (int i = 0; i < 20; ++i) {
    scenario.must(0, command::put("busy", std::to_string(i)));
    scenario.run_for(milliseconds(50));
  }
  const int64_t revision = scenario.published(0).revision;
  EXPECT_TRUE(scenario.until(
      [&] {
        quiet.read();
        return quiet.progress() == revision;
      },
      seconds(1)))
      << kQuick;
  scenario.check_watches(true);
}

// #15271, #8411: a member that was cut off got a snapshot; watches that were at the tip before went on from where they
// had been made (events came again), or were not told of what the snapshot had brought.
TEST(EtcdRecord, WatchDoesNotTravelBackOverASnapshot) {
  for_seeds(15, [](uint64_t seed) {
    Scenario scenario({.seed = seed});
    const size_t leader = scenario.await_leader();
    const size_t lagging = scenario.follower(leader);
    WatchClient& old = scenario.watch({});
    WatchClient& some = scenario.watch({.key = "fill/2", .end = "fill/4"});
    old.connect(lagging);
    some.connect(lagging);
    const auto read = [&] {
      for (WatchClient* watch : {&old, &some}) {
        if (!watch->is_connected() && scenario.cluster.is_up(lagging)) watch->connect(lagging);
        watch->read();
      }
    };
    const int64_t before = scenario.fill(40, 100);
    EXPECT_TRUE(scenario.until([&] { return read(), old.has_heard(before); }));
    scenario.cut_off(lagging);
    scenario.leave_behind(lagging);
    EXPECT_TRUE(old.is_connected());
    scenario.cluster.network.heal_all();
    EXPECT_TRUE(scenario.until([&] { return read(), scenario.cluster.replacements() > 0; }))
        << "no snapshot was needed";
    const int64_t last = scenario.fill(10, 100);
    EXPECT_TRUE(scenario.until([&] {
      read();
      for (WatchClient* watch : {&old, &some}) {
        if (watch->is_connected()) watch->ask_progress();
      }
      return old.has_heard(last) && some.has_heard(last);
    }));
    scenario.check_watches(true);
  });
}

// #17247: a scan of history saw the newest rows twice, in the database and in what was not yet written to it, and a
// watch that caught up beside writes was told them twice.
TEST(EtcdRecord, NoEventTwiceBesideWrites) {
  for_seeds(15, [](uint64_t seed) {
    Scenario scenario({.nodes = 1, .seed = seed});
    scenario.await_leader();
    scenario.fill(60, 300);
    SeededRandom& random = scenario.cluster.random;
    std::vector<WatchClient*> watches;
    std::vector<Answer<Result<apply::Message>>> puts;
    for (int i = 0; i < 1500; ++i) {
      if (i % 3 == 0) puts.push_back(scenario.ask(0, command::put("k" + std::to_string(i % 7), std::string(400, 'x'))));
      if (i % 40 == 0) {
        const int64_t from = 2 + static_cast<int64_t>(random.below(uint64_t(scenario.published(0).revision)));
        watches.push_back(&scenario.watch({.from = from}));
        watches.back()->connect(0);
      }
      scenario.cluster.step();
      if (!watches.empty()) watches[random.below(watches.size())]->read();
    }
    EXPECT_TRUE(scenario.await_equal());
    const int64_t last = scenario.published(0).revision;
    EXPECT_TRUE(scenario.until([&] {
      for (WatchClient* watch : watches) watch->read();
      return std::all_of(watches.begin(), watches.end(), [last](auto* watch) { return watch->has_heard(last); });
    }));
    scenario.check_watches(true);
  });
}

// #17529: a stream that was not read fell behind; when what it still needed was compacted it was not told so and went
// on after the gap.
TEST(EtcdRecord, SlowWatchHearsOfTheCompaction) {
  for_seeds(15, [](uint64_t seed) {
    Scenario scenario({.nodes = 1, .seed = seed});
    scenario.await_leader();
    WatchClient& slow = scenario.watch({});
    WatchClient& beside = scenario.watch({.key = "fill/1", .end = "fill/2"});
    slow.connect(0);
    beside.join(slow);
    scenario.run_for(milliseconds(10));
    const int64_t compacted = scenario.fill(200, 20'000);  // more than a stream holds
    scenario.learn();
    scenario.must(0, command::compaction(compacted, true));
    const int64_t last = scenario.fill(20, 100);
    EXPECT_TRUE(scenario.until([&] {
      for (WatchClient* watch : {&slow, &beside}) {
        if (!watch->is_connected()) watch->connect(0);
        watch->read(1);
        if (watch->is_connected()) watch->ask_progress();
      }
      return slow.has_heard(last) && beside.has_heard(last);
    }));
    EXPECT_GT(count(slow, WatchItem::Kind::kCompacted), 0U);
    EXPECT_LT(count(slow, WatchItem::Kind::kCompacted), 3U);
    scenario.check_watches(true);
  });
}

// #18089, #19179: a compaction at the very revision of a deletion removed its row. A watch may still begin there, and
// did not hear of the deletion: whether it was behind at that time, or was made after a crash in the compaction.
TEST(EtcdRecord, DeletionAtTheCompactedRevisionIsHeard) {
  for_seeds(10, [](uint64_t seed) {
    Scenario before({.nodes = 1, .seed = seed});
    before.await_leader();
    for (int i = 0; i < 20; ++i) {
      before.must(0, command::put("short-lived/" + std::to_string(i), "v"));
      before.must(0, command::erase("short-lived/" + std::to_string(i)));
    }
    const int64_t deleted = before.published(0).revision;
    before.must(0, command::put("later", "v"));
    before.learn();
    before.stop(0);
    const auto hears_it = [&](Scenario& scenario, WatchClient& watch) {
      const int64_t last = scenario.published(0).revision;
      EXPECT_TRUE(scenario.until([&] { return watch.read(), watch.has_heard(last); }, seconds(5)));
      const auto verdict = history::check_watch(watch.record(), before.events(), deleted + 1);
      EXPECT_TRUE(verdict.ok()) << verdict.text;
      EXPECT_EQ(count(watch, WatchItem::Kind::kCompacted), 0U);
    };
    bool beside = true;
    const auto compact = [&](Scenario& scenario) {
      WatchClient& behind = scenario.watch({.from = deleted});
      behind.connect(0);
      const auto compacted = scenario.ask(0, command::compaction(deleted, true));
      if (scenario.until([&] { return compacted->has_value() || !scenario.cluster.is_up(0); }) && beside &&
          scenario.cluster.is_up(0)) {
        hears_it(scenario, behind);
      }
      beside = false;  // once is enough, in the run without a cut
      scenario.until([&] { return !scenario.cluster.is_up(0); }, milliseconds(50));
    };
    const auto check = [&](Scenario& scenario) {
      WatchClient& watch = scenario.watch({.from = deleted});
      watch.connect(0);
      hears_it(scenario, watch);
    };
    EXPECT_GT(cut_alone(
                  seed, before.disk(0), [](member::Options&) {}, 1, compact, check),
              5U);
  });
}

// #20221, #19487: a client goes on at a member that is behind: its watch begins in that member's future. After a
// snapshot it got events from before its start, and progress below what it knew already.
TEST(EtcdRecord, WatchOfTheFutureIsToldNothingOld) {
  for_seeds(15, [](uint64_t seed) {
    for (const bool by_snapshot : {false, true}) {
      Scenario scenario({.seed = seed, .options = quick_progress});
      const size_t leader = scenario.await_leader();
      const size_t lagging = scenario.follower(leader);
      scenario.fill(10, 100);
      EXPECT_TRUE(scenario.await_equal());
      scenario.cut_off(lagging);
      const int64_t known = by_snapshot ? scenario.leave_behind(lagging) : scenario.fill(10, 100);
      WatchClient& watch = scenario.watch({.from = known + 1, .progress_notify = true});
      int64_t lowest = known + 1000;
      const auto read = [&] {
        if (!watch.is_connected()) watch.connect(lagging);
        const int64_t before = watch.progress();
        watch.read(1);
        if (watch.progress() != before) lowest = std::min(lowest, watch.progress());
        if (watch.is_connected() && scenario.cluster.random.below(50) == 0) watch.ask_progress();
      };
      scenario.until([&] { return read(), false; }, seconds(1));
      EXPECT_LT(scenario.published(lagging).revision, known);
      scenario.cluster.network.heal_all();
      EXPECT_TRUE(scenario.until([&] {
        if (scenario.cluster.is_up(lagging)) read();
        return scenario.cluster.is_up(lagging) && scenario.published(lagging).revision >= known;
      }));
      EXPECT_EQ(scenario.cluster.replacements(), by_snapshot ? 1U : 0U);
      const int64_t last = scenario.must(scenario.await_leader(), command::put("new", "v"));
      EXPECT_TRUE(scenario.until([&] { return read(), watch.has_heard(last) && watch.progress() >= last; }));
      EXPECT_GE(lowest, known) << "progress below what the client knew when it came";
      scenario.check_watches(true);  // an event from before its start is one out of order
    }
  });
}

// #20655: one watch that began at revision -1 spoilt the scan of history that it shared with all others that were
// behind: they were taken for up to date without having heard anything.
TEST(EtcdRecord, NegativeStartHarmsNoOtherWatch) {
  Scenario scenario({.nodes = 1});
  scenario.await_leader();
  const int64_t last = scenario.fill(100, 100);
  WatchClient& good = scenario.watch({.from = 2});
  WatchClient& bad = scenario.watch({.key = "never", .end = "", .from = -1});
  good.connect(0);
  bad.connect(0);
  EXPECT_TRUE(scenario.until([&] {
    good.read();
    bad.read();
    return good.has_heard(last);
  }));
  EXPECT_EQ(bad.cancelled(), mvcc::kErrorCompacted);
  bad.disconnect();
  scenario.check_watches(false);
}

}  // namespace
}  // namespace sim
