// Create, cancel and their answers: the texts and the fields are etcd's (recorded in the conformance cases).
#include "watch/fixture_test.h"
#include "watch/hub_impl.h"

namespace watch {
namespace {

class Requests : public Fixture {};

TEST_F(Requests, CreatedComesFirstWithTheCurrentRevision) {
  put("x", "0");
  Client client(*hub);
  client.watch("a");
  put("a", "1");
  EXPECT_EQ(client.take(), (Lines{"2 #0 created", "3 #0 a=1@3"}));
}

TEST_F(Requests, ServerChoosesFreeIds) {
  Client client(*hub);
  auto with_id = [](int64_t id) { return [id](Request& request) { request.set_watch_id(id); }; };
  client.watch("a", "", with_id(1));
  client.watch("b");
  client.watch("c");
  client.watch("d", "", with_id(7));
  EXPECT_EQ(client.take(), (Lines{"1 #1 created", "1 #0 created", "1 #2 created", "1 #7 created"}));
}

TEST_F(Requests, DuplicateIdIsRefusedInOneMessage) {
  Client client(*hub);
  auto seven = [](Request& request) { request.set_watch_id(7); };
  client.watch("a", "", seven);
  client.watch("b", "", seven);
  put("b", "1");
  put("a", "1");
  EXPECT_EQ(client.take(),
            (Lines{"1 #7 created", "1 #-1 created canceled 'mvcc: duplicate watch ID provided on the WatchStream'",
                   "3 #7 a=1@3"}));
}

TEST_F(Requests, EmptyRangeAndNegativeStartAreRefused) {
  Client client(*hub);
  client.watch("b", "a");
  client.watch("b", "b");
  client.watch_from(-1, "b");
  EXPECT_EQ(client.take(), (Lines{"1 #-1 created canceled 'mvcc: watcher range is empty'",
                                  "1 #-1 created canceled 'mvcc: watcher range is empty'",
                                  "1 #-1 created canceled 'etcdserver: mvcc: required revision has been compacted'"}));
  EXPECT_EQ(hub->stats().watchers, 0U);
}

TEST_F(Requests, WatchersOfAStreamAreLimited) {
  start({.watchers_per_stream_max = 2});
  Client client(*hub);
  for (const char* key : {"a", "b", "c"}) client.watch(key);
  EXPECT_EQ(client.take(), (Lines{"1 #0 created", "1 #1 created",
                                  "1 #-1 created canceled 'etcdserver: too many watches on one stream'"}));
  client.stream->cancel(0);
  client.watch("d");
  EXPECT_EQ(client.take(), (Lines{"1 #0 canceled", "1 #2 created"}));
}

TEST_F(Requests, NoKeyIsTheSmallestKey) {
  Client client(*hub);
  client.watch("");
  client.watch("", std::string(1, '\0'));
  client.take();
  put("a", "1");
  put(std::string(1, '\0'), "2");
  EXPECT_EQ(client.take(), (Lines{"2 #1 a=1@2", std::string("3 #0 \0=2@3", 10), std::string("3 #1 \0=2@3", 10)}));
}

TEST_F(Requests, CancelAnswersAndNothingFollows) {
  Client client(*hub);
  client.watch("a");
  client.watch("b");
  put("a", "1");
  client.stream->cancel(0);
  put("a", "2");
  put("b", "3");
  EXPECT_EQ(client.take(), (Lines{"1 #0 created", "1 #1 created", "2 #0 canceled", "4 #1 b=3@4"}));
  EXPECT_EQ(hub->stats().watchers, 1U);
  EXPECT_EQ(hub->stats().buffered_bytes, 0U);
}

TEST_F(Requests, UnknownCancelIsIgnored) {
  Client client(*hub);
  client.watch("a");
  client.stream->cancel(5);
  client.stream->cancel(0);
  client.stream->cancel(0);
  EXPECT_EQ(client.take(), (Lines{"1 #0 created", "1 #0 canceled"}));
}

TEST_F(Requests, ACancelledIdMayBeUsedAgain) {
  Client client(*hub);
  auto seven = [](Request& request) { request.set_watch_id(7); };
  client.watch("a", "", seven);
  client.stream->cancel(7);
  client.watch("b", "", seven);
  put("a", "1");
  put("b", "1");
  EXPECT_EQ(client.take(), (Lines{"1 #7 created", "1 #7 canceled", "1 #7 created", "3 #7 b=1@3"}));
}

TEST_F(Requests, CompactedStartIsCreatedThenCancelled) {
  for (const char* value : {"1", "2", "3"}) put("a", value);
  compact(3);
  Client client(*hub);
  client.watch_from(2, "a");
  EXPECT_EQ(client.take(), (Lines{"4 #0 created", "0 #0 canceled compacted=3"}));
  // etcd still knows the id, and answers the cancel that its own client sends.
  client.stream->cancel(0);
  EXPECT_EQ(client.take(), (Lines{"4 #0 canceled"}));
  client.watch_from(3, "a");
  run();
  EXPECT_EQ(client.take(), (Lines{"4 #1 created", "4 #1 a=2@3 a=3@4"}));
}

TEST_F(Requests, HeaderIsFilledIn) {
  hub->set_header([](etcdserverpb::ResponseHeader* header) { header->set_raft_term(9); });
  Client client(*hub);
  client.watch("a");
  put("a", "1");
  for (int64_t revision = 1; revision <= 2; revision++) {
    auto response = client.stream->take();
    ASSERT_NE(response, nullptr);
    EXPECT_EQ(response->message.header().raft_term(), 9U);
    EXPECT_EQ(response->message.header().revision(), revision);
  }
}

TEST_F(Requests, WakesOnceFromEmptyToFull) {
  Client client(*hub);
  client.watch("a");
  EXPECT_EQ(client.wakes, 1);
  put("a", "1");
  put("a", "2");
  EXPECT_EQ(client.wakes, 1);
  client.take();
  put("b", "3");
  EXPECT_EQ(client.wakes, 1);
  put("a", "4");
  EXPECT_EQ(client.wakes, 2);
}

TEST_F(Requests, NoWakeAfterClose) {
  Client client(*hub);
  client.watch("a");
  client.take();
  client.stream->close();
  put("a", "1");
  EXPECT_EQ(client.wakes, 1);
  EXPECT_EQ(client.take_one(), "nothing");
  EXPECT_EQ(hub->stats().streams, 0U);
  EXPECT_EQ(hub->stats().watchers, 0U);
}

TEST_F(Requests, CloseGivesBackWhatIsQueued) {
  Client client(*hub);
  for (size_t i = 0; i < 2 * kChunkWatchers + 1; i++) client.watch(i % 2 == 0 ? "a" : "b", i % 3 == 0 ? "c" : "");
  write({{"a", "1"}, {"b", "2"}});
  EXPECT_GT(hub->stats().buffered_bytes, 0U);
  client.stream->close();
  EXPECT_EQ(hub->stats().buffered_bytes, 0U);
  EXPECT_EQ(hub->stats().watchers, 0U);
  EXPECT_EQ(client.take_one(), "nothing");
}

TEST_F(Requests, CrowdedTellsOfAClientThatDoesNotRead) {
  Client client(*hub);
  for (size_t i = 0; i < kAnswersPerStreamMax; i++) {
    EXPECT_FALSE(client.stream->crowded());
    client.watch("a");
  }
  EXPECT_TRUE(client.stream->crowded());
  client.stream->take();
  EXPECT_FALSE(client.stream->crowded());
}

}  // namespace
}  // namespace watch
