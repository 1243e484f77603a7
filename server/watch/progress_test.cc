#include "watch/fixture_test.h"

namespace watch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Progress : public Fixture {
 protected:
  void SetUp() override { start({.watcher_buffer_bytes = 2000, .progress_interval = seconds(10), .ring_bytes = 0}); }
  static void notify(Request& request) { request.set_progress_notify(true); }
};

TEST_F(Progress, AnswersAfterTheEventsItSpeaksOf) {
  Client client(*hub);
  client.watch("a");
  client.watch("b");
  client.take();
  put("a", "1");
  client.stream->progress();
  put("b", "2");
  EXPECT_EQ(client.take(), (Lines{"2 #0 a=1@2", "2 #-1", "3 #1 b=2@3"}));
}

TEST_F(Progress, WaitsForTheLastWatcherToCatchUp) {
  put("a", "1");
  Client client(*hub);
  client.watch("b");
  client.watch_from(2, "a");
  client.take();
  client.stream->progress();
  EXPECT_EQ(client.take(), Lines{});
  run();
  EXPECT_EQ(client.take(), (Lines{"2 #1 a=1@2", "2 #-1"}));
  EXPECT_EQ(client.take(), Lines{});
}

TEST_F(Progress, WaitsForABlockedWatcher) {
  Client client(*hub);
  client.watch("a");
  client.take();
  for (int i = 0; i < 5; i++) put("a", std::string(900, 'x'));
  client.stream->progress();
  Lines lines;
  for (int turn = 0; turn < 10; turn++) {
    for (auto& text : client.take()) lines.push_back(text);
    run();
  }
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), "6 #-1");
}

TEST_F(Progress, CancellingTheOneThatIsBehindAnswers) {
  put("a", "1");
  Client client(*hub);
  client.watch("b");
  client.watch_from(2, "a");
  client.take();
  client.stream->progress();
  client.stream->cancel(1);
  EXPECT_EQ(client.take(), (Lines{"2 #1 canceled", "2 #-1"}));
}

// The queue still has an event of it, and an answer behind that which would now promise too much.
TEST_F(Progress, CancellingTakesProgressBackThatSpokeOfDroppedEvents) {
  Client client(*hub);
  client.watch("a");
  client.watch("b");
  client.take();
  client.stream->progress();
  put("a", "1");
  client.stream->progress();
  client.stream->cancel(0);
  EXPECT_EQ(client.take(), (Lines{"1 #-1", "2 #0 canceled", "2 #-1"}));
}

TEST_F(Progress, WaitsForAFutureStart) {
  Client client(*hub);
  client.watch_from(5, "a");
  client.take();
  client.stream->progress();
  EXPECT_EQ(client.take(), Lines{});
  for (int i = 0; i < 3; i++) put("b", "x");
  EXPECT_EQ(client.take(), (Lines{"4 #-1"}));
}

TEST_F(Progress, WaitsForWhatIsPublishedElsewhere) {
  Client client(*hub);
  client.watch("a");
  client.take();
  auto batch = mvcc.write({{"b", "1"}});
  client.stream->progress();
  EXPECT_EQ(client.take(), Lines{});
  hub->publish({batch}, 2);
  EXPECT_EQ(client.take(), (Lines{"2 #-1"}));
}

TEST_F(Progress, AStreamWithoutWatchersIsNotAnswered) {
  Client client(*hub);
  client.stream->progress();
  EXPECT_EQ(client.take(), Lines{});
}

TEST_F(Progress, ACloseWhileItIsWantedIsForgotten) {
  put("a", "1");
  {
    Client client(*hub);
    client.watch_from(2, "a");
    client.stream->progress();
  }
  put("a", "2");
  EXPECT_FALSE(hub->step());
}

TEST_F(Progress, PeriodicForQuietWatchersThatAskedForIt) {
  Client client(*hub);
  client.watch("a", "", notify);
  client.watch("b", "", notify);
  client.watch("c");
  client.take();
  hub->tick(seconds(1000));
  hub->tick(seconds(1009));
  EXPECT_EQ(client.take(), Lines{});
  put("a", "1");
  hub->tick(seconds(1012));
  EXPECT_EQ(client.take(), (Lines{"2 #0 a=1@2", "2 #1"}));
  hub->tick(seconds(1024));
  EXPECT_EQ(client.take(), (Lines{"2 #0", "2 #1"}));
  hub->tick(seconds(1025));
  EXPECT_EQ(client.take(), Lines{});
}

TEST_F(Progress, PeriodicNotForThoseBehindOrOfTheFuture) {
  put("a", "1");
  hub->tick(seconds(5));
  Client client(*hub);
  client.watch("a", "", [](Request& request) {
    notify(request);
    request.set_start_revision(2);
  });
  client.watch("a", "", [](Request& request) {
    notify(request);
    request.set_start_revision(9);
  });
  client.take();
  hub->tick(seconds(17));
  EXPECT_EQ(client.take(), Lines{});
  run();
  client.take();
  hub->tick(seconds(30));
  hub->tick(seconds(42));
  EXPECT_EQ(client.take(), (Lines{"2 #0"}));
}

TEST_F(Progress, PeriodicEndsWithTheWatcher) {
  hub->tick(seconds(0));
  Client client(*hub);
  client.watch("a", "", notify);
  client.stream->cancel(0);
  client.take();
  hub->tick(seconds(100));
  EXPECT_EQ(client.take(), Lines{});
}

TEST_F(Progress, IntervalIsAtLeast100Milliseconds) {
  start({.progress_interval = milliseconds(0)});
  hub->tick(milliseconds(0));
  Client client(*hub);
  client.watch("a", "", notify);
  client.take();
  hub->tick(milliseconds(50));
  hub->tick(milliseconds(99));
  EXPECT_EQ(client.take(), Lines{});
  hub->tick(milliseconds(111));
  EXPECT_EQ(client.take(), (Lines{"1 #0"}));
}

}  // namespace
}  // namespace watch
