#include "test_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

namespace conclave::testing {

namespace {

constexpr std::chrono::seconds kStartMax{20};
constexpr int kPollMs = 10;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "test server: %s\n", why.c_str());
  std::exit(1);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

bool healthy(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  bool ok = false;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    constexpr std::string_view kRequest = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    pollfd wait{fd, POLLIN, 0};
    char answer[64] = {};
    ok = ::send(fd, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) > 0 && ::poll(&wait, 1, 1000) == 1 &&
         ::recv(fd, answer, sizeof answer - 1, 0) > 0 &&
         std::string_view(answer).find(" 200 ") != std::string_view::npos;
  }
  ::close(fd);
  return ok;
}

std::string server_program() {
  const char* named = std::getenv("CONCLAVE_TEST_SERVER");
  std::string program = named != nullptr && *named != '\0' ? named : CONCLAVE_BUILT_SERVER;
  if (::access(program.c_str(), X_OK) != 0)
    give_up("no server program at " + program + " (build it, or set CONCLAVE_TEST_SERVER)");
  return program;
}

}  // namespace

std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    give_up("no free port");
  ::close(fd);
  return ntohs(address.sin_port);
}

TestServer::TestServer() : program_(server_program()) {
  char folder[] = "/tmp/conclave-sdk-test-XXXXXX";
  if (::mkdtemp(folder) == nullptr) give_up("no temporary folder");
  folder_ = folder;
  port_ = free_port();
  endpoint_ = "http://127.0.0.1:" + std::to_string(port_);
  peer_ = "http://127.0.0.1:" + std::to_string(free_port());
  start();
}

TestServer::~TestServer() {
  kill();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Client TestServer::client() const { return Client::open(options()).or_throw(); }

void TestServer::start() {
  spawn();
  wait_healthy();
}

void TestServer::spawn() {
  const std::vector<std::string> arguments = {program_,
                                              "--name=m",
                                              "--data-dir=" + folder_ + "/data",
                                              "--listen-client-urls=" + endpoint_,
                                              "--advertise-client-urls=" + endpoint_,
                                              "--listen-peer-urls=" + peer_,
                                              "--initial-advertise-peer-urls=" + peer_,
                                              "--initial-cluster=m=" + peer_};
  const std::string log = folder_ + "/log";
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0) give_up("fork failed");
  if (process_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(fd, STDOUT_FILENO);
  ::dup2(fd, STDERR_FILENO);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

void TestServer::wait_healthy() const {
  const auto until = std::chrono::steady_clock::now() + kStartMax;
  while (std::chrono::steady_clock::now() < until) {
    if (healthy(port_)) return;
    if (::waitpid(process_, nullptr, WNOHANG) == process_) give_up(program_ + " ended; log in " + folder_ + "/log");
    ::poll(nullptr, 0, kPollMs);
  }
  give_up(program_ + " is not healthy in time; log in " + folder_ + "/log");
}

void TestServer::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

void TestServer::pause() {
  ::kill(process_, SIGSTOP);
  ::waitpid(process_, nullptr, WUNTRACED);  // all its threads stand still now
}

void TestServer::resume() { ::kill(process_, SIGCONT); }

}  // namespace conclave::testing
