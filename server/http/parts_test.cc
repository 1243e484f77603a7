// Answers in parts: on the wire, when they fail, and what they hold in memory. And that one connection that asks for
// much does not keep the others waiting.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "http/connection.h"
#include "http/test_server.h"

namespace http {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::Response;

class PartsTest : public test::ServerTest {
 protected:
  // A part that is counted as long as it is somewhere.
  std::shared_ptr<const Encoded> part(std::string bytes) {
    alive_.fetch_add(1);
    return {new Encoded{Codec::kJson, std::move(bytes)}, [this](const Encoded* gone) {
              delete gone;
              alive_.fetch_sub(1);
            }};
  }
  void wait_for_alive(int count) {
    while (alive_.load() != count) std::this_thread::yield();
  }
  UnaryCall ask_txn(Client& client) {
    client.post("/v3/kv/txn", "{}");
    return service_.take_txn();
  }

  std::atomic<int> alive_{0};
};

TEST_F(PartsTest, ComeInChunksAndTheConnectionGoesOn) {
  start();
  Client client(url_);
  for (int i = 0; i < 3; ++i) {
    UnaryCall call = ask_txn(client);
    call.reply.send_part(part("{\"succeeded\":"), false);
    call.reply.send_part(part(""), false);
    call.reply.send_part(part("true}"), true);
    const auto response = client.response();
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->header("Content-Type"), "application/json");
    EXPECT_EQ(response->header("Grpc-Metadata-Content-Type"), "application/grpc");
    EXPECT_EQ(response->header("Content-Length"), "");
    EXPECT_EQ(response->body, "{\"succeeded\":true}");
    EXPECT_EQ(response->chunks.size(), 2u);
  }
  wait_for_alive(0);
  EXPECT_EQ(server_->counters().requests, 3u);
}

TEST_F(PartsTest, TheOnlyOneHasALength) {
  start();
  Client client(url_);
  ask_txn(client).reply.send_part(part("{}"), true);
  const auto response = client.response();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->header("Content-Length"), "2");
  EXPECT_EQ(response->body, "{}");
}

TEST_F(PartsTest, ToAnOldClientTheyEndWithTheConnection) {
  start();
  Client client(url_);
  client.send("POST /v3/kv/txn HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}");
  UnaryCall call = service_.take_txn();
  call.reply.send_part(part("{"), false);
  call.reply.send_part(part("}"), true);
  const auto response = client.response();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->header("Transfer-Encoding"), "");
  EXPECT_EQ(response->header("Connection"), "close");
  EXPECT_EQ(response->body, "{}");
  EXPECT_TRUE(client.closed());
}

TEST_F(PartsTest, WhatGoesWrongAfterTheFirstCutsTheConnection) {
  start();
  for (const bool dropped : {false, true}) {
    Client client(url_);
    {
      UnaryCall call = ask_txn(client);
      call.reply.send_part(part("{\"succeeded\":true"), false);
      EXPECT_EQ(client.head()->status, 200);
      EXPECT_EQ(client.chunk(), "{\"succeeded\":true");
      if (!dropped) call.reply.fail(Code::kDataLoss, "lost");
    }
    EXPECT_FALSE(client.chunk()) << "not even the last one";
    EXPECT_TRUE(client.closed());
  }
  wait_for_alive(0);
}

TEST_F(PartsTest, ADeadlineCutsToo) {
  start();
  Client client(url_);
  client.post("/v3/kv/txn", "{}", "Grpc-Timeout: 50m\r\n");
  UnaryCall call = service_.take_txn();
  call.reply.send_part(part("{"), false);
  EXPECT_EQ(client.head()->status, 200);
  EXPECT_EQ(client.chunk(), "{");
  EXPECT_FALSE(client.chunk());
  while (call.reply.wanted()) std::this_thread::yield();
}

TEST_F(PartsTest, NobodyWantsThemWhenTheClientIsGone) {
  start();
  auto client = std::make_unique<Client>(url_);
  UnaryCall call = ask_txn(*client);
  EXPECT_TRUE(call.reply.wanted());
  client.reset();
  while (call.reply.wanted()) call.reply.send_part(part(std::string(100'000, ' ')), false);
  wait_for_alive(0);
  call.reply.send_part(part("}"), true);
  wait_for_alive(0);
  EXPECT_FALSE(call.reply.wanted());
}

TEST_F(PartsTest, LiveUntilTheSocketHasTakenThem) {
  start();
  Client client(url_);
  UnaryCall call = ask_txn(client);
  for (int i = 0; i < 64; ++i) call.reply.send_part(part(std::string(1'000'000, ' ')), false);
  call.reply.send_part(part("{}"), true);
  std::this_thread::yield();
  EXPECT_GT(alive_.load(), 32) << "more than the kernel's buffers take";
  const auto response = client.response();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body.size(), 64'000'002u);
  wait_for_alive(0);
}

// A trickle would keep others from their turn. (This client really has to be slow, so it sleeps.)
TEST_F(PartsTest, AClientThatTakesNextToNothingIsCut) {
  start({.limits = {.write_timeout = 300ms}});
  Client client(url_);
  UnaryCall call = ask_txn(client);
  for (int i = 0; i < 64; ++i) call.reply.send_part(part(std::string(1'000'000, ' ')), false);
  const auto end = std::chrono::steady_clock::now() + 8s;
  while (call.reply.wanted() && std::chrono::steady_clock::now() < end) {
    client.text(16'000);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_FALSE(call.reply.wanted());
  client.close();
  wait_for_alive(0);
}

// --- Turns

// An io thread that is driven by the test, over socket pairs.
class TurnsTest : public testing::Test {
 protected:
  TurnsTest() {
    router_.unary(
        {"/KV/Range", {"/v3/kv/range"}, &etcdserverpb::RangeRequest::default_instance(), [this](UnaryCall call) {
           const auto request = call.take<etcdserverpb::RangeRequest>();
           const bool large = request->limit() > 0;
           order_ += request->key();
           if (on_call_) std::exchange(on_call_, nullptr)();
           etcdserverpb::RangeResponse response;
           response.add_kvs()->set_value(std::string(large ? 1'000'000 : 10, 'v'));
           call.reply.send_now(response);
         }});
  }
  ~TurnsTest() override {
    io_.join();
    for (const int socket : sockets_) ::close(socket);
  }

  int connect() {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    shared_.connections_open.fetch_add(1);
    io_.adopt(pair[1], std::make_shared<Peer>(), /*tcp=*/false);
    sockets_.push_back(pair[0]);
    return pair[0];
  }
  void ask(int socket, std::string_view key, bool large, int times) {
    const std::string body = R"({"key":")" + std::string(key) + (large ? R"(","limit":"1"})" : "\"}");
    std::string raw;
    for (int i = 0; i < times; ++i) {
      raw +=
          "POST /v3/kv/range HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    }
    ASSERT_EQ(::send(socket, raw.data(), raw.size(), 0), static_cast<ssize_t>(raw.size()));
  }
  size_t drain(int socket) {
    static char buffer[1 << 20];
    size_t total = 0;
    for (ssize_t got; (got = ::recv(socket, buffer, sizeof(buffer), 0)) > 0;) total += static_cast<size_t>(got);
    return total;
  }

  Router router_;
  Shared shared_{router_, {}};
  IoThread io_{shared_, 0};
  std::vector<int> sockets_;
  std::string order_;
  std::function<void()> on_call_;
};

// Keys are a and b in base64: "YQ==" and "Yg==".
TEST_F(TurnsTest, AfterSomeCallsOfOneOthersAreLookedAt) {
  const int many = connect();
  const int one = connect();
  ask(many, "YQ==", false, 200);
  on_call_ = [&] { ask(one, "Yg==", false, 1); };  // after the sockets were looked at
  for (int i = 0; i < 1000 && order_.size() < 201; ++i) {
    io_.run_pass(/*wait=*/false);
    drain(many);
  }
  EXPECT_EQ(order_.size(), 201u);
  EXPECT_LE(order_.find('b'), static_cast<size_t>(kPassCallsMax) + 1);
}

TEST_F(TurnsTest, AfterOneLargeAnswerOthersAreLookedAt) {
  const int many = connect();
  const int one = connect();
  ask(many, "YQ==", true, 50);
  on_call_ = [&] { ask(one, "Yg==", false, 1); };
  for (int i = 0; i < 10'000 && order_.size() < 51; ++i) {
    io_.run_pass(/*wait=*/false);
    drain(many);
  }
  EXPECT_EQ(order_.size(), 51u);
  EXPECT_LE(order_.find('b'), 2u);
}

TEST_F(TurnsTest, WritingTakesTurns) {
  const int many = connect();
  ask(many, "YQ==", true, 1);
  size_t most = 0;
  size_t total = 0;
  for (int i = 0; i < 10'000 && total < 1'333'000; ++i) {
    const uint64_t before = shared_.bytes_sent.load();
    io_.run_pass(/*wait=*/false);
    most = std::max<size_t>(most, shared_.bytes_sent.load() - before);
    total += drain(many);
  }
  EXPECT_GT(total, 1'333'000u);
  EXPECT_LE(most, kPassBytesMax);
}

// Calls that always wait do not keep new ones from being read.
TEST_F(TurnsTest, ManyThatPipelineLeaveRoomForOneMore) {
  std::vector<int> many;
  for (size_t i = 0; i < kBatchCallsMax + 50; ++i) {
    many.push_back(connect());
    ask(many.back(), "YQ==", false, 100);
  }
  while (order_.size() < 4 * many.size()) io_.run_pass(/*wait=*/false);
  const int one = connect();
  ask(one, "Yg==", false, 1);
  const size_t before = order_.size();
  for (int i = 0; i < 20 && order_.find('b') == std::string::npos; ++i) {
    io_.run_pass(/*wait=*/false);
    for (const int socket : many) drain(socket);
  }
  ASSERT_NE(order_.find('b'), std::string::npos);
  EXPECT_LE(order_.find('b') - before, 2 * static_cast<size_t>(kPassCallsMax) * many.size());
}

}  // namespace
}  // namespace http
