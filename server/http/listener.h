// Listening sockets and the URLs that name them.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/handler.h"

namespace http {

struct Bound {
  int socket = -1;
  bool tcp = true;
  std::string url;        // port 0 replaced
  std::string unix_path;  // to be removed in the end; empty for TCP
};

struct HostPort {
  std::string host;  // without brackets
  std::string port;
};
// "host:port", "[::1]:port"; a "/" may follow.
std::optional<HostPort> split_host_port(std::string_view text);
// "127.0.0.1:80", "[::1]:80"
std::string address_text(const sockaddr_storage& address);

// Binds what a URL names: all addresses of a host name, one socket each. On an error nothing stays bound.
Result<std::vector<Bound>> bind_url(const std::string& url);

// The far end of an accepted socket.
std::shared_ptr<const Peer> peer_of(int socket, bool tcp);

}  // namespace http
