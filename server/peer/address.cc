#include "peer/address.h"

#include <charconv>

namespace peer {

Result<Address> parse_url(std::string_view url) {
  const auto refuse = [&](Code code, const char* why) {
    return fail(code, "peer URL \"" + std::string(url) + "\": " + why);
  };
  const size_t colon = url.find("://");
  const std::string_view scheme = colon == std::string_view::npos ? "" : url.substr(0, colon);
  if (scheme == "https" || scheme == "unixs") {
    return refuse(Code::kUnimplemented, "TLS between members is not supported yet; use http://host:port");
  }
  if (scheme == "unix") return refuse(Code::kUnimplemented, "members reach each other over TCP; use http://host:port");
  if (scheme != "http") return refuse(Code::kInvalidArgument, "it must be http://host:port");
  std::string_view rest = url.substr(colon + 3);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const size_t last = rest.rfind(':');
  if (last == std::string_view::npos) return refuse(Code::kInvalidArgument, "it must be http://host:port");
  std::string_view host = rest.substr(0, last);
  const std::string_view port = rest.substr(last + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return refuse(Code::kInvalidArgument, "an IPv6 address stands in brackets, and no path may follow the port");
  }
  if (host.find_first_of("/?#@[] ") != std::string_view::npos) {
    return refuse(Code::kInvalidArgument, "the host is malformed");
  }
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size()) {
    return refuse(Code::kInvalidArgument, "the port must be a number from 0 to 65535");
  }
  return Address{.host = std::string(host), .port = std::string(port)};
}

std::string to_text(const Tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

std::string remote_text(const Tcp::socket& socket) {
  boost::system::error_code error;
  const Tcp::endpoint endpoint = socket.remote_endpoint(error);
  return error ? "unknown" : to_text(endpoint);
}

std::string id_text(uint64_t id) {
  char text[16];
  const auto end = std::to_chars(text, text + sizeof(text), id, 16).ptr;
  return {text, end};
}

}  // namespace peer
