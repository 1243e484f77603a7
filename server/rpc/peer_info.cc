// What the peer port answers to tools: /version and /members. Peers themselves join it with clusters of several
// members.
#include <array>

#include "config/version.h"
#include "rpc/context.h"

namespace rpc {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? "," : "") + quoted(text);
  return out + "]";
}

}  // namespace

void add_peer_info(http::Router& router, Context& context) {
  router.plain({.path = "/members", .handler = [&context](const http::PlainRequest&, http::PlainReply reply) {
                  std::string body = "[";
                  for (const apply::Member& member : context.member.members()) {
                    body += (body.size() > 1 ? "," : "") + std::string("{\"id\":") + std::to_string(member.id) +
                            ",\"peerURLs\":" + list(member.peer_urls) + ",\"name\":" + quoted(member.name) +
                            ",\"clientURLs\":" + list(member.client_urls) + "}";
                  }
                  reply.send({.content_type = "application/json", .body = body + "]\n", .headers = {}});
                }});
}

}  // namespace rpc
