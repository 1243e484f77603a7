// The rules between flags, in etcd's words where it has them (server/embed/config.go, server/config/config.go).
#include <algorithm>
#include <charconv>

#include "config/duration.h"
#include "config/flag.h"
#include "config/initial_cluster.h"

namespace config {

namespace {

auto refuse(std::string message) { return fail(Code::kInvalidArgument, std::move(message)); }

bool is_ip_address(const std::string& host) {
  const auto all = [&](std::string_view characters) { return host.find_first_not_of(characters) == std::string::npos; };
  if (host.find(':') != std::string::npos) return all("0123456789abcdefABCDEF:.");
  int parts = 0;
  for (std::string_view rest = host; parts < 4; ++parts) {
    uint8_t part = 0;
    const size_t dot = rest.find('.');
    const std::string_view digits = rest.substr(0, dot);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), part);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return false;
    if (dot == std::string_view::npos) return parts == 3;
    rest.remove_prefix(dot + 1);
  }
  return false;
}

Status check_listen(std::string_view flag, const std::vector<Url>& urls) {
  for (const Url& url : urls) {
    if (url.is_secure()) {
      return refuse(
          std::string(flag) + ": \"" + url.text +
          "\" is not supported yet: TLS comes with a later release; listen on http and put a TLS proxy before it");
    }
    if (!url.is_socket() && url.host != "localhost" && !is_ip_address(url.host)) {
      return refuse(std::string(flag) + ": expected an IP address or localhost in URL for binding (" + url.text + ")");
    }
  }
  return {};
}

Status check_advertised(std::string_view flag, const std::vector<Url>& urls) {
  for (const Url& url : urls) {
    if (!url.is_socket() && url.host.empty()) {
      return refuse(std::string(flag) + " \"" + join(urls) + "\" must be \"host:port\" (unexpected empty host (" +
                    url.text + "))");
    }
  }
  return {};
}

// Members talk over plain HTTP ports.
Status check_peer(std::string_view flag, const std::vector<Url>& urls) {
  for (const Url& url : urls) {
    if (url.is_secure()) {
      return refuse(std::string(flag) + ": \"" + url.text +
                    "\" is not supported yet: TLS between members comes with a later release; use http");
    }
  }
  return {};
}

bool is_loopback(const Url& url) {
  return url.host == "localhost" || url.host == "::1" || url.host.starts_with("127.");
}

void warn_of_mistakes(Draft& draft) {
  const Options& options = draft.options;
  if (options.initial_cluster.size() < 2) return;
  if (options.name == Options{}.name) {
    draft.warnings.push_back("--name is \"default\": give each member a name of its own, or their URLs get mixed up");
  }
  const auto all_loopback = [](const std::vector<Url>& urls) {
    return std::all_of(urls.begin(), urls.end(), is_loopback);
  };
  if (all_loopback(options.listen_peer_urls) && !all_loopback(options.initial_advertise_peer_urls)) {
    draft.warnings.push_back("--listen-peer-urls " + join(options.listen_peer_urls) +
                             " takes connections from this machine only, but other members are told " +
                             join(options.initial_advertise_peer_urls) +
                             "; listen on http://0.0.0.0:2380 or on an address of the network");
  }
}

Status make_cluster(Draft& draft) {
  Options& options = draft.options;
  TRY(check_peer("--initial-advertise-peer-urls", options.initial_advertise_peer_urls));
  TRY_ASSIGN(options.initial_cluster, parse_initial_cluster(draft.initial_cluster));
  if (options.initial_cluster.empty()) {
    options.initial_cluster = {{options.name, options.initial_advertise_peer_urls}};
  }
  bool has_self = false;
  for (const InitialMember& member : options.initial_cluster) {
    TRY(check_peer("--initial-cluster", member.peer_urls));
    TRY(check_advertised("--initial-cluster", member.peer_urls));
    has_self = has_self || member.name == options.name;
  }
  if (!has_self) {
    return refuse("couldn't find local name \"" + options.name +
                  "\" in the initial cluster configuration (--initial-cluster=" + draft.initial_cluster +
                  "); start this member with --name set to its name there");
  }
  warn_of_mistakes(draft);
  return {};
}

Result<AutoCompaction> make_auto_compaction(std::string_view mode, std::string_view retention) {
  AutoCompaction made;
  const auto number = parse_number(retention);
  if (number && *number == 0) return made;
  if (mode == "revision") {
    if (!number || *number < 0) {
      return refuse("--auto-compaction-retention: illegal value \"" + std::string(retention) +
                    "\"; legal with --auto-compaction-mode=revision: a number of revisions, 0 for none");
    }
    return AutoCompaction{.mode = AutoCompaction::Mode::kRevision, .revisions = *number};
  }
  std::optional<std::chrono::nanoseconds> period;
  constexpr int64_t kHoursMax = int64_t{24} * 365 * 100;
  if (number && *number >= 0 && *number <= kHoursMax) period = std::chrono::hours(*number);
  if (!number) period = parse_duration(retention);
  if (!period || period->count() < 0) {
    return refuse(
        "--auto-compaction-retention: illegal value \"" + std::string(retention) +
        "\"; legal with --auto-compaction-mode=periodic: whole hours (5) or a duration (5m, 1h30m), 0 for none");
  }
  if (period->count() == 0) return made;
  return AutoCompaction{.mode = AutoCompaction::Mode::kPeriodic, .period = *period, .revisions = 0};
}

Status fill_defaults(Draft& draft) {
  Options& options = draft.options;
  const auto fill = [](std::vector<Url>& urls, std::string_view url) -> Status {
    if (!urls.empty()) return {};
    TRY_ASSIGN(urls, parse_urls(url));
    return {};
  };
  TRY(fill(options.listen_client_urls, "http://localhost:2379"));
  TRY(fill(options.advertise_client_urls, "http://localhost:2379"));
  TRY(fill(options.listen_peer_urls, "http://localhost:2380"));
  TRY(fill(options.initial_advertise_peer_urls, "http://localhost:2380"));
  if (options.data_dir.empty()) options.data_dir = options.name + ".etcd";
  return {};
}

}  // namespace

Status check(Draft& draft) {
  Options& options = draft.options;
  // Ports of a listener that was moved are not guessed: clients would be sent to a server that is not there.
  if (draft.listen_client_urls_given && !draft.advertise_client_urls_given) {
    return refuse("--advertise-client-urls is required when --listen-client-urls is set explicitly");
  }
  TRY(fill_defaults(draft));
  TRY(check_listen("--listen-client-urls", options.listen_client_urls));
  TRY(check_listen("--listen-peer-urls", options.listen_peer_urls));
  TRY(check_advertised("--advertise-client-urls", options.advertise_client_urls));
  TRY(check_advertised("--initial-advertise-peer-urls", options.initial_advertise_peer_urls));
  const std::string heartbeat = std::to_string(options.heartbeat_interval.count());
  const std::string election = std::to_string(options.election_timeout.count());
  if (5 * options.heartbeat_interval > options.election_timeout) {
    return refuse("--election-timeout[" + election + "ms] should be at least as 5 times as --heartbeat-interval[" +
                  heartbeat + "ms]");
  }
  TRY(make_cluster(draft));
  TRY_ASSIGN(options.auto_compaction,
             make_auto_compaction(draft.auto_compaction_mode, draft.auto_compaction_retention));
  return {};
}

}  // namespace config
