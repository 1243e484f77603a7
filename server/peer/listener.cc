// Listening sockets.
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "peer/address.h"
#include "peer/limits.h"
#include "peer/network.h"

namespace peer {
namespace {

struct Bound {
  int socket = -1;
  std::string url;
};

Result<Bound> bind_one(const std::string& url) {
  TRY_ASSIGN(const Address address, parse_url(url));
  const auto failed = [&](const char* why) { return fail(Code::kUnavailable, "cannot listen on " + url + ": " + why); };
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const char* host = address.host.empty() ? nullptr : address.host.c_str();
  if (const int error = ::getaddrinfo(host, address.port.c_str(), &hints, &found); error != 0) {
    return failed(::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  // As the client port: one address, an IPv4 one first, so that "localhost" and port 0 mean one port.
  const addrinfo* chosen = found;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    if (info->ai_family == AF_INET) {
      chosen = info;
      break;
    }
  }
  const int socket = ::socket(chosen->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return failed(std::strerror(errno));
  const int on = 1;
  const int off = 0;
  (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (chosen->ai_family == AF_INET6) (void)::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (::bind(socket, chosen->ai_addr, chosen->ai_addrlen) != 0 || ::listen(socket, kListenBacklog) != 0) {
    const int error = errno;
    ::close(socket);
    return failed(std::strerror(error));
  }
  Tcp::endpoint endpoint;
  socklen_t size = static_cast<socklen_t>(endpoint.capacity());
  (void)::getsockname(socket, endpoint.data(), &size);
  endpoint.resize(size);
  return Bound{.socket = socket, .url = "http://" + to_text(endpoint)};
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::bind(const std::vector<std::string>& urls) {
  std::unique_ptr<Listener> listener(new Listener);
  for (const std::string& url : urls) {
    TRY_ASSIGN(const Bound bound, bind_one(url));
    listener->sockets_.push_back(bound.socket);
    listener->urls_.push_back(bound.url);
  }
  return listener;
}

Listener::~Listener() {
  for (const int socket : sockets_) ::close(socket);
}

}  // namespace peer
