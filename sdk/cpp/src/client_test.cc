// What a client does without any server.
#include "conclave/client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "conclave/shutdown.h"
#include "endpoints.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;

void expect_refused(ClientOptions options, const std::string& culprit) {
  const auto client = Client::open(std::move(options));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, Code::kInvalidArgument);
  EXPECT_EQ(client.error().outcome, Outcome::kNeverWorks);
  EXPECT_NE(client.error().message.find(culprit), std::string::npos) << client.error().message;
}

TEST(ClientOptions, NamesTheCulprit) {
  expect_refused({}, "endpoints");
  expect_refused({.endpoints = {"http://a:1", "nonsense"}}, "nonsense");
  expect_refused({.endpoints = {"http://a:1/path"}}, "/path");
  expect_refused({.endpoints = {"ftp://a:1"}}, "ftp");
  expect_refused({.endpoints = {"http://a:99999999"}}, "99999999");
  expect_refused({.endpoints = {"https://a:1"}}, "https://a:1");
  expect_refused({.endpoints = {"http://a:1"}, .call_timeout = 0ms}, "call_timeout");
  expect_refused({.endpoints = {"http://a:1"}, .callback_threads = 0}, "callback_threads");
  expect_refused({.endpoints = std::vector<std::string>(65, "http://a:1")}, "at most");
  EXPECT_TRUE(Client::open({.endpoints = {"http://[::1]:2379", "http://example"}}));
}

TEST(ClientOptions, ComeFromTheEnvironment) {
  ::setenv("CONCLAVE_ENDPOINTS", "http://a:1,http://b:2", 1);
  ::setenv("CONCLAVE_KEY_PREFIX", "t/", 1);
  const auto options = ClientOptions::from_environment().or_throw();
  EXPECT_EQ(options.endpoints, (std::vector<std::string>{"http://a:1", "http://b:2"}));
  EXPECT_EQ(options.key_prefix, "t/");
  ::setenv("CONCLAVE_USER", "root", 1);
  const auto refused = ClientOptions::from_environment();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("CONCLAVE_USER"), std::string::npos);
  ::unsetenv("CONCLAVE_USER");
  ::unsetenv("CONCLAVE_ENDPOINTS");
  ::unsetenv("CONCLAVE_KEY_PREFIX");
  EXPECT_EQ(ClientOptions::from_environment().or_throw().endpoints, std::vector<std::string>{"http://127.0.0.1:2379"});
}

TEST(Client, FailsUnavailableWhenNobodyAnswersInTime) {
  const Client client = Client::open({.endpoints = {"http://127.0.0.1:1", "http://127.0.0.1:2"}}).or_throw();
  EXPECT_EQ(client.state(), ConnectionState::kConnecting);
  const auto start = std::chrono::steady_clock::now();
  const auto put = client.put("k", "v", {.call = {.timeout = 300ms}});
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, Code::kUnavailable);
  EXPECT_EQ(put.error().outcome, Outcome::kNothingHappened);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
}

// Takes connections and a request on each, and hangs up.
class HangsUp {
 public:
  HangsUp() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 64), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] {
      for (int peer = ::accept(socket_, nullptr, nullptr); peer >= 0; peer = ::accept(socket_, nullptr, nullptr)) {
        char request[4096];
        (void)::recv(peer, request, sizeof(request), 0);
        ::close(peer);
      }
    });
  }
  ~HangsUp() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  const std::string& url() const { return url_; }

 private:
  int socket_;
  std::string url_;
  std::thread thread_;
};

TEST(Client, StopsRepeatingWhenTheBudgetOfRetriesIsSpent) {
  const HangsUp server;
  const Client client = Client::open({.endpoints = {server.url()}}).or_throw();
  bool spent = false;
  for (int i = 0; i < 30 && !spent; ++i) {
    const auto get = client.get("k", {.call = {.timeout = 200ms}});
    ASSERT_FALSE(get);
    spent = get.error().message.find("too many retries") != std::string::npos;
  }
  EXPECT_TRUE(spent);
}

TEST(Endpoints, KnowAReplacedClusterFromAStrayMember) {
  internal::Endpoints endpoints({"http://a:1", "http://b:1", "http://c:1"});
  EXPECT_TRUE(endpoints.belongs(0, 7));
  EXPECT_TRUE(endpoints.belongs(1, 7));
  EXPECT_FALSE(endpoints.belongs(2, 9));  // a stray member
  EXPECT_EQ(endpoints.generation(), 0u);
  EXPECT_TRUE(endpoints.belongs(0, 7));
  endpoints.bad(0);  // the others go away ...
  endpoints.bad(1);
  EXPECT_TRUE(endpoints.belongs(2, 9));  // ... and all that answer share the new id
  EXPECT_EQ(endpoints.generation(), 1u);
  EXPECT_FALSE(endpoints.belongs(0, 7));
}

TEST(Endpoints, LeaveAFailedMemberAloneAndComeBack) {
  internal::Endpoints endpoints({"http://a:1", "http://b:1"});
  const auto first = endpoints.choose(0);
  endpoints.good(first);
  EXPECT_TRUE(endpoints.connected());
  endpoints.bad(first);
  EXPECT_EQ(endpoints.choose(0), 1 - first);
  EXPECT_EQ(endpoints.choose(std::uint64_t{1} << (1 - first)), first);  // if need be
  endpoints.bad(1 - first);
  EXPECT_FALSE(endpoints.connected());
}

TEST(ShutdownSignal, TurnsASignalIntoAStopToken) {
  ShutdownSignal shutdown;
  EXPECT_FALSE(shutdown.token().stop_requested());
  ::kill(::getpid(), SIGTERM);
  shutdown.wait();
  EXPECT_EQ(shutdown.signal(), SIGTERM);
  const auto until = std::chrono::steady_clock::now() + 5s;
  while (!shutdown.token().stop_requested() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_TRUE(shutdown.token().stop_requested());
}

}  // namespace
}  // namespace conclave
