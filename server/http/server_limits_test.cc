// What a server does about clients that ask too much, too slowly, or nonsense.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "http/test_server.h"

namespace http {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::Response;
using ServerLimitsTest = test::ServerTest;

// --- Limits

TEST_F(ServerLimitsTest, TooLargeMessages) {
  start({.limits = {.request_bytes_max = 1000, .request_overhead_bytes = 24}});
  const auto put = [](size_t bytes) {  // a message of `bytes` bytes
    const size_t value = bytes - 3 - (bytes > 131 ? 3 : 2);
    std::string text = R"({"key":"YQ==","value":")" + std::string(value / 3 * 4, 'A');
    if (value % 3 == 1) text += "AA";
    if (value % 3 == 2) text += "AAA";
    return text + "\"}";
  };
  EXPECT_EQ(post("/v3/kv/put", put(1024)).status, 200);
  const Response over = post("/v3/kv/put", put(1025));
  EXPECT_EQ(over.status, 429);
  EXPECT_EQ(over.body, R"x({"code":8,"message":"grpc: received message larger than max (1025 vs. 1024)"})x");
  const std::string huge(1'000'000, ' ');
  const Response unread = post("/v3/kv/put", huge);
  EXPECT_EQ(unread.status, 429);
  EXPECT_EQ(unread.header("Connection"), "close");
  Client client(url_);
  client.send("POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nF4240\r\n" + huge +
              "\r\n0\r\n\r\n");
  EXPECT_EQ(client.response()->status, 429);
  expect_healthy();
}

TEST_F(ServerLimitsTest, AHugeBodyThatNobodyWantsIsNotRead) {
  start();
  Client client(url_);
  client.send("PUT /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000000\r\n\r\n");
  const auto response = client.response();
  EXPECT_EQ(response->status, 501);
  EXPECT_EQ(response->header("Connection"), "close");
  EXPECT_TRUE(client.closed());
  // A small one is, and the connection goes on.
  Client polite(url_);
  polite.send("PUT /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x'));
  EXPECT_EQ(polite.response()->status, 501);
  polite.post("/v3/kv/range", "{}");
  EXPECT_EQ(polite.response()->status, 200);
}

TEST_F(ServerLimitsTest, ARefusalDoesNotWaitForTheBody) {
  start();
  Client client(url_);
  client.send("POST /v3/nope HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  EXPECT_EQ(client.response()->status, 404);
  client.send("3\r\nyou\r\n0\r\n\r\n");
  client.post("/v3/kv/range", "{}");
  EXPECT_EQ(client.response()->status, 200);
  client.send("POST /v3/nope HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(client.response()->status, 404);
  client.send("nonsense\r\n");
  EXPECT_TRUE(client.closed());
}

TEST_F(ServerLimitsTest, HugeHeads) {
  start();
  Client client(url_);
  client.send("GET /health HTTP/1.1\r\nHost: x\r\nX: " + std::string(200'000, 'a'));
  EXPECT_EQ(client.response()->status, 431);
  EXPECT_TRUE(client.closed());
  Client lines(url_);
  lines.send("GET /health HTTP/1.1\r\nHost: x\r\n");
  for (int i = 0; i < 10'000; ++i) lines.send("X: abc\r\n");
  EXPECT_EQ(lines.response()->status, 431);
  Client large(url_);
  large.send("GET /health HTTP/1.1\r\nHost: x\r\nX: " + std::string(30'000, 'a') + "\r\n\r\n");
  EXPECT_EQ(large.response()->status, 200);
}

TEST_F(ServerLimitsTest, SlowClientsAreCut) {
  start({.limits = {.head_timeout = 40ms, .idle_timeout = 40ms, .body_progress_period = 40ms}});
  Client silent(url_);
  Client half(url_);
  half.send("GET /health HT");
  Client body(url_);
  body.send("POST /v3/kv/range HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{\"key");
  Client idle(url_);
  idle.get("/health");
  EXPECT_EQ(idle.response()->status, 200);
  Client blocked(url_);
  blocked.post("/v3/kv/txn", "{}");
  Client watcher(url_);
  watcher.post("/v3/watch", R"({"create_request":{}})");
  EXPECT_TRUE(watcher.head());
  EXPECT_TRUE(silent.closed());
  EXPECT_EQ(half.response()->status, 408);
  EXPECT_TRUE(half.closed());
  EXPECT_EQ(body.response()->status, 408);
  EXPECT_TRUE(body.closed());
  EXPECT_TRUE(idle.closed());
  // Who waits for the server is not slow.
  EXPECT_TRUE(watcher.chunk());
  EXPECT_TRUE(watcher.quiet(100ms));
  service_.take_txn().reply.send(std::make_unique<etcdserverpb::TxnResponse>());
  EXPECT_EQ(blocked.response()->status, 200);
}

TEST_F(ServerLimitsTest, AReaderThatDoesNotReadIsCut) {
  start({.limits = {.write_timeout = 50ms}});
  Client client(url_);
  for (int i = 0; i < 40; ++i) client.post("/v3/kv/range", R"({"key":"YWJjZGVmZ2g=","limit":50000})");
  while (server_->counters().requests == 0) std::this_thread::yield();
  while (server_->counters().connections_open > 0) std::this_thread::yield();
  EXPECT_LT(server_->counters().requests, 40u);
}

TEST_F(ServerLimitsTest, TooManyConnections) {
  start({.limits = {.connections_max = 2}});
  Client one(url_);
  Client two(url_);
  one.get("/health");
  two.get("/health");
  EXPECT_TRUE(one.response());
  EXPECT_TRUE(two.response());
  Client three(url_);
  EXPECT_TRUE(three.closed());
  one.close();
  while (server_->counters().connections_open > 1) std::this_thread::yield();
  Client four(url_);
  four.get("/health");
  EXPECT_TRUE(four.response());
  EXPECT_EQ(server_->counters().connections_refused, 1u);
}

// They wait until there are descriptors again, and are told of once. (The time is for the server to try in.)
TEST_F(ServerLimitsTest, AcceptingWithoutDescriptorsIsToldOnce) {
  start();
  testing::internal::CaptureStderr();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest = ::dup(0);
  ::close(lowest);
  const rlimit limit{.rlim_cur = static_cast<rlim_t>(lowest) + 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  Client client(url_);  // has the last one
  client.get("/health");
  EXPECT_TRUE(client.quiet(5 * kAcceptPause));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(client.response());
  const std::string told = testing::internal::GetCapturedStderr();
  const std::string line = "cannot accept a client's connection";
  const size_t first = told.find(line);
  ASSERT_NE(first, std::string::npos) << told;
  EXPECT_EQ(told.find(line, first + 1), std::string::npos) << told;
}

// --- Memory for requests of all connections together

std::string put_of(size_t body_bytes) {
  const std::string_view begin = R"({"key":"YQ==","value":")";
  return std::string(begin) + std::string(body_bytes - begin.size() - 2, 'A') + "\"}";
}

class CrowdedTest : public test::ServerTest {
 protected:
  void SetUp() override { start({.limits = {.requests_bytes_max = 100'000}}); }
  void wait_for_bytes(uint64_t at_least, uint64_t at_most) {
    for (;;) {
      const uint64_t bytes = server_->counters().requests_bytes;
      if (bytes >= at_least && bytes <= at_most) return;
      std::this_thread::yield();
    }
  }
  void expect_refused(const Response& response) {
    EXPECT_EQ(response.status, 429);
    EXPECT_EQ(response.body, R"({"code":8,"message":"etcdserver: too many requests"})");
  }
};

TEST_F(CrowdedTest, UnfinishedBodiesAreLimitedTogether) {
  Client half(url_);
  half.send("POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" + put_of(90'000));
  wait_for_bytes(80'000, 90'000);
  expect_refused(post("/v3/kv/put", put_of(50'000)));
  Client pieces(url_);  // not there as a whole
  pieces.send("POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n" + put_of(30'000));
  expect_refused(pieces.response().value_or(Response()));
  Client chunks(url_);
  chunks.send("POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7530\r\n" + put_of(30'000));
  expect_refused(chunks.response().value_or(Response()));
  EXPECT_EQ(server_->counters().requests_refused, 3u);
  EXPECT_EQ(post("/v3/kv/put", put_of(4'000)).status, 200) << "small ones get through";
  expect_healthy();
  half.close();
  chunks.close();
  pieces.close();
  wait_for_bytes(0, 0);
  EXPECT_EQ(post("/v3/kv/put", put_of(50'000)).status, 200);
  wait_for_bytes(0, 0);
}

// What a handler has of a request counts until it is answered.
TEST_F(CrowdedTest, CallsInFlightCount) {
  Client busy(url_);
  busy.post("/v3/kv/txn", R"({"success":[{"request_put":)" + put_of(90'000) + "}]}");
  UnaryCall call = service_.take_txn();
  wait_for_bytes(80'000, 90'100);
  expect_refused(post("/v3/kv/put", put_of(50'000)));
  call.reply.send(std::make_unique<etcdserverpb::TxnResponse>());
  EXPECT_EQ(busy.response()->status, 200);
  EXPECT_EQ(post("/v3/kv/put", put_of(50'000)).status, 200);
  wait_for_bytes(0, 0);
}

TEST_F(CrowdedTest, MessagesOfStreamsCount) {
  Client watcher(url_);
  watcher.send("POST /v3/watch HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" +
               put_of(110'000).substr(0, 105'000));
  const auto refused = watcher.head();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 429);
  EXPECT_EQ(watcher.chunk(), "{\"error\":{\"code\":8,\"message\":\"etcdserver: too many requests\"}}\n");
  watcher.close();
  wait_for_bytes(0, 0);
  expect_healthy();
}

TEST_F(CrowdedTest, HeadsCount) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<Client>(url_));
    clients[i]->send("GET /health HTTP/1.1\r\nHost: x\r\nX: " + std::string(45'000, 'a'));
    if (i < 2) wait_for_bytes(40'000 * (i + 1), 45'100 * (i + 1));
  }
  EXPECT_EQ(clients[2]->response().value_or(Response()).status, 503);
  clients.clear();
  wait_for_bytes(0, 0);
}

// --- Nonsense

TEST_F(ServerLimitsTest, Garbage) {
  start();
  const std::string_view cases[] = {
      "GARBAGE\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
      "GET / HTTP/2.0\r\n\r\n",
      "GET /health HTTP/1.1\r\n\r\n",  // no Host
      "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
      "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
      "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 14, 14\r\n\r\n{\"key\":\"YQ==\"}",
      "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 14,\r\n\r\n{\"key\":\"YQ==\"}",
      "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: +14\r\n\r\n{\"key\":\"YQ==\"}",
      "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: -0\r\n\r\n",
      "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775808\r\n\r\n",
      "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n00000000000000001\r\na\r\n0\r\n\r\n",
      "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
      "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
      "GET /health HTTP/1.1\r\nHo st: x\r\n\r\n",
      "GET /health HTTP/1.1\r\nHost: x\r\nX: a\nY: b\r\n\r\n",
  };
  for (const std::string_view raw : cases) {
    Client client(url_);
    client.send(raw);
    const auto response = client.response();
    ASSERT_TRUE(response) << raw;
    EXPECT_EQ(response->status, 400) << raw;
    EXPECT_TRUE(client.closed()) << raw;
  }
  EXPECT_EQ(ask("POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n").status, 501);
  expect_healthy();
}

TEST_F(ServerLimitsTest, ClientsThatVanishAnywhere) {
  start();
  const std::string raw = "POST /v3/kv/range HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{\"key\":\"YQ==\"}";
  for (size_t size = 0; size <= raw.size(); ++size) {
    Client client(url_);
    client.send(std::string_view(raw).substr(0, size));
  }
  Client during_call(url_);
  during_call.post("/v3/kv/txn", "{}");
  UnaryCall call = service_.take_txn();
  during_call.close();
  call.reply.send(std::make_unique<etcdserverpb::TxnResponse>());
  while (server_->counters().connections_accepted < raw.size() + 2) std::this_thread::yield();
  while (server_->counters().connections_open > 0) std::this_thread::yield();
  expect_healthy();
}

}  // namespace
}  // namespace http
