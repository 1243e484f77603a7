// What a server does about HTTP/2 clients that ask too much, read nothing, or send nonsense.
#include <gtest/gtest.h>

#include <functional>

#include "http/test_grpc_client.h"
#include "http/test_server.h"

namespace http {
namespace {

using namespace etcdserverpb;
using namespace std::chrono_literals;
using test::frame;
using test::framed;
using test::GrpcClient;

constexpr const char* kRange = "/etcdserverpb.KV/Range";
constexpr const char* kWatch = "/etcdserverpb.Watch/Watch";
constexpr const char* kKeepAlive = "/etcdserverpb.Lease/LeaseKeepAlive";

// HPACK: a literal without indexing, both in plain octets of less than 127 bytes.
std::string field(std::string_view name, std::string_view value) {
  std::string out(1, '\0');
  out += static_cast<char>(name.size());
  out += name;
  out += static_cast<char>(value.size());
  return out.append(value);
}
std::string head_of_call() {
  return field(":method", "POST") + field(":scheme", "http") + field(":path", kRange) +
         field("content-type", "application/grpc") + field("te", "trailers");
}

class Http2LimitsTest : public test::ServerTest {
 protected:
  static RangeRequest range(std::string key, int64_t limit = 0) {
    RangeRequest request;
    request.set_key(std::move(key));
    request.set_limit(limit);
    return request;
  }
  static std::string create(const std::string& key) {
    WatchRequest request;
    request.mutable_create_request()->set_key(key);
    return framed(request);
  }
  // The server closes the connection of whoever sends this after the opening, and goes on with others.
  void expect_closed(std::string_view bytes) {
    test::Client client(url_);
    client.send(test::kPreface);
    client.send(frame(NGHTTP2_SETTINGS, 0, 0, ""));
    client.send(bytes);
    EXPECT_TRUE(client.closed());
    expect_grpc_healthy();
  }
  void expect_grpc_healthy() {
    GrpcClient client(url_);
    EXPECT_EQ(client.unary(kRange, range("a")).status(), "0");
  }
  static std::string repeated(int times, const std::function<std::string(int)>& one) {
    std::string all;
    for (int i = 0; i < times; ++i) all += one(i);
    return all;
  }
};

// --- Nonsense

TEST_F(Http2LimitsTest, MalformedFrames) {
  start();
  expect_closed("this is not a frame at all, however long it goes on");
  expect_closed(frame(NGHTTP2_DATA, 0, 0, "data on the connection itself"));
  expect_closed(frame(NGHTTP2_DATA, 0, 1, "data of a call that was not begun"));
  expect_closed(frame(NGHTTP2_HEADERS, 4, 2, head_of_call()));                  // an even stream
  expect_closed(frame(NGHTTP2_HEADERS, 4, 1, "\xff\xff\xff\xff\xff\xff\xff"));  // no HPACK
  expect_closed(frame(NGHTTP2_SETTINGS, 0, 0, "12345"));                        // no multiple of six
  expect_closed(frame(NGHTTP2_SETTINGS, 0, 3, ""));
  expect_closed(frame(NGHTTP2_PING, 0, 0, "1234"));
  expect_closed(frame(NGHTTP2_WINDOW_UPDATE, 0, 0, std::string(4, '\0')));
  expect_closed(frame(NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff"));
  expect_closed(frame(NGHTTP2_PUSH_PROMISE, 4, 1, std::string("\0\0\0\2", 4)));
  expect_closed(frame(NGHTTP2_CONTINUATION, 4, 1, head_of_call()));
  expect_closed(std::string("\xff\xff\xff\0\0\0\0\0\1", 9));  // of 16 MiB
}

TEST_F(Http2LimitsTest, ClientsThatStopInTheMiddle) {
  start({.limits = {.head_timeout = 50ms, .idle_timeout = 10s}});
  test::Client client(url_);
  client.send(test::kPreface.substr(0, 20));
  EXPECT_TRUE(client.closed());
  const std::string opening = std::string(test::kPreface) + frame(NGHTTP2_SETTINGS, 0, 0, "");
  for (size_t size = 1; size < opening.size(); size += 5) {
    test::Client(url_).send(opening.substr(0, size));
  }
  expect_grpc_healthy();
}

// --- Floods

TEST_F(Http2LimitsTest, RapidReset) {
  start();
  expect_closed(repeated(20'000, [](int i) {
    const int32_t stream = 2 * i + 1;
    return frame(NGHTTP2_HEADERS, 4, stream, head_of_call()) +
           frame(NGHTTP2_RST_STREAM, 0, stream, std::string("\0\0\0\x08", 4));
  }));
}

TEST_F(Http2LimitsTest, FloodsOfControlFrames) {
  start();
  // What must be acknowledged, to somebody who reads none of it.
  const std::string pings = repeated(50'000, [](int) { return frame(NGHTTP2_PING, 0, 0, "12345678"); });
  expect_closed(repeated(20, [&pings](int) { return pings; }));
  const std::string settings = repeated(50'000, [](int) { return frame(NGHTTP2_SETTINGS, 0, 0, ""); });
  expect_closed(repeated(20, [&settings](int) { return settings; }));
}

TEST_F(Http2LimitsTest, FloodsOfContinuations) {
  start();
  expect_closed(frame(NGHTTP2_HEADERS, 0, 1, head_of_call()) +
                repeated(100'000, [](int) { return frame(NGHTTP2_CONTINUATION, 0, 1, field("x", "y")); }));
  expect_closed(frame(NGHTTP2_HEADERS, 0, 1, head_of_call()) +
                repeated(100'000, [](int) { return frame(NGHTTP2_CONTINUATION, 0, 1, ""); }));
}

TEST_F(Http2LimitsTest, ManyPingsFromAClientThatReads) {
  start();
  GrpcClient client(url_);
  for (int i = 0; i < 100; ++i) {
    client.raw(repeated(100, [](int) { return frame(NGHTTP2_PING, 0, 0, "12345678"); }));
    client.pass(1ms);
  }
  EXPECT_EQ(client.unary(kRange, range("a")).status(), "0");
}

// A few bytes that stand for much, by the compression's table.
TEST_F(Http2LimitsTest, HeaderBombs) {
  start();
  test::Client client(url_);
  std::string head = head_of_call();
  head += '\x40';  // into the table
  head += '\x01';
  head += 'x';
  head += "\x7f\xa1\x1e";  // 127 + 33 + 30 * 128: 4,000 bytes
  head += std::string(4000, 'y');
  head += std::string(10'000, '\xbe');  // and again, and again
  client.send(std::string(test::kPreface) + frame(NGHTTP2_SETTINGS, 0, 0, "") + frame(NGHTTP2_HEADERS, 5, 1, head));
  // The call is reset, or the connection closed: no more is said of it.
  (void)client.some(1s);
  expect_grpc_healthy();
}

TEST_F(Http2LimitsTest, MoreCallsThanOneConnectionMayHave) {
  start();
  GrpcClient client(url_);
  std::vector<int32_t> calls;
  for (uint32_t i = 0; i < kHttp2CallsMax + 10; ++i) {
    calls.push_back(client.begin(kWatch, create("a"), /*end=*/false));
    if (i % 256 == 0) client.pass(0ms);
  }
  // The client holds back what is too much, as it was told to.
  const auto begun = [this] { return static_cast<uint32_t>(service_.journal.count("create a")); };
  ASSERT_TRUE(client.wait_until([&] { return begun() == kHttp2CallsMax; }));
  client.pass(20ms);
  EXPECT_EQ(begun(), kHttp2CallsMax);
  EXPECT_EQ(server_->counters().streams_open, kHttp2CallsMax);
  client.reset(calls[0]);
  ASSERT_TRUE(client.wait_until([&] { return begun() == kHttp2CallsMax + 1; }));
}

TEST_F(Http2LimitsTest, MoreStreamsThanTheProcessMayHave) {
  start({.limits = {.streams_max = 3}});
  GrpcClient client(url_);
  for (int i = 0; i < 3; ++i) client.begin(kWatch, create("a"), false);
  ASSERT_TRUE(service_.journal.wait_for("create a", 3));
  const auto& over = client.finish(client.begin(kWatch, create("b"), false));
  EXPECT_EQ(over.status(), "8");
  EXPECT_EQ(over.message(), "etcdserver: too many requests");
}

// --- Clients that do not read

// One that takes no events costs a bounded number of them, and others on the same connection get theirs.
TEST_F(Http2LimitsTest, AStreamThatIsNotRead) {
  start();
  GrpcClient client(url_, /*reads=*/false);  // 64 KiB for all its calls
  const int32_t call = client.begin(kWatch, create("a"), false);
  ASSERT_TRUE(client.has_messages(call, 1));
  WatchResponse event;
  event.add_events()->mutable_kv()->set_value(std::string(10'000, 'x'));
  for (int i = 0; i < 1000; ++i) service_.publish(event);
  client.pass(100ms);
  EXPECT_LE(client.answer(call).body.size(), 65'535U);
  EXPECT_LE(server_->counters().bytes_sent, 70'000U);
  expect_healthy();
  client.reset(call);
  ASSERT_TRUE(service_.journal.wait_for("cancel"));
}

// Answers that nobody takes hold up the calls behind them, and end the connection in time.
TEST_F(Http2LimitsTest, AnswersThatAreNotRead) {
  start({.limits = {.write_timeout = 200ms}});
  GrpcClient client(url_, /*reads=*/false);
  for (int i = 0; i < 100; ++i) client.begin(kRange, framed(range(std::string(100'000, 'x'))));
  EXPECT_TRUE(client.closed());
  EXPECT_LT(server_->counters().bytes_sent, 1'000'000U);
  expect_grpc_healthy();
}

// A handler that takes no more keeps the client's bytes with the client.
TEST_F(Http2LimitsTest, RequestsThatAreNotTaken) {
  start();
  GrpcClient client(url_, /*reads=*/false);
  LeaseKeepAliveRequest request;
  request.set_id(123'456'789);
  std::string many;
  while (many.size() < 4'000'000) many += framed(request);
  const int32_t call = client.begin(kKeepAlive, many, false);
  client.pass(100ms);
  EXPECT_GT(client.unsent(call), many.size() / 2);
  expect_grpc_healthy();
}

TEST_F(Http2LimitsTest, RequestsOfAllConnectionsTogether) {
  start({.limits = {.requests_bytes_max = 4 * 1024 * 1024}});
  std::vector<std::unique_ptr<GrpcClient>> clients;
  std::vector<int32_t> calls;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<GrpcClient>(url_));
    // All of it but the last byte.
    std::string body = framed(range(std::string(500'000, 'x')));
    body.pop_back();
    calls.push_back(clients.back()->begin(kRange, body, false));
  }
  int refused = 0;
  for (size_t i = 0; i < clients.size(); ++i) {
    clients[i]->pass(20ms);
    refused += clients[i]->answer(calls[i]).status() == "8" ? 1 : 0;
  }
  EXPECT_GT(refused, 5);
  EXPECT_GT(server_->counters().requests_refused, 5U);
  clients.clear();
  GrpcClient client(url_);
  ASSERT_TRUE(client.wait_until([this] { return server_->counters().requests_bytes == 0; }));
  EXPECT_EQ(client.unary(kRange, range(std::string(500'000, 'x'))).status(), "0");
}

}  // namespace
}  // namespace http
