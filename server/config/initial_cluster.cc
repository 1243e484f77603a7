// In etcd's words where it has them (server/config/config.go, pkg/netutil).
#include "config/initial_cluster.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <map>

namespace config {

namespace {

auto refuse(std::string message) { return fail(Code::kInvalidArgument, std::move(message)); }

auto illegal(std::string_view text, std::string_view why) {
  return refuse("--initial-cluster: illegal value \"" + std::string(text) + "\"; legal: name=URL, comma separated (" +
                std::string(why) + ")");
}

bool share_one(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

enum class Same : uint8_t { kYes, kNo, kUnknown };

// Two lists of URLs that differ as texts.
class Comparison {
 public:
  explicit Comparison(const Resolve& resolve) : resolve_(resolve) {}

  Same compare(const std::vector<Url>& a, std::vector<Url> b) {
    if (a.size() != b.size()) return Same::kNo;
    Same all = Same::kYes;
    for (const Url& url : a) {
      const auto found = [&](Same wanted) {
        return std::find_if(b.begin(), b.end(), [&](const Url& other) { return compare(url, other) == wanted; });
      };
      auto match = found(Same::kYes);
      if (match == b.end()) {
        match = found(Same::kUnknown);
        all = Same::kUnknown;
      }
      if (match == b.end()) return Same::kNo;
      b.erase(match);
    }
    return all;
  }

  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  Same compare(const Url& a, const Url& b) {
    if (a == b) return Same::kYes;
    if (a.scheme != b.scheme || a.port != b.port || a.is_socket()) return Same::kNo;
    const auto& left = addresses(a.host);
    const auto& right = addresses(b.host);
    if (left.empty() || right.empty()) return Same::kUnknown;
    return share_one(left, right) ? Same::kYes : Same::kNo;
  }

  const std::vector<std::string>& addresses(const std::string& host) {
    const auto known = known_.find(host);
    if (known != known_.end()) return known->second;
    const auto& found = known_.emplace(host, resolve_(host)).first->second;
    if (found.empty()) unknown_.push_back(host);
    return found;
  }

  const Resolve& resolve_;
  std::map<std::string, std::vector<std::string>> known_;
  std::vector<std::string> unknown_;
};

bool has(const std::vector<Url>& urls, const Url& url) {
  return std::find(urls.begin(), urls.end(), url) != urls.end();
}

Status refuse_difference(const Options& options, const std::vector<Url>& listed) {
  constexpr std::string_view kAdvice = "; give this member the same URLs in both";
  for (const Url& url : listed) {
    if (!has(options.initial_advertise_peer_urls, url)) {
      return refuse("--initial-cluster has " + options.name + "=" + url.text +
                    " but missing from --initial-advertise-peer-urls=" + join(options.initial_advertise_peer_urls) +
                    std::string(kAdvice));
    }
  }
  for (const Url& url : options.initial_advertise_peer_urls) {
    if (!has(listed, url)) {
      return refuse("--initial-advertise-peer-urls has " + url.text +
                    " but missing from --initial-cluster=" + join(options.initial_cluster) + std::string(kAdvice));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<InitialMember>> parse_initial_cluster(std::string_view text) {
  std::map<std::string, std::vector<Url>> members;
  std::vector<std::string> seen;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals + 1 == pair.size()) {
      return illegal(text, "\"" + std::string(pair) + "\" is not");
    }
    std::string name(pair.substr(0, equals));
    name.erase(0, name.find_first_not_of(' '));
    if (name.empty()) return illegal(text, "\"" + std::string(pair) + "\" has no name");
    auto url = parse_url(pair.substr(equals + 1));
    if (!url) return illegal(text, url.error().message);
    if (std::find(seen.begin(), seen.end(), url->text) != seen.end()) {
      return refuse("initial cluster " + std::string(text) + " has duplicate url " + url->text +
                    " (--initial-cluster); each URL belongs to one member, and is given once");
    }
    seen.push_back(url->text);
    members[name].push_back(std::move(*url));
  }
  std::vector<InitialMember> list;
  for (auto& [name, urls] : members) {
    std::sort(urls.begin(), urls.end(), [](const Url& a, const Url& b) { return a.text < b.text; });
    list.push_back({name, std::move(urls)});
  }
  return list;
}

std::string join(const std::vector<InitialMember>& members) {
  std::string joined;
  for (const InitialMember& member : members) {
    for (const Url& url : member.peer_urls) {
      joined.append(joined.empty() ? "" : ",").append(member.name).append("=").append(url.text);
    }
  }
  return joined;
}

std::vector<std::string> addresses_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::vector<std::string> addresses;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* address = at->ai_family == AF_INET6
                              ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(at->ai_addr)->sin6_addr)
                              : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(at->ai_addr)->sin_addr);
    if (inet_ntop(at->ai_family, address, text.data(), text.size()) != nullptr) addresses.emplace_back(text.data());
  }
  freeaddrinfo(found);
  return addresses;
}

Status check_first_start(const Options& options, const Resolve& resolve, std::vector<std::string>& warnings) {
  if (options.existing) {
    if (options.initial_cluster.size() > 1) return {};
    return refuse(
        "--initial-cluster-state existing joins a cluster that runs, but --initial-cluster=" +
        join(options.initial_cluster) +
        " names no other member; add this member there first (member add), and give --initial-cluster all members");
  }
  const auto self = std::find_if(options.initial_cluster.begin(), options.initial_cluster.end(),
                                 [&](const InitialMember& member) { return member.name == options.name; });
  if (self == options.initial_cluster.end()) return {};  // refused by parse()
  if (self->peer_urls == options.initial_advertise_peer_urls) return {};
  Comparison comparison(resolve);
  switch (comparison.compare(options.initial_advertise_peer_urls, self->peer_urls)) {
    case Same::kYes:
      return {};
    case Same::kNo:
      return refuse_difference(options, self->peer_urls);
    case Same::kUnknown:
      break;
  }
  std::string names;
  for (const std::string& name : comparison.unknown()) names.append(names.empty() ? "" : ", ").append(name);
  warnings.push_back(
      "cannot tell yet whether --initial-advertise-peer-urls=" + join(options.initial_advertise_peer_urls) +
      " is what --initial-cluster has for " + options.name + ": not resolved: " + names + "; starting nevertheless");
  return {};
}

}  // namespace config
