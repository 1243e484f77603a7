// Listening sockets and the URLs that name them.
#pragma once

#include <functional>
#include <memory>
#include <string>
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

// Binds what a URL names: all addresses of a host name, one socket each. On an error nothing stays bound.
Result<std::vector<Bound>> bind_url(const std::string& url);

// The far end of an accepted socket.
std::shared_ptr<const Peer> peer_of(int socket, bool tcp);

}  // namespace http
