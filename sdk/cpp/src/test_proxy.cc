#include "test_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace conclave::testing {

namespace {

constexpr int kPollMs = 20;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

void no_delay(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

}  // namespace

TestProxy::TestProxy(std::uint16_t to) : to_(to) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    std::abort();
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

TestProxy::~TestProxy() {
  stop_ = true;
  thread_.join();
  ::close(listener_);
  for (const Pair& pair : pairs_) {
    ::close(pair.client);
    ::close(pair.server);
  }
}

void TestProxy::kill_connections_silently() {
  std::scoped_lock lock(mutex_);
  for (Pair& pair : pairs_) pair.dead = true;
}

bool TestProxy::forward(int from, int to) {
  char buffer[16384];
  const ssize_t got = ::recv(from, buffer, sizeof buffer, 0);
  if (got <= 0) return false;
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t n = ::send(to, buffer + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += n;
  }
  return true;
}

void TestProxy::run() {
  while (!stop_) {
    std::vector<pollfd> fds{{listener_, POLLIN, 0}};
    std::vector<Pair> live;
    {
      std::scoped_lock lock(mutex_);
      for (const Pair& pair : pairs_) {
        if (pair.dead) continue;
        live.push_back(pair);
        fds.push_back({pair.client, POLLIN, 0});
        fds.push_back({pair.server, POLLIN, 0});
      }
    }
    if (::poll(fds.data(), fds.size(), kPollMs) <= 0) continue;
    std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < live.size(); ++i) {
      bool open = true;
      if (fds[1 + 2 * i].revents != 0) open = forward(live[i].client, live[i].server);
      if (open && fds[2 + 2 * i].revents != 0) open = forward(live[i].server, live[i].client);
      if (open) continue;
      ::close(live[i].client);
      ::close(live[i].server);
      std::erase_if(pairs_, [&](const Pair& pair) { return pair.client == live[i].client; });
    }
    if (fds[0].revents == 0) continue;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int server = connect_to(to_);
    ++connections_;
    if (server < 0) {
      ::close(client);
      continue;
    }
    no_delay(client);
    no_delay(server);
    pairs_.push_back({client, server, black_hole_});
  }
}

}  // namespace conclave::testing
