#include "http/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

#include "http/limits.h"

namespace http {
namespace {

Status failed(const std::string& url, const std::string& what) {
  return fail(Code::kUnavailable, "cannot listen on " + url + ": " + what);
}
Status invalid(const std::string& url, const std::string& what) {
  return fail(Code::kInvalidArgument, "cannot listen on " + url + ": " + what);
}

Status bind_and_listen(int socket, const sockaddr* address, socklen_t size, const std::string& url) {
  if (::bind(socket, address, size) != 0 || ::listen(socket, kListenBacklog) != 0) {
    return failed(url, std::strerror(errno));
  }
  return {};
}

Result<Bound> bind_tcp(const addrinfo& info, const std::string& url) {
  Bound bound;
  bound.socket = ::socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (bound.socket < 0) return fail(failed(url, std::strerror(errno)).error());
  const int on = 1;
  const int off = 0;
  ::setsockopt(bound.socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (info.ai_family == AF_INET6) ::setsockopt(bound.socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (Status status = bind_and_listen(bound.socket, info.ai_addr, info.ai_addrlen, url); !status) {
    ::close(bound.socket);
    return fail(status.error());
  }
  return bound;
}

Result<std::vector<Bound>> bind_host(const std::string& url, std::string_view rest) {
  const auto at = split_host_port(rest);
  if (!at) return fail(invalid(url, "it must be http://host:port").error());
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const char* host = at->host.empty() ? nullptr : at->host.c_str();
  if (const int error = ::getaddrinfo(host, at->port.c_str(), &hints, &found); error != 0) {
    return fail(invalid(url, ::gai_strerror(error)).error());
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  // As Go: one address, an IPv4 one first, so that "localhost" and port 0 mean one port.
  const addrinfo* chosen = found;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    if (info->ai_family == AF_INET) {
      chosen = info;
      break;
    }
  }
  TRY_ASSIGN(Bound bound, bind_tcp(*chosen, url));
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(bound.socket, reinterpret_cast<sockaddr*>(&address), &size);
  bound.url = "http://" + address_text(address);
  return std::vector<Bound>{std::move(bound)};
}

// A socket file that nobody listens on any more is in the way: a server that was killed leaves it behind.
bool abandoned(const sockaddr_un& address) {
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool refused =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 && errno == ECONNREFUSED;
  ::close(probe);
  return refused;
}

Result<std::vector<Bound>> bind_unix(const std::string& url, std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return fail(
        invalid(url, "the path must have 1 to " + std::to_string(sizeof(address.sun_path) - 1) + " bytes").error());
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Bound bound;
  bound.tcp = false;
  bound.url = url;
  bound.unix_path = std::string(path);
  bound.socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (bound.socket < 0) return fail(failed(url, std::strerror(errno)).error());
  if (abandoned(address)) ::unlink(bound.unix_path.c_str());
  if (Status status = bind_and_listen(bound.socket, reinterpret_cast<sockaddr*>(&address), sizeof(address), url);
      !status) {
    ::close(bound.socket);
    return fail(status.error());
  }
  return std::vector<Bound>{std::move(bound)};
}

}  // namespace

std::string address_text(const sockaddr_storage& address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const socklen_t size = address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unknown";
  }
  if (address.ss_family == AF_INET6) return "[" + std::string(host) + "]:" + port;
  return std::string(host) + ":" + port;
}

std::optional<HostPort> split_host_port(std::string_view rest) {
  if (rest.ends_with('/')) rest.remove_suffix(1);
  std::string_view host;
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    host = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
  } else {
    const size_t colon = rest.find(':');
    host = rest.substr(0, colon);
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon);
  }
  if (!rest.starts_with(':')) return std::nullopt;
  rest.remove_prefix(1);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), port);
  if (error != std::errc() || end != rest.data() + rest.size() || port > 65535) return std::nullopt;
  return HostPort{std::string(host), std::string(rest)};
}

Result<std::vector<Bound>> bind_url(const std::string& url) {
  const size_t colon = url.find("://");
  const std::string scheme = colon == std::string::npos ? "" : url.substr(0, colon);
  const std::string_view rest = colon == std::string::npos ? "" : std::string_view(url).substr(colon + 3);
  if (scheme == "http") return bind_host(url, rest);
  if (scheme == "unix") return bind_unix(url, rest);
  if (scheme == "https" || scheme == "unixs") {
    return fail(invalid(url, "TLS is not supported yet; use http:// or unix://").error());
  }
  return fail(invalid(url, "the scheme must be http or unix").error());
}

std::shared_ptr<const Peer> peer_of(int socket, bool tcp) {
  auto peer = std::make_shared<Peer>();
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (!tcp) {
    peer->address = "unix";
  } else if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    peer->address = address_text(address);
  }
  return peer;
}

}  // namespace http
