// Mutex among processes: eight contend a thousand times each; a holder is killed. The test program starts itself for
// that.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "conclave/mutex.h"
#include "test_server.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using testing::TestServer;
using Clock = std::chrono::steady_clock;

constexpr const char* kEndpointVariable = "CONCLAVE_TEST_ENDPOINT";
constexpr const char* kRoleVariable = "CONCLAVE_TEST_ROLE";
constexpr int kProcesses = 8;
constexpr int kRounds = 1000;
constexpr int kTokenDigits = 12;

std::string padded(std::int64_t number) {
  std::string digits = std::to_string(number);
  return std::string(static_cast<std::size_t>(kTokenDigits) - digits.size(), '0') + digits;
}

// Each round writes that somebody is inside, which must not be written yet, and takes it away again.
int contend(const Client& client) {
  const auto session = Session::open(client, {.ttl = 30s}).or_throw();
  const Mutex mutex(session, "contended");
  for (int i = 0; i < kRounds; ++i) {
    auto lock = mutex.lock({.timeout = 120s}).or_throw();
    const auto entered = lock.commit(Txn().when(compare::missing("inside")).then(op::put("inside", ""))).or_throw();
    if (!entered.succeeded) return 2;
    const std::string token = padded(number(lock.token()));
    (void)lock.commit(Txn().then(op::del("inside"), op::put("log/" + token, ""))).or_throw();
    lock.unlock().or_throw();
  }
  return 0;
}

int hold(const Client& client) {
  const auto session = Session::open(client, {.ttl = 3s}).or_throw();
  const auto lock = Mutex(session, "held").lock().or_throw();
  while (true) ::pause();
}

pid_t start(const std::string& role, const TestServer& server) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::setenv(kRoleVariable, role.c_str(), 1);
  ::setenv(kEndpointVariable, server.endpoint().c_str(), 1);
  ::execl("/proc/self/exe", "contender", nullptr);
  ::_exit(127);
}

TEST(MutexProcesses, NeverOverlapAndAreServedInOrderOfArrival) {
  TestServer server;
  const auto begin = Clock::now();
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) children.push_back(start("contend", server));
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  const auto took = std::chrono::duration<double>(Clock::now() - begin).count();
  std::cout << kProcesses * kRounds / took << " lock rounds/s\n";
  // The place in the queue is the token; the log was written in the order of the grants.
  const Client client = server.client();
  const auto log = client.range({.key = "log/", .prefix = true, .call = {.timeout = 30s}}).or_throw();
  ASSERT_EQ(log.kvs.size(), static_cast<std::size_t>(kProcesses * kRounds));
  for (std::size_t i = 1; i < log.kvs.size(); ++i) {
    EXPECT_LT(log.kvs[i - 1].mod_revision, log.kvs[i].mod_revision) << log.kvs[i].key;
    EXPECT_EQ(log.kvs[i].version, 1);
  }
}

TEST(MutexProcesses, PassTheLockOnWhenTheHolderIsKilled) {
  TestServer server;
  const Client client = server.client();
  const pid_t holder = start("hold", server);
  const auto until = Clock::now() + 20s;
  while (client.range({.key = "held/", .prefix = true}).or_throw().kvs.empty()) ASSERT_LT(Clock::now(), until);
  const auto session = Session::open(client, {.ttl = 30s}).or_throw();
  EXPECT_FALSE(Mutex(session, "held").try_lock().or_throw().has_value());
  ::kill(holder, SIGKILL);
  const auto killed = Clock::now();
  const auto lock = Mutex(session, "held").lock({.timeout = 20s}).or_throw();
  EXPECT_LE(Clock::now() - killed, 3s + 1s);
  ::waitpid(holder, nullptr, 0);
}

int play(const std::string& role) {
  try {
    const Client client = Client::open({.endpoints = {std::getenv(kEndpointVariable)}}).or_throw();
    return role == "hold" ? hold(client) : contend(client);
  } catch (const Exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}

}  // namespace
}  // namespace conclave

int main(int argc, char** argv) {
  if (const char* role = std::getenv(conclave::kRoleVariable)) return conclave::play(role);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
