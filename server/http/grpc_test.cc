// gRPC calls over real loopback sockets.
#include <gtest/gtest.h>
#include <zlib.h>

#include "http/grpc_wire.h"
#include "http/test_grpc_client.h"
#include "http/test_server.h"

namespace http {
namespace {

using namespace etcdserverpb;
using namespace std::chrono_literals;
using test::framed;
using test::GrpcAnswer;
using test::GrpcClient;

constexpr const char* kPut = "/etcdserverpb.KV/Put";
constexpr const char* kRange = "/etcdserverpb.KV/Range";
constexpr const char* kWatch = "/etcdserverpb.Watch/Watch";
constexpr const char* kKeepAlive = "/etcdserverpb.Lease/LeaseKeepAlive";

class GrpcTest : public test::ServerTest {
 protected:
  static PutRequest put(std::string value = "v") {
    PutRequest request;
    request.set_key("k");
    request.set_value(std::move(value));
    return request;
  }
  static RangeRequest range(std::string key, int64_t limit = 0) {
    RangeRequest request;
    request.set_key(std::move(key));
    request.set_limit(limit);
    return request;
  }
  static LeaseKeepAliveRequest keep_alive(int64_t id) {
    LeaseKeepAliveRequest request;
    request.set_id(id);
    return request;
  }
  static WatchRequest create(const std::string& key) {
    WatchRequest request;
    request.mutable_create_request()->set_key(key);
    return request;
  }
  template <class Response>
  static Response only(const GrpcAnswer& answer) {
    Response response;
    EXPECT_EQ(answer.status(), "0") << answer.message();
    const auto messages = answer.messages();
    EXPECT_EQ(messages.size(), 1U);
    EXPECT_TRUE(!messages.empty() && response.ParseFromString(messages[0]));
    return response;
  }
  static void expect_error(const GrpcAnswer& answer, Code code, const std::string& message) {
    EXPECT_TRUE(answer.closed);
    EXPECT_EQ(answer.header(":status"), "200");
    EXPECT_EQ(answer.status(), std::to_string(static_cast<int>(code)));
    EXPECT_EQ(answer.message(), message);
    EXPECT_EQ(answer.body, "");
  }
};

// --- Unary calls

TEST_F(GrpcTest, ACallIsAnswered) {
  start();
  GrpcClient client(url_);
  const GrpcAnswer answer = client.unary(kPut, put());
  EXPECT_EQ(answer.header(":status"), "200");
  EXPECT_EQ(answer.header("content-type"), "application/grpc");
  EXPECT_EQ(answer.header("grpc-message"), "");
  EXPECT_EQ(only<PutResponse>(answer).header().revision(), 1);
  EXPECT_EQ(only<RangeResponse>(client.unary(kRange, range("abc"))).kvs(0).key(), "abc");
}

TEST_F(GrpcTest, AnEmptyMessageIsOne) {
  start();
  GrpcClient client(url_);
  EXPECT_EQ(only<RangeResponse>(client.unary(kRange, range(""))).kvs_size(), 1);
}

TEST_F(GrpcTest, AnAnswerFromAnotherThread) {
  start();
  GrpcClient client(url_);
  DeleteRangeRequest request;
  request.set_key("abcd");
  EXPECT_EQ(only<DeleteRangeResponse>(client.unary("/etcdserverpb.KV/DeleteRange", request)).deleted(), 4);
}

TEST_F(GrpcTest, BothProtocolsOnOnePort) {
  start();
  GrpcClient client(url_);
  only<PutResponse>(client.unary(kPut, put()));
  expect_healthy();
  only<PutResponse>(client.unary(kPut, put()));
}

TEST_F(GrpcTest, ThePrefaceMayComeByteByByte) {
  start();
  test::Client client(url_);
  const std::string opening = std::string(test::kPreface) + test::frame(NGHTTP2_SETTINGS, 0, 0, "");
  for (const char c : opening) {
    client.send({&c, 1});
    std::this_thread::yield();
  }
  const auto answer = client.text(9);
  ASSERT_TRUE(answer);
  EXPECT_EQ((*answer)[3], NGHTTP2_SETTINGS);
}

TEST_F(GrpcTest, WhatOnlyBeginsLikeThePrefaceIsHttp1) {
  start();
  EXPECT_EQ(ask("PRI * HTTP/1.1\r\nHost: x\r\n\r\n").status, 400);
  test::Client(url_).send("P");
  expect_healthy();
}

TEST_F(GrpcTest, ManyCallsAtOnce) {
  start();
  GrpcClient client(url_);
  std::vector<int32_t> calls;
  for (int i = 0; i < 2'000; ++i) calls.push_back(client.begin(kRange, framed(range(std::to_string(i)))));
  for (int i = 0; i < 2'000; ++i) {
    ASSERT_EQ(only<RangeResponse>(client.finish(calls[static_cast<size_t>(i)])).kvs(0).key(), std::to_string(i));
  }
}

TEST_F(GrpcTest, LargeMessagesBothWays) {
  start();
  GrpcClient client(url_);
  const std::string key(1'000'000, 'x');
  const auto response = only<RangeResponse>(client.unary(kRange, range(key, 5)));
  ASSERT_EQ(response.kvs_size(), 5);
  EXPECT_EQ(response.kvs(4).key(), key);
}

TEST_F(GrpcTest, ErrorsAreTrailersOnly) {
  start();
  GrpcClient client(url_);
  expect_error(client.unary(kPut, PutRequest()), Code::kInvalidArgument, "etcdserver: key is not provided");
  expect_error(client.unary("/etcdserverpb.KV/Compact", CompactionRequest()), Code::kUnavailable,
               "etcdserver: server stopped");
}

TEST_F(GrpcTest, TextsOfErrorsAreEncoded) {
  start();
  GrpcClient client(url_);
  const int32_t call = client.begin("/etcdserverpb.KV/Txn", framed(TxnRequest()));
  service_.take_txn().reply.fail(Code::kAborted, "100 %\n\xc3\xa4");
  expect_error(client.finish(call), Code::kAborted, "100 %25%0A%C3%A4");
}

TEST_F(GrpcTest, MethodsThatAreNotThere) {
  start();
  GrpcClient client(url_);
  expect_error(client.unary("/etcdserverpb.KV/Nothing", PutRequest()), Code::kUnimplemented,
               "unknown method Nothing for service etcdserverpb.KV");
  expect_error(client.unary("/some.Service/Put", PutRequest()), Code::kUnimplemented, "unknown service some.Service");
  expect_error(client.unary("/nonsense", PutRequest()), Code::kUnimplemented, "malformed method name: \"/nonsense\"");
}

TEST_F(GrpcTest, WhatIsNotGrpc) {
  start();
  GrpcClient client(url_);
  EXPECT_EQ(client.unary(kPut, put(), {{":method", "GET"}}).header(":status"), "405");
  EXPECT_EQ(client.unary(kPut, put(), {{"content-type", "application/json"}}).header(":status"), "415");
  EXPECT_EQ(client.unary(kPut, put(), {{"content-type", "application/grpcx"}}).header(":status"), "415");
  EXPECT_EQ(client.unary(kPut, put(), {{"content-type", "application/grpc+proto"}}).status(), "0");
}

TEST_F(GrpcTest, BytesThatAreNoMessage) {
  start();
  GrpcClient client(url_);
  const auto send = [&client](const std::string& body) { return client.finish(client.begin(kPut, body)); };
  expect_error(send(framed("\xff\xff\xff")), Code::kInternal,
               "grpc: error unmarshalling request: not a message of this method");
  expect_error(send(std::string("\x07\0\0\0\0", 5)), Code::kInternal, "grpc: received unexpected payload format 7");
  expect_error(send(""), Code::kInternal, "the request has no whole message");
  expect_error(send(framed(put()).substr(0, 6)), Code::kInternal, "the request has no whole message");
  expect_error(send(framed(put()) + framed(put())), Code::kInternal, "a unary call has one request message");
  only<PutResponse>(client.unary(kPut, put()));
}

TEST_F(GrpcTest, MessagesOverTheLimit) {
  start({.limits = {.request_bytes_max = 1000, .request_overhead_bytes = 24}});
  GrpcClient client(url_);
  const std::string fits(1024 - 3 - 3, 'x');
  only<PutResponse>(client.unary(kPut, put(fits)));
  expect_error(client.unary(kPut, put(fits + "x")), Code::kResourceExhausted,
               "grpc: received message larger than max (1025 vs. 1024)");
  // Said at once, without the message.
  expect_error(client.finish(client.begin(kPut, std::string("\0\x7f\0\0\0", 5), /*end=*/false)),
               Code::kResourceExhausted, "grpc: received message larger than max (2130706432 vs. 1024)");
  only<PutResponse>(client.unary(kPut, put()));
}

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST_F(GrpcTest, CompressedMessages) {
  start();
  GrpcClient client(url_);
  const auto send = [&client](std::string_view bytes, const std::string& encoding) {
    return client.finish(client.begin(kRange, framed(bytes, /*compressed=*/true), true, {{"grpc-encoding", encoding}}));
  };
  const std::string bytes = range("abc").SerializeAsString();
  EXPECT_EQ(only<RangeResponse>(send(gzip(bytes), "gzip")).kvs(0).key(), "abc");
  expect_error(send(bytes, "gzip"), Code::kInternal, "grpc: failed to decompress the received message");
  expect_error(send(bytes, "identity"), Code::kInternal, "grpc: compressed flag set with identity or empty encoding");
  expect_error(send(bytes, "snappy"), Code::kUnimplemented,
               "grpc: Decompressor is not installed for grpc-encoding \"snappy\"");
  const size_t limit = Limits().message_bytes_max();
  expect_error(send(gzip(std::string(100'000'000, 'x')), "gzip"), Code::kResourceExhausted,
               "grpc: received message after decompression larger than max " + std::to_string(limit));
}

TEST_F(GrpcTest, TheTokenIsHandedOn) {
  start();
  GrpcClient client(url_);
  EXPECT_EQ(only<RangeResponse>(client.unary(kRange, range("a"), {{"token", "t.1"}})).kvs(0).value(), "t.1");
  EXPECT_EQ(only<RangeResponse>(client.unary(kRange, range("a"), {{"authorization", "Bearer t.2"}})).kvs(0).value(),
            "t.2");
}

TEST_F(GrpcTest, Deadlines) {
  start();
  GrpcClient client(url_);
  const int32_t call = client.begin("/etcdserverpb.KV/Txn", framed(TxnRequest()), true, {{"grpc-timeout", "20m"}});
  UnaryCall waiting = service_.take_txn();
  EXPECT_TRUE(waiting.info.deadline);
  expect_error(client.finish(call), Code::kDeadlineExceeded, "context deadline exceeded");
  EXPECT_FALSE(waiting.reply.wanted());
  waiting.reply.send_now(TxnResponse());
  expect_error(client.unary(kPut, put(), {{"grpc-timeout", "0n"}}), Code::kDeadlineExceeded,
               "context deadline exceeded");
  expect_error(client.unary(kPut, put(), {{"grpc-timeout", "7x"}}), Code::kInternal, "malformed grpc-timeout: 7x");
}

TEST_F(GrpcTest, ACallThatIsCancelledIsNotWanted) {
  start();
  GrpcClient client(url_);
  const int32_t call = client.begin("/etcdserverpb.KV/Txn", framed(TxnRequest()));
  UnaryCall waiting = service_.take_txn();
  EXPECT_TRUE(waiting.reply.wanted());
  client.reset(call);
  EXPECT_TRUE(client.wait_until([&] { return !waiting.reply.wanted(); }));
  waiting.reply.send_now(TxnResponse());
  only<PutResponse>(client.unary(kPut, put()));
}

// One answer in parts is one message.
TEST_F(GrpcTest, AnAnswerMadeInPieces) {
  start();
  GrpcClient client(url_);
  const int32_t call = client.begin("/etcdserverpb.KV/Txn", framed(TxnRequest()));
  UnaryCall waiting = service_.take_txn();
  EXPECT_EQ(waiting.reply.codec(), Codec::kGrpc);
  PartsEncoder encoder(waiting.reply.codec());
  EXPECT_FALSE(encoder.divisible());
  for (int i = 0; i < 3; ++i) {
    RangeResponse part;
    if (i == 0) part.mutable_header()->set_revision(7);
    for (int j = 0; j < 1000; ++j) part.add_kvs()->set_key(std::to_string(1000 * i + j));
    if (i == 2) part.set_count(3000);
    encoder.add(part);
  }
  encoder.close();
  auto encoded = std::make_shared<Encoded>(Encoded{Codec::kGrpc, encoder.take()});
  waiting.reply.send_part(std::move(encoded), true);
  const auto whole = only<RangeResponse>(client.finish(call));
  EXPECT_EQ(whole.header().revision(), 7);
  EXPECT_EQ(whole.count(), 3000);
  ASSERT_EQ(whole.kvs_size(), 3000);
  EXPECT_EQ(whole.kvs(2999).key(), "2999");
}

// --- Streams

TEST_F(GrpcTest, AStreamEchoes) {
  start();
  GrpcClient client(url_);
  const int32_t call = client.begin(kKeepAlive, framed(keep_alive(1)), /*end=*/false);
  ASSERT_TRUE(client.has_messages(call, 1));
  std::string many;
  for (int i = 2; i <= 100; ++i) many += framed(keep_alive(i));
  client.send(call, many.substr(0, 50));
  client.send(call, many.substr(50));
  ASSERT_TRUE(client.has_messages(call, 100));
  EXPECT_FALSE(client.answer(call).closed);
  client.send(call, "", /*end=*/true);
  const GrpcAnswer answer = client.finish(call);
  EXPECT_EQ(answer.status(), "0");
  const auto messages = answer.messages();
  ASSERT_EQ(messages.size(), 100U);
  for (int i = 1; i <= 100; ++i) {
    LeaseKeepAliveResponse echo;
    ASSERT_TRUE(echo.ParseFromString(messages[static_cast<size_t>(i - 1)]));
    EXPECT_EQ(echo.id(), i);
  }
}

TEST_F(GrpcTest, AWatchHearsWhatOthersHear) {
  start();
  GrpcClient client(url_);
  std::vector<int32_t> calls;
  for (int i = 0; i < 50; ++i) calls.push_back(client.begin(kWatch, framed(create("a")), /*end=*/false));
  test::Client json(url_);
  json.post("/v3/watch", R"({"create_request":{"key":"YQ=="}})");
  for (const int32_t call : calls) ASSERT_TRUE(client.has_messages(call, 1));  // told that it is made
  ASSERT_TRUE(service_.journal.wait_for("create a", 51));
  WatchResponse event;
  event.add_events()->mutable_kv()->set_value(std::string(20'000, 'x'));
  service_.publish(event);
  for (const int32_t call : calls) {
    ASSERT_TRUE(client.has_messages(call, 2));
    EXPECT_TRUE(client.answer(call).messages()[1] == event.SerializeAsString());
  }
  service_.finish_watches({});
  for (const int32_t call : calls) EXPECT_EQ(client.finish(call).status(), "0");
}

TEST_F(GrpcTest, AStreamThatIsRefused) {
  start();
  GrpcClient client(url_);
  expect_error(client.finish(client.begin(kWatch, framed(create("a")), false, {{"token", "refuse"}})),
               Code::kPermissionDenied, "etcdserver: permission denied");
}

TEST_F(GrpcTest, AStreamThatEndsWithAnError) {
  start();
  GrpcClient client(url_);
  const int32_t call = client.begin(kWatch, framed(create("a")), false);
  ASSERT_TRUE(client.has_messages(call, 1));
  service_.finish_watches(fail(Code::kUnavailable, "etcdserver: no leader"));
  const GrpcAnswer answer = client.finish(call);
  EXPECT_EQ(answer.status(), "14");
  EXPECT_EQ(answer.message(), "etcdserver: no leader");
  EXPECT_EQ(answer.messages().size(), 1U);
}

TEST_F(GrpcTest, HandlersHearOfTheEnd) {
  start();
  GrpcClient client(url_);
  const int32_t half = client.begin(kWatch, framed(create("a")), /*end=*/true);
  ASSERT_TRUE(service_.journal.wait_for("half-close"));
  EXPECT_FALSE(client.answer(half).closed);
  const int32_t call = client.begin(kWatch, framed(create("b")), false);
  ASSERT_TRUE(service_.journal.wait_for("create b"));
  client.reset(call);
  ASSERT_TRUE(service_.journal.wait_for("cancel"));
  {
    GrpcClient gone(url_);
    gone.begin(kWatch, framed(create("c")), false);
    ASSERT_TRUE(service_.journal.wait_for("create c"));
  }
  ASSERT_TRUE(service_.journal.wait_for("cancel", 2));
  const int32_t late = client.begin(kWatch, framed(create("d")), false, {{"grpc-timeout", "20m"}});
  EXPECT_EQ(client.finish(late).status(), "4");
  ASSERT_TRUE(service_.journal.wait_for("cancel", 3));
  EXPECT_EQ(server_->counters().streams_open, 1U);
}

TEST_F(GrpcTest, MessagesOverTheLimitEndAStream) {
  start({.limits = {.request_bytes_max = 1000, .request_overhead_bytes = 24}});
  GrpcClient client(url_);
  const int32_t call = client.begin(kWatch, framed(create("a")), false);
  ASSERT_TRUE(client.has_messages(call, 1));
  client.send(call, framed(create(std::string(2000, 'x'))));
  EXPECT_EQ(client.finish(call).status(), "8");
}

TEST_F(GrpcTest, AtTheEndOfTheServer) {
  start();
  GrpcClient client(url_);
  const int32_t watch = client.begin(kWatch, framed(create("a")), false);
  ASSERT_TRUE(client.has_messages(watch, 1));
  const int32_t txn = client.begin("/etcdserverpb.KV/Txn", framed(TxnRequest()));
  UnaryCall waiting = service_.take_txn();
  std::thread stop([this] { server_->stop(5s); });
  EXPECT_EQ(client.finish(watch).status(), "14");
  EXPECT_EQ(client.answer(watch).message(), "etcdserver: server stopped");
  EXPECT_TRUE(client.wait_until([&client] { return client.going_away(); }));
  waiting.reply.send_now(TxnResponse());  // it was on its way
  EXPECT_EQ(client.finish(txn).status(), "0");
  EXPECT_TRUE(client.closed());
  stop.join();
}

}  // namespace
}  // namespace http
