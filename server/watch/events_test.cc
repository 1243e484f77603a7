// What a watcher at the tip hears.
#include "watch/fixture_test.h"

namespace watch {
namespace {

class Events : public Fixture {};

TEST_F(Events, RangesIncludeTheKeyAndExcludeTheEnd) {
  Client client(*hub);
  client.watch("b", "d");
  client.watch("c", std::string(1, '\0'));
  client.take();
  for (const char* key : {"a", "b", "c", "d"}) put(key, "1");
  EXPECT_EQ(client.take(), (Lines{"3 #0 b=1@3", "4 #0 c=1@4", "4 #1 c=1@4", "5 #1 d=1@5"}));
}

TEST_F(Events, OfOneRevisionComeTogetherInOrder) {
  put("c", "0");
  Client client(*hub);
  client.watch("a", "z");
  client.take();
  write({{"b", "1"}, {"a", "2"}, {"c", std::nullopt}, {"d", "3"}});
  EXPECT_EQ(client.take(), (Lines{"3 #0 b=1@3 a=2@3 -c@3 d=3@3"}));
}

TEST_F(Events, OfOnePublishShareAResponse) {
  Client client(*hub);
  client.watch("a", "z");
  client.take();
  std::vector<mvcc::EventBatch> batches;
  batches.push_back(mvcc.write({{"a", "1"}}));
  batches.push_back(mvcc.write({{"0", "2"}}));
  batches.push_back(mvcc.write({{"b", "3"}, {"c", "3"}}));
  hub->publish(std::move(batches), 4);
  EXPECT_EQ(client.take(), (Lines{"4 #0 a=1@2 b=3@4 c=3@4"}));
}

TEST_F(Events, OfOnePublishAreCutBetweenRevisions) {
  start({.response_bytes = 300});
  Client client(*hub);
  client.watch("a", "z");
  client.take();
  std::vector<mvcc::EventBatch> batches;
  std::string value(100, 'x');
  for (int i = 0; i < 4; i++) batches.push_back(mvcc.write({{"a", value}, {"b", value}}));
  hub->publish(std::move(batches), 5);
  int64_t revision = 2;
  for (const auto& text : client.take()) {
    EXPECT_EQ(text, std::to_string(revision) + " #0 a=" + value + "@" + std::to_string(revision) + " b=" + value + "@" +
                        std::to_string(revision));
    revision++;
  }
  EXPECT_EQ(revision, 6);
}

TEST_F(Events, FiltersDropKindsAndEmptyResponses) {
  Client client(*hub);
  client.watch("a", "", [](Request& request) { request.add_filters(Request::NOPUT); });
  client.watch("a", "", [](Request& request) { request.add_filters(Request::NODELETE); });
  client.watch("a", "", [](Request& request) {
    request.add_filters(Request::NODELETE);
    request.add_filters(Request::NOPUT);
  });
  client.take();
  put("a", "1");
  erase("a");
  EXPECT_EQ(client.take(), (Lines{"2 #1 a=1@2", "3 #0 -a@3"}));
}

TEST_F(Events, PreviousValueForUpdatesAndDeletesOnly) {
  Client client(*hub);
  client.watch("a", "", [](Request& request) { request.set_prev_kv(true); });
  client.take();
  put("a", "1");
  put("a", "2");
  erase("a");
  put("a", "3");
  EXPECT_EQ(client.take(), (Lines{"2 #0 a=1@2", "3 #0 a=2@3 (was 1@2)", "4 #0 -a@4 (was 2@3)", "5 #0 a=3@5"}));
}

TEST_F(Events, CompactedPreviousValueIsLeftOut) {
  Client client(*hub);
  client.watch("a", "", [](Request& request) { request.set_prev_kv(true); });
  client.take();
  put("a", "1");
  put("a", "2");
  put("a", "3");
  compact(3);
  EXPECT_EQ(client.take(), (Lines{"2 #0 a=1@2", "3 #0 a=2@3", "4 #0 a=3@4 (was 2@3)"}));
}

TEST_F(Events, DeleteCarriesKeyAndModRevisionOnly) {
  put("a", "1");
  Client client(*hub);
  client.watch("a");
  client.take();
  erase("a");
  auto response = client.stream->take();
  ASSERT_EQ(response->message.events_size(), 1);
  const auto& kv = response->message.events(0).kv();
  EXPECT_EQ(kv.mod_revision(), 3);
  EXPECT_EQ(kv.create_revision(), 0);
  EXPECT_EQ(kv.version(), 0);
}

TEST_F(Events, FutureStartSkipsWhatComesBefore) {
  Client client(*hub);
  client.watch_from(4, "a", "z");
  EXPECT_EQ(client.take(), (Lines{"1 #0 created"}));
  std::vector<mvcc::EventBatch> batches;
  for (const char* value : {"2", "3", "4", "5"}) batches.push_back(mvcc.write({{"a", value}}));
  hub->publish(std::move(batches), 5);
  EXPECT_EQ(client.take(), (Lines{"5 #0 a=4@4 a=5@5"}));
  EXPECT_EQ(hub->stats().behind, 0U);
}

// The writer was answered before the hub heard of the write: "from now" is after it all the same.
TEST_F(Events, FromNowIsAfterWhatIsPublished) {
  auto batch = mvcc.write({{"a", "1"}});
  Client client(*hub);
  client.watch("a");
  client.watch_from(2, "a");
  hub->publish({batch}, 2);
  put("a", "2");
  EXPECT_EQ(client.take(), (Lines{"2 #0 created", "2 #1 created", "2 #1 a=1@2", "3 #0 a=2@3", "3 #1 a=2@3"}));
}

TEST_F(Events, FragmentsOnlyForWhoAskedForThem) {
  start({.response_bytes = 2000});
  Client whole(*hub);
  Client parts(*hub);
  whole.watch("a", "z");
  parts.watch("a", "z", [](Request& request) { request.set_fragment(true); });
  whole.take();
  parts.take();
  std::string v(900, 'v');
  write({{"a", v}, {"b", v}, {"c", v}});
  put("d", "1");
  EXPECT_EQ(whole.take(), (Lines{"2 #0 a=" + v + "@2 b=" + v + "@2 c=" + v + "@2", "3 #0 d=1@3"}));
  EXPECT_EQ(parts.take(), (Lines{"2 #0 fragment a=" + v + "@2 b=" + v + "@2", "2 #0 c=" + v + "@2", "3 #0 d=1@3"}));
}

TEST_F(Events, EqualWatchersShareOneResponse) {
  Client a(*hub);
  Client b(*hub);
  Client other_id(*hub);
  for (Client* client : {&a, &b}) client->watch("k");
  other_id.watch("k", "", [](Request& request) { request.set_watch_id(5); });
  for (Client* client : {&a, &b, &other_id}) client->take();
  put("k", "1");
  auto first = a.stream->take();
  auto second = b.stream->take();
  EXPECT_EQ(first, second);
  EXPECT_TRUE(first->shared);
  EXPECT_EQ(line(other_id.stream->take()->message), "2 #5 k=1@2");
}

TEST_F(Events, ALoneWatchersResponseIsNotKept) {
  Client client(*hub);
  client.watch("k");
  client.take();
  put("k", "1");
  auto response = client.stream->take();
  EXPECT_FALSE(response->shared);
  EXPECT_EQ(response.use_count(), 1);
}

TEST_F(Events, StatsCountWhatIsHandedOut) {
  Client a(*hub);
  Client b(*hub);
  a.watch("k");
  b.watch("k");
  put("k", "1");
  auto stats = hub->stats();
  EXPECT_EQ(stats.streams, 2U);
  EXPECT_EQ(stats.watchers, 2U);
  EXPECT_EQ(stats.events, 2U);
  EXPECT_GT(stats.buffered_bytes, 0U);
  a.take();
  b.take();
  EXPECT_EQ(hub->stats().buffered_bytes, 0U);
}

}  // namespace
}  // namespace watch
