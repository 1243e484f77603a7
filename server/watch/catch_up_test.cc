// Watchers that are behind: history, the ring, full buffers, compaction, and the way back to the tip.
#include "watch/fixture_test.h"
#include "watch/hub_impl.h"

namespace watch {
namespace {

class CatchUp : public Fixture {
 protected:
  // Without the ring, so that history is read.
  void SetUp() override { start({.ring_bytes = 0}); }
};

TEST_F(CatchUp, ReadsHistoryThenGoesOnLive) {
  put("a", "1");
  put("a", "2");
  erase("a");
  put("b", "3");
  Client client(*hub);
  client.watch_from(3, "a", "z");
  EXPECT_EQ(works, 1);
  EXPECT_EQ(client.take(), (Lines{"5 #0 created"}));
  EXPECT_EQ(hub->stats().behind, 1U);
  run();
  EXPECT_EQ(hub->stats().behind, 0U);
  put("a", "4");
  EXPECT_EQ(client.take(), (Lines{"5 #0 a=2@3 -a@4 b=3@5", "6 #0 a=4@6"}));
}

TEST_F(CatchUp, TellsOfWorkOnceUntilItRanDry) {
  put("a", "1");
  Client client(*hub);
  client.watch_from(2, "a");
  client.watch_from(2, "b");
  EXPECT_EQ(works, 1);
  EXPECT_FALSE(hub->step());
  client.watch_from(2, "c");
  EXPECT_EQ(works, 2);
}

TEST_F(CatchUp, PublishesBetweenStepsAreNeitherLostNorRepeated) {
  for (int i = 0; i < 2500; i++) put("a", "x");
  Client client(*hub);
  client.watch_from(2, "a");
  client.take();
  int64_t expected = 2;
  for (bool more = true; more;) {
    more = hub->step();
    if (expected < 4000) put("a", "y");
    while (auto response = client.stream->take()) {
      for (const auto& event : response->message.events()) EXPECT_EQ(event.kv().mod_revision(), expected++);
    }
  }
  EXPECT_EQ(expected, mvcc.published().revision + 1);
  EXPECT_EQ(hub->stats().behind, 0U);
}

TEST_F(CatchUp, OneScanServesSeveral) {
  for (int i = 0; i < 900; i++) put(i % 2 == 0 ? "a" : "b", "x");
  Client client(*hub);
  for (int64_t from : {2, 100, 100, 500, 850}) client.watch_from(from, "a", "c");
  client.watch_from(2, "b");
  client.take();
  int before = mvcc.reads();
  run();
  EXPECT_EQ(mvcc.reads() - before, 1);
  std::map<int64_t, int> events;
  while (auto response = client.stream->take()) events[response->message.watch_id()] += response->message.events_size();
  EXPECT_EQ(events, (std::map<int64_t, int>{{0, 900}, {1, 802}, {2, 802}, {3, 402}, {4, 52}, {5, 450}}));
}

TEST_F(CatchUp, OneAtTheEndDoesNotWaitForOneAtTheBeginning) {
  for (int i = 0; i < 20'000; i++) put("a", "x");
  Client far(*hub);
  Client near(*hub);
  far.watch_from(2, "b");
  near.watch_from(19'900, "a");
  near.take();
  hub->step();
  hub->step();
  EXPECT_NE(near.take_one(), "nothing");
  EXPECT_EQ(hub->stats().behind, 1U);
}

TEST_F(CatchUp, TheRingServesShortLagsWithoutTheStore) {
  start({.ring_revisions = 10});
  for (int i = 0; i < 30; i++) put("a", "x");
  Client client(*hub);
  client.watch_from(22, "a");
  run();
  EXPECT_EQ(mvcc.reads(), 0);
  client.watch_from(21, "a");
  run();
  EXPECT_EQ(mvcc.reads(), 1);
  int events = 0;
  while (auto response = client.stream->take()) events += response->message.events_size();
  EXPECT_EQ(events, 10 + 11);
}

TEST_F(CatchUp, TheRingIsBoundedByBytes) {
  start({.ring_bytes = 4000});
  for (int i = 0; i < 30; i++) put("a", std::string(900, 'x'));
  Client client(*hub);
  client.watch_from(30, "a");
  run();
  EXPECT_EQ(mvcc.reads(), 0);
  client.watch_from(20, "a");
  run();
  EXPECT_EQ(mvcc.reads(), 1);
}

TEST_F(CatchUp, AFullBufferFallsBehindAndLosesNothing) {
  start({.watcher_buffer_bytes = 10'000, .ring_bytes = 0});
  Client slow(*hub);
  slow.watch("a");
  std::string value(1000, 'x');
  for (int i = 0; i < 100; i++) put("a", value);
  EXPECT_LE(hub->stats().buffered_bytes, 10'000U);
  EXPECT_EQ(hub->stats().behind, 1U);
  // Blocked: catch-up has nothing to do for it until it is read.
  EXPECT_FALSE(hub->step());
  EXPECT_EQ(works, 0);

  int64_t expected = 2;
  EXPECT_EQ(slow.take_one(), "1 #0 created");
  for (int turn = 0; turn < 1000 && expected < 102; turn++) {
    while (auto response = slow.stream->take()) {
      for (const auto& event : response->message.events()) EXPECT_EQ(event.kv().mod_revision(), expected++);
      EXPECT_LE(hub->stats().buffered_bytes, 10'000U);
    }
    hub->step();
  }
  EXPECT_EQ(expected, 102);
  EXPECT_EQ(hub->stats().behind, 0U);
}

TEST_F(CatchUp, GoesOnWhenHalfOfItsOwnBufferIsFree) {
  start({.watcher_buffer_bytes = 2000, .ring_bytes = 0});
  Client client(*hub);
  client.watch("a");
  client.watch("b");
  client.take();
  std::string value(900, 'x');
  for (const char* key : {"a", "a", "a", "b", "b"}) put(key, value);
  EXPECT_EQ(hub->stats().behind, 1U);
  EXPECT_EQ(client.take_one(), "2 #0 a=" + value + "@2");
  EXPECT_EQ(works, 1);
  run();
  EXPECT_EQ(hub->stats().behind, 0U);
  EXPECT_EQ(client.take(), (Lines{"3 #0 a=" + value + "@3", "5 #1 b=" + value + "@5", "6 #1 b=" + value + "@6",
                                  "4 #0 a=" + value + "@4"}));
}

// Whatever is larger than a buffer still goes out, one delivery at a time.
TEST_F(CatchUp, AValueLargerThanEveryBufferGoesOut) {
  start({.watcher_buffer_bytes = 100, .stream_buffer_bytes = 100, .process_buffer_bytes = 100, .ring_bytes = 0});
  Client a(*hub);
  Client b(*hub);
  a.watch("a");
  b.watch("a");
  a.take();
  b.take();
  std::string value(1000, 'x');
  for (int i = 0; i < 5; i++) put("a", value);
  for (Client* client : {&a, &b}) {
    int64_t expected = 2;
    for (int turn = 0; turn < 100 && expected < 7; turn++) {
      while (auto response = client->stream->take()) {
        for (const auto& event : response->message.events()) EXPECT_EQ(event.kv().mod_revision(), expected++);
      }
      run();
    }
    EXPECT_EQ(expected, 7);
  }
}

TEST_F(CatchUp, AStreamsBudgetIsSharedByItsWatchers) {
  start({.stream_buffer_bytes = 5000, .ring_bytes = 0});
  Client client(*hub);
  for (int i = 0; i < 10; i++) client.watch("a");
  client.take();
  for (int i = 0; i < 5; i++) put("a", std::string(500, 'x'));
  EXPECT_LE(hub->stats().buffered_bytes, 5000U);
  std::map<int64_t, int> events;
  for (int turn = 0; turn < 100; turn++) {
    while (auto response = client.stream->take())
      events[response->message.watch_id()] += response->message.events_size();
    run();
  }
  EXPECT_EQ(events.size(), 10U);
  for (const auto& [id, count] : events) EXPECT_EQ(count, 5) << id;
}

TEST_F(CatchUp, AReaderThatDoesNotReadDoesNotHoldUpAnother) {
  start({.process_buffer_bytes = 20'000, .ring_bytes = 0});
  Client stuck(*hub);
  Client reader(*hub);
  stuck.watch("a");
  reader.watch("a");
  reader.take();
  int64_t expected = 2;
  for (int i = 0; i < 200; i++) {
    put("a", std::string(1000, 'x'));
    run();
    while (auto response = reader.stream->take()) {
      for (const auto& event : response->message.events()) EXPECT_EQ(event.kv().mod_revision(), expected++);
    }
  }
  run();
  reader.take();
  EXPECT_EQ(expected, 202);
  EXPECT_LE(hub->stats().buffered_bytes, 21'100U);
}

TEST_F(CatchUp, CancellingTheOneInTheWayLetsOthersGoOn) {
  start({.stream_buffer_bytes = 2000, .ring_bytes = 0});
  Client client(*hub);
  client.watch("a");
  client.watch("b");
  client.take();
  put("a", std::string(1900, 'x'));
  put("b", std::string(1900, 'y'));
  EXPECT_EQ(hub->stats().behind, 1U);
  client.stream->cancel(0);
  run();
  EXPECT_EQ(client.take(), (Lines{"3 #0 canceled", "3 #1 b=" + std::string(1900, 'y') + "@3"}));
}

TEST_F(CatchUp, ACompactedCursorIsCancelledAfterWhatItHas) {
  start({.watcher_buffer_bytes = 2000, .ring_bytes = 0});
  Client client(*hub);
  client.watch("a");
  std::string v(900, 'x');
  for (int i = 0; i < 5; i++) put("a", v);
  compact(6);
  EXPECT_EQ(client.take(), (Lines{"1 #0 created", "2 #0 a=" + v + "@2", "3 #0 a=" + v + "@3"}));
  run();
  EXPECT_EQ(client.take(), (Lines{"0 #0 canceled compacted=6"}));
  EXPECT_EQ(hub->stats().watchers, 0U);
}

TEST_F(CatchUp, CompactedUnderACohortThatWaits) {
  for (int i = 0; i < 10; i++) put("a", "x");
  Client client(*hub);
  client.watch_from(3, "a");
  client.watch_from(8, "a");
  // mvcc published the compaction, the hub has not heard of it.
  mvcc.compact(8);
  run();
  EXPECT_EQ(client.take(),
            (Lines{"11 #0 created", "11 #1 created", "0 #0 canceled compacted=8", "11 #1 a=x@8 a=x@9 a=x@10 a=x@11"}));
}

TEST_F(CatchUp, ABrokenStoreCancelsWithTheReason) {
  put("a", "1");
  mvcc.break_reads(true);
  Client client(*hub);
  client.watch_from(2, "a");
  run();
  EXPECT_EQ(client.take(), (Lines{"2 #0 created", "0 #0 canceled 'page 7 does not match its checksum'"}));
}

TEST_F(CatchUp, ARevisionThatWasSkippedIsReadFromHistory) {
  start({});
  Client client(*hub);
  client.watch("a");
  client.watch_from(100, "a");
  put("a", "1");
  // A snapshot brought revisions 3 to 5.
  for (int i = 0; i < 3; i++) mvcc.write({{"a", "s"}});
  hub->publish({}, 5);
  put("a", "2");
  run();
  put("a", "3");
  EXPECT_EQ(client.take(),
            (Lines{"1 #0 created", "1 #1 created", "2 #0 a=1@2", "6 #0 a=s@3 a=s@4 a=s@5 a=2@6", "7 #0 a=3@7"}));
}

TEST_F(CatchUp, HistoryComesInResponsesOfBoundedSize) {
  start({.watcher_buffer_bytes = 10 << 20, .response_bytes = 10'000, .ring_bytes = 0});
  for (int i = 0; i < 100; i++) put("a", std::string(1000, 'x'));
  Client client(*hub);
  client.watch_from(2, "a");
  client.take();
  run();
  int64_t expected = 2;
  while (auto response = client.stream->take()) {
    EXPECT_LE(response->message.ByteSizeLong(), 10'000U);
    for (const auto& event : response->message.events()) EXPECT_EQ(event.kv().mod_revision(), expected++);
  }
  EXPECT_EQ(expected, 102);
}

TEST_F(CatchUp, AStepIsBounded) {
  for (int i = 0; i < 5000; i++) put("a", "x");
  Client client(*hub);
  client.watch_from(2, "b");  // wants nothing of it
  EXPECT_GE(run(), 5000 / kSliceRevisions);
}

}  // namespace
}  // namespace watch
