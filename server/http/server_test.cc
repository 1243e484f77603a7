// The server over real loopback sockets: routing, bodies, where it listens and how it ends.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <filesystem>

#include "http/listener.h"
#include "http/test_server.h"

namespace http {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::Response;
using ServerTest = test::ServerTest;

TEST_F(ServerTest, AnswersACall) {
  start();
  const Response response = post("/v3/kv/put", R"({"key":"YQ=="})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, R"({"header":{"revision":"1"}})");
  EXPECT_EQ(response.header("Content-Type"), "application/json");
  EXPECT_EQ(response.header("Grpc-Metadata-Content-Type"), "application/grpc");
  EXPECT_EQ(response.header("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(response.header("Access-Control-Allow-Methods"), "POST, GET, OPTIONS, PUT, DELETE");
  EXPECT_EQ(response.header("Access-Control-Allow-Headers"), "accept, content-type, authorization");
  EXPECT_EQ(response.header("Date").size(), std::string("Mon, 30 Nov 2026 10:21:39 GMT").size());
  EXPECT_EQ(response.header("Connection"), "");
}

TEST_F(ServerTest, KeepsTheConnection) {
  start();
  Client client(url_);
  for (int i = 1; i <= 100; ++i) {
    client.post("/v3/kv/put", R"({"key":"YQ=="})");
    EXPECT_EQ(client.response()->body, "{\"header\":{\"revision\":\"" + std::to_string(i) + "\"}}");
  }
  EXPECT_EQ(server_->counters().connections_accepted, 1u);
  EXPECT_EQ(server_->counters().requests, 100u);
}

TEST_F(ServerTest, ErrorsHaveTheGatewaysEnvelope) {
  start();
  const Response response = post("/v3/kv/put", "{}");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.body, R"({"code":3,"message":"etcdserver: key is not provided"})");
  EXPECT_EQ(response.header("Content-Type"), "application/json");
  EXPECT_EQ(response.header("Grpc-Metadata-Content-Type"), "");
  EXPECT_EQ(response.header("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(post("/v3/kv/put", "").status, 400);
  EXPECT_EQ(post("/v3/kv/put", "[]").status, 400);
  EXPECT_EQ(post("/v3/kv/put", "{").body, R"({"code":3,"message":"unexpected EOF"})");
}

TEST_F(ServerTest, UnknownPaths) {
  start();
  for (const char* path :
       {"/v3/nope", "/v3/", "/v3/kv/range/", "/v3/KV/range", "/v3beta/nope", "/v3beta/", "/v3/kv/lease/grant"}) {
    const Response response = post(path, "{}");
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_EQ(response.body, R"({"code":5,"message":"Not Found"})");
    EXPECT_EQ(response.header("Content-Type"), "application/json");
  }
  for (const char* path : {"/", "/nope", "/v3alpha/kv/range", "/v2/keys", "/version/", "/v3beta", "/v3x"}) {
    const Response response = post(path, "{}");
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_EQ(response.body, "404 page not found\n");
    EXPECT_EQ(response.header("Content-Type"), "text/plain; charset=utf-8");
    EXPECT_EQ(response.header("X-Content-Type-Options"), "nosniff");
  }
}

TEST_F(ServerTest, PathShapes) {
  start();
  for (const char* path : {"/v3/kv/r%61nge", "/v3/kv/range?key=ignored&limit=x", "/v3beta/kv/range",
                           "/v3/kv/lease/range", "http://elsewhere/v3/kv/range"}) {
    EXPECT_EQ(post(path, R"({"key":"YQ=="})").body, R"({"kvs":[{"key":"YQ=="}]})") << path;
  }
  EXPECT_EQ(ask("GET /%%zz HTTP/1.1\r\nHost: x\r\n\r\n").status, 400);
  EXPECT_EQ(ask("GET nonsense HTTP/1.1\r\nHost: x\r\n\r\n").status, 400);
}

TEST_F(ServerTest, RedirectsToTheCleanPath) {
  start();
  const std::pair<const char*, const char*> cases[] = {
      {"//v3/kv/put", "/v3/kv/put"}, {"/v3/x/../kv/put?a=b", "/v3/kv/put?a=b"}, {"/v3", "/v3/"},
      {"/../nope/./x", "/nope/x"},   {"/v3beta//kv/put", "/v3/kv/put"},         {"/v3/./", "/v3/"},
  };
  for (const auto& [path, location] : cases) {
    const Response response = post(path, "{}");
    EXPECT_EQ(response.status, 307) << path;
    EXPECT_EQ(response.header("Location"), location);
    EXPECT_EQ(response.header("Content-Length"), "0");
    EXPECT_EQ(response.header("Content-Type"), "");
  }
  const Response page = ask("GET //v3/x HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(page.status, 307);
  EXPECT_EQ(page.body, "<a href=\"/v3/x\">Temporary Redirect</a>.\n\n");
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
}

TEST_F(ServerTest, OtherMethodsOnTheGateway) {
  start();
  for (const char* method : {"GET", "PUT", "DELETE", "PATCH", "FOO"}) {
    const Response response =
        ask(std::string(method) + " /v3/kv/range HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
    EXPECT_EQ(response.status, 501) << method;
    EXPECT_EQ(response.body, R"({"code":12,"message":"Method Not Allowed"})");
  }
  EXPECT_EQ(ask("GET /v3/watch HTTP/1.1\r\nHost: x\r\n\r\n").status, 501);
  EXPECT_EQ(ask("DELETE /v3/nope HTTP/1.1\r\nHost: x\r\n\r\n").status, 404);
  Client client(url_);
  client.send("HEAD /v3/kv/range HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto head = client.response(/*without_body=*/true);
  EXPECT_EQ(head->status, 501);
  EXPECT_EQ(head->header("Content-Length"), "42");
  EXPECT_EQ(client.response()->status, 200);
}

TEST_F(ServerTest, OptionsIsFineEverywhere) {
  start();
  for (const char* path : {"/v3/kv/put", "/nope", "/health", "*", "//x"}) {
    const Response response = ask("OPTIONS " + std::string(path) + " HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\n\r\n");
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_EQ(response.body, "");
    EXPECT_EQ(response.header("Content-Type"), "");
    EXPECT_EQ(response.header("Access-Control-Allow-Origin"), "*");
  }
}

TEST_F(ServerTest, PlainRoutes) {
  start();
  Client client(url_);
  client.get("/health?serializable=true");
  auto response = client.response();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, R"({"health":"true","query":"serializable=true"})");
  EXPECT_EQ(response->header("Content-Type"), "text/plain; charset=utf-8");
  client.get("/version");
  response = client.response();
  EXPECT_EQ(response->header("Content-Type"), "application/json");
  EXPECT_EQ(response->header("X-A"), "b");
  client.get("/dropped");
  EXPECT_EQ(client.response()->status, 503);
  client.post("/health", "{}");
  response = client.response();
  EXPECT_EQ(response->status, 405);
  EXPECT_EQ(response->header("Allow"), "GET");
  EXPECT_EQ(response->body, "Method Not Allowed\n");
  client.send("HEAD /health HTTP/1.1\r\nHost: x\r\n\r\n");
  response = client.response(/*without_body=*/true);
  EXPECT_EQ(response->status, 405);
  EXPECT_EQ(response->header("Content-Length"), "19");
  client.send("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  response = client.response(/*without_body=*/true);
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->header("Content-Length"), "12");
  client.post("/metrics", "ignored");
  EXPECT_EQ(client.response()->body, "method POST\n");
}

TEST_F(ServerTest, Tokens) {
  start();
  const auto token = [&](std::string_view headers) { return post("/v3/kv/range", R"({"key":"YQ=="})", headers).body; };
  const std::string with = R"({"kvs":[{"key":"YQ==","value":"dG9r"}]})";
  EXPECT_EQ(token("Authorization: tok\r\n"), with);
  EXPECT_EQ(token("Authorization: Bearer tok\r\n"), with);
  EXPECT_EQ(token("grpc-metadata-token: tok\r\n"), with);
  EXPECT_EQ(token("Authorization: other\r\nGrpc-Metadata-Token: tok\r\n"), with);
  EXPECT_EQ(token("Grpc-Metadata-Token: tok\r\nAuthorization: other\r\n"), with);
  EXPECT_EQ(token("Token: tok\r\n"), R"({"kvs":[{"key":"YQ=="}]})");
}

TEST_F(ServerTest, GrpcTimeout) {
  start();
  EXPECT_EQ(post("/v3/kv/range", "{}", "Grpc-Timeout: zz\r\n").body,
            R"({"code":3,"message":"invalid grpc-timeout: zz"})");
  EXPECT_EQ(post("/v3/kv/range", "{}", "Grpc-Timeout: 5\r\n").status, 400);
  EXPECT_EQ(post("/v3/kv/range", "{}", "Grpc-Timeout: 10S\r\n").status, 200);
  EXPECT_EQ(post("/v3/kv/range", "{}", "Grpc-Timeout: 99999999H\r\n").status, 200);
  const Response late = post("/v3/kv/txn", "{}", "Grpc-Timeout: 30m\r\n");  // the test never answers it
  EXPECT_EQ(late.status, 504);
  EXPECT_EQ(late.body, R"({"code":4,"message":"context deadline exceeded"})");
  service_.take_txn().reply.fail(Code::kUnknown, "too late, and to no effect");
  EXPECT_EQ(post("/v3/kv/range", "{}", "Grpc-Timeout: 1n\r\n").status, 504);
  expect_healthy();
}

TEST_F(ServerTest, AnswersFromOtherThreadsAndDroppedReplies) {
  start();
  Client client(url_);
  for (int i = 0; i < 50; ++i) {
    client.post("/v3/kv/deleterange", R"({"key":"YWJj"})");
    EXPECT_EQ(client.response()->body, R"({"deleted":"3"})");
  }
  client.post("/v3/kv/compaction", "{}");
  const auto dropped = client.response();
  EXPECT_EQ(dropped->status, 503);
  EXPECT_EQ(dropped->body, R"({"code":14,"message":"etcdserver: server stopped"})");
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  Client client(url_);
  std::string requests;
  constexpr int kRequests = 2000;
  for (int i = 0; i < kRequests; ++i) {
    requests += "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{\"key\":\"YQ==\"}";
    requests += "GET /nope HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  std::thread sender([&] { client.send(requests); });
  for (int i = 1; i <= kRequests; ++i) {
    ASSERT_EQ(client.response()->body, "{\"header\":{\"revision\":\"" + std::to_string(i) + "\"}}");
    ASSERT_EQ(client.response()->status, 404);
  }
  sender.join();
}

TEST_F(ServerTest, ABlockedCallHoldsLaterOnesBack) {
  start();
  Client client(url_);
  client.post("/v3/kv/txn", "{}");
  client.post("/v3/kv/put", R"({"key":"YQ=="})");
  UnaryCall call = service_.take_txn();
  EXPECT_TRUE(client.quiet(50ms));
  call.reply.send(std::make_unique<etcdserverpb::TxnResponse>());
  EXPECT_EQ(client.response()->body, "{}");
  EXPECT_EQ(client.response()->body, R"({"header":{"revision":"1"}})");
}

TEST_F(ServerTest, BodiesInPieces) {
  start();
  Client client(url_);
  const std::string raw = "POST /v3/kv/range HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{\"key\":\"YQ==\"}";
  for (const char c : raw) {
    client.send({&c, 1});
    if (c == '\n') {
      EXPECT_TRUE(client.quiet(1ms));
    }
  }
  EXPECT_EQ(client.response()->body, R"({"kvs":[{"key":"YQ=="}]})");
  client.send("POST /v3/kv/range HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\n{\"k\r\n");
  EXPECT_TRUE(client.quiet(5ms));
  client.send("B\r\ney\":\"YQ==\"}\r\n0\r\nTrailer: x\r\n\r\n");
  EXPECT_EQ(client.response()->body, R"({"kvs":[{"key":"YQ=="}]})");
  client.post("/v3/kv/range", R"({"key":"YQ=="})");
  EXPECT_EQ(client.response()->status, 200);
}

TEST_F(ServerTest, Expect100Continue) {
  start();
  Client client(url_);
  client.send("POST /v3/kv/range HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 14\r\n\r\n");
  EXPECT_EQ(client.head()->status, 100);
  client.send(R"({"key":"YQ=="})");
  EXPECT_EQ(client.response()->body, R"({"kvs":[{"key":"YQ=="}]})");
  // A body that nobody wants is not asked for.
  client.send("PUT /v3/kv/range HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 14\r\n\r\n");
  const auto refused = client.response();
  EXPECT_EQ(refused->status, 501);
  EXPECT_EQ(refused->header("Connection"), "close");
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(ask("GET /health HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n").status, 417);
}

TEST_F(ServerTest, Http10) {
  start();
  Client client(url_);
  client.send("POST /v3/kv/put HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 14\r\n\r\n{\"key\":\"YQ==\"}");
  auto response = client.response();
  EXPECT_TRUE(response->head.starts_with("HTTP/1.0 200 OK\r\n"));
  EXPECT_EQ(response->header("Connection"), "keep-alive");
  EXPECT_EQ(response->body, R"({"header":{"revision":"1"}})");
  client.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.response()->header("Connection"), "close");
  EXPECT_TRUE(client.closed());
  Client stream(url_);
  stream.send("POST /v3/lease/keepalive HTTP/1.0\r\nContent-Length: 16\r\n\r\n{\"ID\":1}{\"ID\":2}");
  response = stream.response();
  EXPECT_EQ(response->header("Transfer-Encoding"), "");
  EXPECT_EQ(response->body, "{\"result\":{\"ID\":\"1\"}}\n{\"result\":{\"ID\":\"2\"}}\n");
}

TEST_F(ServerTest, ConnectionCloseIsHonoured) {
  start();
  Client client(url_);
  client.post("/v3/kv/put", R"({"key":"YQ=="})", "Connection: close\r\n");
  EXPECT_EQ(client.response()->header("Connection"), "close");
  EXPECT_TRUE(client.closed());
}

TEST_F(ServerTest, AnswersAClientThatHasClosedItsSendingSide) {
  start();
  Client client(url_);
  client.post("/v3/kv/txn", "{}");
  client.shut_down();
  UnaryCall call = service_.take_txn();
  call.reply.send(std::make_unique<etcdserverpb::TxnResponse>());
  EXPECT_EQ(client.response()->body, "{}");
  EXPECT_TRUE(client.closed());
}

TEST_F(ServerTest, BatchHooksSurroundTheCallsOfOneWakeUp) {
  // Owned by the only io thread until the server has stopped.
  int depth = 0;
  int batches = 0;
  bool balanced = true;
  ServerOptions options;
  options.hooks.begin = [&](size_t thread) {
    balanced = balanced && depth == 0 && thread == 0;
    ++depth;
    ++batches;
  };
  options.hooks.end = [&](size_t) { balanced = balanced && --depth == 0; };
  start(std::move(options));
  for (int i = 0; i < 3; ++i) expect_healthy();
  server_->stop(1s);
  EXPECT_TRUE(balanced);
  EXPECT_EQ(batches, 3);
}

// --- Where it listens

TEST_F(ServerTest, SeveralIoThreads) {
  start({.io_threads = 3});
  std::vector<std::thread> clients;
  for (int i = 0; i < 9; ++i) {
    clients.emplace_back([this] {
      Client client(url_);
      for (int n = 0; n < 200; ++n) {
        client.post("/v3/kv/put", R"({"key":"YQ=="})");
        ASSERT_EQ(client.response()->status, 200);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(server_->counters().requests, 1800u);
}

TEST_F(ServerTest, UnixSocketsAndOtherAddresses) {
  const auto folder = std::filesystem::temp_directory_path() / ("http_test_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string unix_url = "unix://" + (folder / "socket").string();
  start({}, {unix_url, "http://localhost:0", "http://0.0.0.0:0"});
  for (const std::string& url : server_->urls()) {
    url_ = url.find("0.0.0.0") == std::string::npos ? url : "http://127.0.0.1" + url.substr(url.rfind(':'));
    expect_healthy();
  }
  server_->stop(1s);
  EXPECT_FALSE(std::filesystem::exists(folder / "socket"));
  std::filesystem::remove_all(folder);
}

// Whether this machine has ::1 at all; asked without the code under test.
bool has_ipv6() {
  const int probe = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool bound = ::bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  ::close(probe);
  return bound;
}

TEST_F(ServerTest, Ipv6) {
  server_ = std::make_unique<Server>(service_.router, ServerOptions());
  const Status status = server_->listen({"http://[::1]:0"});
  if (!has_ipv6()) {
    ASSERT_FALSE(status) << "there is no ::1 to listen on";
    EXPECT_TRUE(status.error().message.starts_with("cannot listen on http://[::1]:0: ")) << status.error().message;
    return;
  }
  ASSERT_TRUE(status) << status.error().message;
  server_->start();
  url_ = server_->urls()[0];
  EXPECT_TRUE(url_.starts_with("http://[::1]:")) << url_;
  expect_healthy();
}

// What an IPv6 address needs of the code, whether or not the machine has one.
TEST(Listener, ReadsAndWritesIpv6Addresses) {
  const auto loopback = split_host_port("[::1]:2379");
  ASSERT_TRUE(loopback);
  EXPECT_EQ(loopback->host, "::1");
  EXPECT_EQ(loopback->port, "2379");
  EXPECT_EQ(split_host_port("[fe80::1%lo]:0/")->host, "fe80::1%lo");
  EXPECT_EQ(split_host_port("[::]:1")->host, "::");
  EXPECT_EQ(split_host_port("a:1")->host, "a");
  for (const char* wrong :
       {"::1:2379", "[::1]", "[::1]2379", "[::1", "[::1]:", "[::1]:x", "[::1]:65536", "[::1]:1/a"}) {
    EXPECT_FALSE(split_host_port(wrong)) << wrong;
  }
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr_in6&>(storage);
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(2379);
  address.sin6_addr = in6addr_loopback;
  EXPECT_EQ(address_text(storage), "[::1]:2379");
  ASSERT_EQ(::inet_pton(AF_INET6, "2001:db8::7", &address.sin6_addr), 1);
  EXPECT_EQ(address_text(storage), "[2001:db8::7]:2379");
  ASSERT_EQ(::inet_pton(AF_INET6, "::ffff:10.0.0.1", &address.sin6_addr), 1);
  EXPECT_EQ(address_text(storage), "[::ffff:10.0.0.1]:2379") << "an IPv4 client of a socket for both";
}

TEST_F(ServerTest, RefusesUrlsItCannotServe) {
  start();
  Server other(service_.router, {});
  const auto refused = [&](const std::string& url) {
    const Status status = other.listen({"http://127.0.0.1:0", url});
    EXPECT_TRUE(other.urls().empty());
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(refused("https://127.0.0.1:0"),
            "cannot listen on https://127.0.0.1:0: TLS is not supported yet; use http:// or unix://");
  EXPECT_EQ(refused("ftp://x:1"), "cannot listen on ftp://x:1: the scheme must be http or unix");
  EXPECT_EQ(refused("127.0.0.1:0"), "cannot listen on 127.0.0.1:0: the scheme must be http or unix");
  EXPECT_EQ(refused("http://127.0.0.1"), "cannot listen on http://127.0.0.1: it must be http://host:port");
  EXPECT_EQ(refused("http://127.0.0.1:99999"), "cannot listen on http://127.0.0.1:99999: it must be http://host:port");
  EXPECT_EQ(refused(url_), "cannot listen on " + url_ + ": Address already in use");
}

// --- The end

TEST_F(ServerTest, StopLetsCallsInFlightFinish) {
  start();
  Client busy(url_);
  busy.post("/v3/kv/txn", "{}");
  Client idle(url_);
  idle.get("/health");
  EXPECT_TRUE(idle.response());
  UnaryCall call = service_.take_txn();
  std::thread stopper([this] { server_->stop(10s); });
  EXPECT_TRUE(idle.closed());
  call.reply.send(std::make_unique<etcdserverpb::TxnResponse>());
  const auto response = busy.response();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->header("Connection"), "close");
  EXPECT_TRUE(busy.closed());
  stopper.join();
}

TEST_F(ServerTest, StopIsNotHeldUpForeverAndLateRepliesDoNothing) {
  start();
  Client busy(url_);
  busy.post("/v3/kv/txn", "{}");
  UnaryCall call = service_.take_txn();
  server_->stop(30ms);
  EXPECT_TRUE(busy.closed());
  server_.reset();
  call.reply.send(std::make_unique<etcdserverpb::TxnResponse>());
}

}  // namespace
}  // namespace http
