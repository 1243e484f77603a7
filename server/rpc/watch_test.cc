#include "rpc/watch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "watch/fixture_test.h"

namespace rpc {
namespace {

using etcdserverpb::WatchRequest;
using etcdserverpb::WatchResponse;

struct FakeHeader final : HeaderSource {
  void fill(etcdserverpb::ResponseHeader* header) const override {
    header->set_cluster_id(11);
    header->set_member_id(12);
    header->set_raft_term(13);
  }
};

struct FakeStream final : http::ServerStream {
  int wakes = 0;
  bool finished = false;
  void wake() override { wakes++; }
  void finish(Status) override { finished = true; }
  http::Codec codec() const override { return http::Codec::kJson; }
};

struct FakeSink final : http::Sink {
  size_t room = 1'000'000;
  std::vector<std::string> lines;
  std::vector<std::shared_ptr<const http::Encoded>> encoded;
  bool full() const override { return lines.size() + encoded.size() >= room; }
  void send(const http::Message& response) override {
    lines.push_back(watch::line(static_cast<const WatchResponse&>(response)));
    EXPECT_EQ(static_cast<const WatchResponse&>(response).header().member_id(), 12U);
  }
  void send(const std::shared_ptr<const http::Encoded>& response) override { encoded.push_back(response); }
};

class WatchService : public watch::Fixture {
 protected:
  struct Call {
    std::shared_ptr<FakeStream> stream = std::make_shared<FakeStream>();
    std::unique_ptr<http::StreamHandler> handler;
    void send(const WatchRequest& request) { handler->on_message(std::make_unique<WatchRequest>(request)); }
    void watch(const std::string& key) {
      WatchRequest request;
      request.mutable_create_request()->set_key(key);
      send(request);
    }
    std::vector<std::string> pull() {
      FakeSink sink;
      handler->pull(sink);
      return sink.lines;
    }
  };

  void SetUp() override {
    Fixture::SetUp();
    add_watch(router_, *hub, header_);
  }
  Call call() {
    Call made;
    const auto* endpoint = router_.find_path("/v3/watch");
    made.handler = *endpoint->stream->open({made.stream, {}});
    return made;
  }

  FakeHeader header_;
  http::Router router_;
};

TEST_F(WatchService, IsKnownByPathAndName) {
  ASSERT_NE(router_.find_name("/etcdserverpb.Watch/Watch"), nullptr);
  EXPECT_EQ(router_.find_path("/v3/watch")->unary, nullptr);
}

TEST_F(WatchService, AnswersEachKindOfRequestAndIgnoresAnEmptyOne) {
  Call a = call();
  WatchRequest request;
  a.send(request);
  EXPECT_EQ(a.pull(), std::vector<std::string>{});
  a.watch("k");
  request.mutable_progress_request();
  a.send(request);
  request.mutable_cancel_request()->set_watch_id(0);
  a.send(request);
  EXPECT_EQ(a.pull(), (std::vector<std::string>{"1 #0 created", "1 #-1", "1 #0 canceled"}));
}

TEST_F(WatchService, GoesOnAfterTheClientsHalfIsClosed) {
  Call a = call();
  a.watch("k");
  a.handler->on_half_close();
  a.pull();
  const int wakes = a.stream->wakes;
  put("k", "1");
  EXPECT_EQ(a.stream->wakes, wakes + 1);
  EXPECT_EQ(a.pull(), (std::vector<std::string>{"2 #0 k=1@2"}));
  EXPECT_FALSE(a.stream->finished);
}

TEST_F(WatchService, SharedResponsesAreEncodedOnce) {
  Call a = call();
  Call b = call();
  for (Call* each : {&a, &b}) {
    each->watch("k");
    each->pull();
  }
  put("k", "1");
  FakeSink to_a;
  FakeSink to_b;
  a.handler->pull(to_a);
  b.handler->pull(to_b);
  ASSERT_EQ(to_a.encoded.size(), 1U);
  EXPECT_EQ(to_a.encoded, to_b.encoded);
  EXPECT_NE(to_a.encoded[0]->bytes.find("\"member_id\":\"12\""), std::string::npos) << to_a.encoded[0]->bytes;
}

TEST_F(WatchService, StopsAtAFullSink) {
  Call a = call();
  a.watch("k");
  for (const char* value : {"1", "2"}) put("k", value);
  FakeSink sink;
  sink.room = 2;
  a.handler->pull(sink);
  EXPECT_EQ(sink.lines, (std::vector<std::string>{"1 #0 created", "2 #0 k=1@2"}));
  EXPECT_EQ(a.pull(), (std::vector<std::string>{"3 #0 k=2@3"}));
}

TEST_F(WatchService, HoldsBackAClientThatAsksAndDoesNotRead) {
  Call a = call();
  for (size_t i = 0; i < watch::kAnswersPerStreamMax; i++) {
    ASSERT_TRUE(a.handler->may_receive());
    a.watch("k");
  }
  EXPECT_FALSE(a.handler->may_receive());
  const int wakes = a.stream->wakes;
  a.pull();
  EXPECT_EQ(a.stream->wakes, wakes + 1);
  EXPECT_TRUE(a.handler->may_receive());
}

TEST_F(WatchService, EndsItsWatchesWithTheStream) {
  Call a = call();
  Call b = call();
  a.watch("k");
  b.watch("k");
  a.handler->on_cancel();
  EXPECT_EQ(hub->stats().watchers, 1U);
  a.handler.reset();
  b.handler.reset();
  EXPECT_EQ(hub->stats().streams, 0U);
  const int wakes = a.stream->wakes;
  put("k", "1");
  EXPECT_EQ(a.stream->wakes, wakes);
}

}  // namespace
}  // namespace rpc
