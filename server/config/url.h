// URLs as etcd's flags take them: http or https with host and port and nothing else, or a unix socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace config {

struct Url {
  enum class Scheme : uint8_t { kHttp, kHttps, kUnix, kUnixs };
  Scheme scheme = Scheme::kHttp;
  std::string host;  // without the brackets of IPv6; empty for unix sockets
  uint16_t port = 0;
  std::string path;  // unix sockets only: the file
  std::string text;  // as given, without surrounding spaces: what is advertised
  friend bool operator==(const Url&, const Url&) = default;

  bool is_socket() const { return scheme == Scheme::kUnix || scheme == Scheme::kUnixs; }
  bool is_secure() const { return scheme == Scheme::kHttps || scheme == Scheme::kUnixs; }
};

Result<Url> parse_url(std::string_view text);

// Comma separated, at least one; sorted by text and without repeats, as etcd keeps them (client/pkg/types/urls.go).
Result<std::vector<Url>> parse_urls(std::string_view text);

std::string join(const std::vector<Url>& urls);

}  // namespace config
