// Peer URLs and what they name.
#pragma once

#include <netinet/in.h>

#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace peer {

using Tcp = boost::asio::ip::tcp;

struct Address {
  std::string host;  // without the brackets of IPv6; empty: all addresses (to listen only)
  std::string port;  // decimal
  friend bool operator==(const Address&, const Address&) = default;
};

// "http://host:port", a slash may follow. kUnimplemented for https and unix sockets, kInvalidArgument for all else.
Result<Address> parse_url(std::string_view url);

// "10.0.0.1:2380", "[::1]:2380"
std::string to_text(const Tcp::endpoint& endpoint);
// "unknown" when the connection is gone.
std::string remote_text(const Tcp::socket& socket);

// As etcd writes member and cluster ids.
std::string id_text(uint64_t id);

}  // namespace peer
