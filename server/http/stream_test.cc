// Streams over real loopback sockets.
#include <gtest/gtest.h>

#include "http/server.h"
#include "http/test_service.h"

namespace http {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::Response;

constexpr std::string_view kCreate = R"({"create_request":{"key":"YQ=="}})";
constexpr std::string_view kOpenBody = "POST /v3/watch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

class StreamTest : public testing::Test {
 protected:
  void start(ServerOptions options = {}) {
    server_ = std::make_unique<Server>(service_.router, std::move(options));
    ASSERT_TRUE(server_->listen({"http://127.0.0.1:0"}));
    server_->start();
    url_ = server_->urls()[0];
  }
  static std::string chunk(std::string_view text) {
    char size[20];
    std::snprintf(size, sizeof(size), "%zx\r\n", text.size());
    return size + std::string(text) + "\r\n";
  }
  etcdserverpb::WatchResponse event(size_t value_bytes = 1) {
    etcdserverpb::WatchResponse response;
    response.add_events()->mutable_kv()->set_value(std::string(value_bytes, 'x'));
    return response;
  }

  test::Service service_;
  std::unique_ptr<Server> server_;
  std::string url_;
};

TEST_F(StreamTest, AWatchAnswersOneMessageAChunk) {
  start();
  Client client(url_);
  client.post("/v3/watch", kCreate);
  const auto head = client.head();
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->header("Content-Type"), "application/json");
  EXPECT_EQ(head->header("Grpc-Metadata-Content-Type"), "application/grpc");
  EXPECT_EQ(head->header("Transfer-Encoding"), "chunked");
  EXPECT_EQ(client.chunk(), "{\"result\":{\"created\":true}}\n");
  service_.publish(event());
  service_.publish(event());
  EXPECT_EQ(client.chunk(), "{\"result\":{\"events\":[{\"kv\":{\"value\":\"eA==\"}}]}}\n");
  EXPECT_EQ(client.chunk(), "{\"result\":{\"events\":[{\"kv\":{\"value\":\"eA==\"}}]}}\n");
  EXPECT_TRUE(client.quiet(20ms));
}

TEST_F(StreamTest, SeveralRequestsInAnEndlessBodyAreHandledAsTheyArrive) {
  start();
  Client client(url_);
  client.send(kOpenBody);
  EXPECT_TRUE(client.quiet(20ms));
  client.send(chunk(kCreate));
  EXPECT_TRUE(client.head());
  EXPECT_EQ(client.chunk(), "{\"result\":{\"created\":true}}\n");
  client.send(chunk("{\"create_re"));
  EXPECT_TRUE(client.quiet(20ms));
  client.send(chunk("quest\":{}}" + std::string(kCreate) + "\n"));
  EXPECT_EQ(client.chunk(), "{\"result\":{\"watch_id\":\"1\",\"created\":true}}\n");
  EXPECT_EQ(client.chunk(), "{\"result\":{\"watch_id\":\"2\",\"created\":true}}\n");
  const auto entries = service_.journal.entries();
  EXPECT_EQ(std::count(entries.begin(), entries.end(), "half-close"), 0);
  client.send("0\r\n\r\n");
  EXPECT_TRUE(service_.journal.wait_for("half-close"));
  service_.publish(event());
  EXPECT_TRUE(client.chunk());
}

TEST_F(StreamTest, KeepAliveEndsWithItsBodyAndTheConnectionGoesOn) {
  start();
  Client client(url_);
  for (int i = 0; i < 3; ++i) {
    client.post("/v3/lease/keepalive", "{\"ID\":1}\n{\"ID\":\"2\"} {\"ID\":3}{}{}{}{}{}{}");
    const auto response = client.response();
    EXPECT_EQ(response->status, 200);
    ASSERT_EQ(response->chunks.size(), 9u);
    EXPECT_EQ(response->chunks[1], "{\"result\":{\"ID\":\"2\"}}\n");
  }
}

TEST_F(StreamTest, AnEmptyOrBrokenBodyIsAnEmptyAnswer) {
  start();
  Client client(url_);
  for (const char* body : {"", "  ", "{\"ID\":", "[]", "nonsense", "null", "{\"ID\":true}"}) {
    client.post("/v3/lease/keepalive", body);
    const auto response = client.response();
    ASSERT_TRUE(response) << body;
    EXPECT_EQ(response->status, 200) << body;
    EXPECT_EQ(response->header("Content-Type"), "");
    EXPECT_EQ(response->header("Grpc-Metadata-Content-Type"), "");
    EXPECT_EQ(response->body, "");
  }
  client.post("/v3/lease/keepalive", "{\"ID\":\"81996\"}{bad");
  EXPECT_EQ(client.response()->body, "{\"result\":{\"ID\":\"81996\"}}\n");
}

TEST_F(StreamTest, AWatchWithNothingToSayStaysSilentAndOpen) {
  start();
  Client empty(url_);
  empty.post("/v3/watch", "");
  Client bad(url_);
  bad.post("/v3/watch", "{bad");
  EXPECT_TRUE(service_.journal.wait_for("half-close"));
  EXPECT_TRUE(empty.quiet(30ms));
  EXPECT_TRUE(bad.quiet(30ms));
  EXPECT_EQ(server_->counters().streams_open, 2u);
}

TEST_F(StreamTest, ErrorsBeforeAndAfterTheFirstMessage) {
  start();
  Client refused(url_);
  refused.post("/v3/watch", kCreate, "Authorization: refuse\r\n");
  auto response = refused.response();
  EXPECT_EQ(response->status, 403);
  EXPECT_EQ(response->header("Content-Type"), "application/json");
  EXPECT_EQ(response->header("Grpc-Metadata-Content-Type"), "");
  EXPECT_EQ(response->body, "{\"error\":{\"code\":7,\"message\":\"etcdserver: permission denied\"}}\n");
  Client started(url_);
  started.post("/v3/watch", kCreate);
  EXPECT_TRUE(started.head());
  EXPECT_TRUE(started.chunk());
  service_.finish_watches(fail(Code::kUnavailable, "etcdserver: no leader"));
  EXPECT_EQ(started.chunk(), "{\"error\":{\"code\":14,\"message\":\"etcdserver: no leader\"}}\n");
  EXPECT_EQ(started.chunk(), "");
  started.get("/health");
  EXPECT_EQ(started.response()->status, 200);
}

TEST_F(StreamTest, WhatWasPublishedBeforeTheEndIsSentBeforeIt) {
  start();
  Client client(url_);
  client.post("/v3/watch", kCreate);
  EXPECT_TRUE(service_.journal.wait_for("create a"));
  for (int i = 0; i < 100; ++i) service_.publish(event(10'000));
  service_.finish_watches({});
  const auto response = client.response();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->chunks.size(), 101u);
}

TEST_F(StreamTest, DeadlineOfAStream) {
  start();
  Client client(url_);
  client.post("/v3/watch", kCreate, "Grpc-Timeout: 50m\r\n");
  auto response = client.response();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->chunks.back(), "{\"error\":{\"code\":4,\"message\":\"context deadline exceeded\"}}\n");
  EXPECT_TRUE(service_.journal.wait_for("cancel"));
  client.post("/v3/watch", "{}", "Grpc-Timeout: 0m\r\n");
  EXPECT_TRUE(client.response());
}

TEST_F(StreamTest, AVanishedWatcherIsNoticed) {
  start();
  for (const bool body_open : {false, true}) {
    Client client(url_);
    if (body_open) {
      client.send(std::string(kOpenBody) + chunk(kCreate));
    } else {
      client.post("/v3/watch", kCreate);
    }
    EXPECT_TRUE(client.head());
    EXPECT_TRUE(client.chunk());
    client.close();
    while (server_->counters().streams_open > 0) std::this_thread::yield();
  }
  EXPECT_TRUE(service_.journal.wait_for("cancel", 2));  // told just after it is counted
  service_.publish(event());                            // to streams that are gone: no effect
}

TEST_F(StreamTest, AWatcherThatDoesNotReadIsNotPulled) {
  start();
  Client client(url_);
  client.post("/v3/watch", kCreate);
  EXPECT_TRUE(client.head());
  constexpr int kEvents = 300;
  for (int i = 0; i < kEvents; ++i) service_.publish(event(100'000));  // 40 MB; far more than sockets hold
  // It comes to rest, with most of it still waiting in the service.
  uint64_t sent = 1;
  for (uint64_t before = 0; sent != before; std::this_thread::sleep_for(50ms))
    before = std::exchange(sent, server_->counters().bytes_sent);
  EXPECT_LT(sent, 20'000'000u);
  EXPECT_TRUE(client.chunk());
  for (int i = 0; i < kEvents; ++i) EXPECT_EQ(client.chunk()->size(), 133'380u) << i;
  EXPECT_TRUE(client.quiet(20ms));
}

TEST_F(StreamTest, AClientThatAsksWithoutReadingIsHeldBack) {
  start();
  Client client(url_);
  client.send("POST /v3/lease/keepalive HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::string many;
  for (int i = 1; i <= 1000; ++i) many += "{\"ID\":" + std::to_string(i) + "}";
  constexpr int kTimes = 2000;
  std::atomic<int> sent = 0;
  std::thread sender([&] {
    for (int i = 0; i < kTimes; ++i) {
      client.send(chunk(many));
      sent.store(i + 1);
    }
    client.send("0\r\n\r\n");
  });
  // The sender stops when sockets are full on both ways: the server does not swallow what it cannot answer.
  for (int before = -1; before != sent.load(); std::this_thread::sleep_for(50ms)) before = sent.load();
  EXPECT_LT(sent.load(), kTimes);
  EXPECT_TRUE(client.head());
  for (int i = 0; i < kTimes * 1000; ++i) {
    const auto answer = client.chunk();
    ASSERT_TRUE(answer);
    if (i % 997 == 0) {
      ASSERT_EQ(*answer, "{\"result\":{\"ID\":\"" + std::to_string(i % 1000 + 1) + "\"}}\n");
    }
  }
  EXPECT_EQ(client.chunk(), "");
  sender.join();
}

TEST_F(StreamTest, AMessageThatIsTooLargeEndsTheStream) {
  start({.limits = {.request_bytes_max = 1000, .request_overhead_bytes = 0}});
  Client client(url_);
  client.post("/v3/lease/keepalive", "{\"ID\":1}{\"x\":\"" + std::string(100'000, 'x') + "\"}");
  const auto response = client.response();
  ASSERT_EQ(response->chunks.size(), 2u);
  EXPECT_TRUE(
      response->chunks[1].starts_with("{\"error\":{\"code\":8,\"message\":\"grpc: received message larger than max"));
}

TEST_F(StreamTest, BrokenChunksHalfCloseAndTheConnectionEndsWithTheStream) {
  start();
  Client client(url_);
  client.send("POST /v3/lease/keepalive HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
              chunk("{\"ID\":1}") + "zz\r\n");
  EXPECT_EQ(client.response()->body, "{\"result\":{\"ID\":\"1\"}}\n");
  EXPECT_TRUE(client.closed());
}

TEST_F(StreamTest, OneRequestManyResponses) {
  start();
  Client client(url_);
  client.post("/v3/maintenance/snapshot", "{\"ID\":5} trailing");
  EXPECT_EQ(client.response()->body, "{\"result\":{\"ID\":\"5\"}}\n");
  client.post("/v3/maintenance/snapshot", "{bad");
  const auto response = client.response();
  EXPECT_EQ(response->status, 400);
  EXPECT_EQ(response->body,
            R"({"code":3,"message":"invalid character 'b' looking for beginning of object key string"})");
}

TEST_F(StreamTest, PipelinedBehindAStream) {
  start();
  Client client(url_);
  client.post("/v3/lease/keepalive", "{\"ID\":1}");
  client.get("/health");
  client.post("/v3/lease/keepalive", "{\"ID\":2}");
  EXPECT_EQ(client.response()->body, "{\"result\":{\"ID\":\"1\"}}\n");
  EXPECT_EQ(client.response()->status, 200);
  EXPECT_EQ(client.response()->body, "{\"result\":{\"ID\":\"2\"}}\n");
}

TEST_F(StreamTest, TooManyStreams) {
  start({.limits = {.streams_max = 1}});
  Client one(url_);
  one.post("/v3/watch", kCreate);
  EXPECT_TRUE(one.head());
  Client two(url_);
  two.post("/v3/watch", kCreate);
  const auto refused = two.response();
  EXPECT_EQ(refused->status, 429);
  EXPECT_EQ(refused->body, "{\"error\":{\"code\":8,\"message\":\"etcdserver: too many requests\"}}\n");
}

TEST_F(StreamTest, ManyWatchersOnSeveralThreads) {
  start({.io_threads = 2});
  constexpr int kWatchers = 200;
  constexpr int kEvents = 50;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kWatchers; ++i) {
    clients.push_back(std::make_unique<Client>(url_));
    clients.back()->post("/v3/watch", kCreate);
  }
  for (const auto& client : clients) {
    EXPECT_TRUE(client->head());
    EXPECT_TRUE(client->chunk());
  }
  std::thread publisher([this] {
    for (int i = 0; i < kEvents; ++i) service_.publish(event());
  });
  for (const auto& client : clients) {
    for (int i = 0; i < kEvents; ++i) ASSERT_TRUE(client->chunk());
  }
  publisher.join();
}

TEST_F(StreamTest, StopEndsOpenStreamsAtOnce) {
  start();
  Client talking(url_);
  talking.post("/v3/watch", kCreate);
  EXPECT_TRUE(talking.head());
  EXPECT_TRUE(talking.chunk());
  Client silent(url_);
  silent.post("/v3/watch", "");
  Client open_body(url_);
  open_body.send(std::string(kOpenBody) + chunk(kCreate));
  EXPECT_TRUE(open_body.head());
  while (server_->counters().streams_open < 3) std::this_thread::yield();
  const auto before = std::chrono::steady_clock::now();
  std::thread stopper([this] { server_->stop(10s); });
  EXPECT_EQ(talking.chunk(), "{\"error\":{\"code\":14,\"message\":\"etcdserver: server stopped\"}}\n");
  EXPECT_EQ(talking.chunk(), "");
  EXPECT_TRUE(talking.closed());
  EXPECT_EQ(silent.response()->status, 503);
  EXPECT_TRUE(open_body.closed());
  open_body.close();
  stopper.join();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 1s);
  service_.publish(event());
  service_.finish_watches({});
}

}  // namespace
}  // namespace http
