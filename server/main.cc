// The server: reads its flags, opens the member, listens, waits for a signal, closes in order. Exit codes: 0 asked to
// stop, 1 wrong flags, a start that failed, or a disk that failed while running.
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/log.h"
#include "base/thread.h"
#include "base/world.h"
#include "config/initial_cluster.h"
#include "config/parse.h"
#include "config/version.h"
#include "http/server.h"
#include "member/member.h"
#include "rpc/context.h"
#include "rpc/watch.h"

extern char** environ;

namespace {

constexpr auto kStopPatience = std::chrono::milliseconds(700);  // exit within 1.5 s of SIGTERM
constexpr auto kReadyPatience = std::chrono::seconds(3);
constexpr timespec kReadyPoll{.tv_sec = 0, .tv_nsec = 1'000'000};

std::vector<std::string> texts(const std::vector<config::Url>& urls) {
  std::vector<std::string> out;
  for (const config::Url& url : urls) out.push_back(url.text);
  return out;
}

member::Options member_options(const config::Options& from) {
  member::Options to;
  to.name = from.name;
  to.data_dir = from.data_dir;
  to.wal_dir = from.wal_dir;
  to.peer_urls = texts(from.initial_advertise_peer_urls);
  to.client_urls = texts(from.advertise_client_urls);
  to.cluster_token = from.initial_cluster_token;
  to.heartbeat_interval = from.heartbeat_interval;
  to.election_timeout = from.election_timeout;
  to.snapshot_count = from.snapshot_count;
  to.quota_bytes = from.quota_backend_bytes < 0 ? std::numeric_limits<int64_t>::max() : from.quota_backend_bytes;
  to.cache_bytes = from.cache_bytes;
  to.auto_compaction = {static_cast<member::AutoCompaction::Mode>(from.auto_compaction.mode),
                        from.auto_compaction.period, from.auto_compaction.revisions};
  to.watch_progress_interval =
      std::chrono::duration_cast<std::chrono::milliseconds>(from.watch_progress_notify_interval);
  return to;
}

http::ServerOptions server_options(const config::Options& from, http::BatchHooks hooks) {
  http::ServerOptions to;
  to.io_threads = from.io_threads;
  to.limits.request_bytes_max = from.max_request_bytes;
  // Some of the largest requests at a time, whatever their size.
  to.limits.requests_bytes_max = std::max(to.limits.requests_bytes_max, 4 * to.limits.body_bytes_max());
  to.hooks = std::move(hooks);
  return to;
}

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  return set;
}

std::string joined(const std::vector<std::string>& urls) {
  std::string out;
  for (const std::string& url : urls) out += (out.empty() ? "" : ",") + url;
  return out;
}

int failed(const Error& error) {
  log_error("conclave cannot start", {{"error", error.message}});
  std::fprintf(stderr, "conclave: %s\n", error.message.c_str());
  return 1;
}

// What the member says when it cannot go on; the signal only wakes main.
class MemberFailure {
 public:
  void tell(const Error& error) {
    {
      MutexLock lock(mutex_);
      if (!error_) error_ = error;
    }
    kill(getpid(), SIGTERM);
  }
  std::optional<Error> error() const {
    MutexLock lock(mutex_);
    return error_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<Error> error_ GUARDED_BY(mutex_);
};

void log_end(int signal, const MemberFailure& failure) {
  if (const auto error = failure.error()) {
    log_error("stopping because the member cannot go on", {{"error", error->message}});
  } else {
    log_info("stopping", {{"signal", signal}});
  }
}

// Until a signal asks to stop, or the member has to.
void serve(member::Member& member, rpc::LargeReads& large, http::Server& clients, http::Server& peers,
           const MemberFailure& failure) {
  const sigset_t signals = stop_signals();
  member.start();
  large.start();
  int signal = -1;
  Clock& clock = real_world().clock;
  const auto begin = clock.monotonic();
  bool serving = false;
  while (signal < 0 && !member.state().ready) {
    signal = sigtimedwait(&signals, nullptr, &kReadyPoll);
    if (!serving && clock.monotonic() > begin + kReadyPatience) {
      log_warn("not ready yet: clients are answered as far as that goes, and health says so");
      peers.start();
      clients.start();
      serving = true;
    }
  }
  if (signal < 0) {
    if (!serving) {
      peers.start();
      clients.start();
    }
    log_info("ready to serve client requests", {{"client_urls", joined(clients.urls())}});
    do {
      signal = sigwaitinfo(&signals, nullptr);
    } while (signal < 0);
  }
  log_end(signal, failure);
  clients.stop(kStopPatience);
  peers.stop(std::chrono::milliseconds(0));
  large.stop();
  member.stop();
}

// The ports are bound before the data folder is touched: one that is taken is the most common mistake.
int run(const config::Options& options) {
  rpc::Readers readers(options.io_threads);
  http::Router client_routes;
  http::Router peer_routes;
  http::Server clients(client_routes, server_options(options, readers.hooks()));
  if (auto bound = clients.listen(texts(options.listen_client_urls)); !bound) return failed(bound.error());
  http::Server peers(peer_routes, server_options(options, {}));
  if (auto bound = peers.listen(texts(options.listen_peer_urls)); !bound) return failed(bound.error());

  metrics::Registry metrics;
  MemberFailure failure;
  auto member = member::Member::open(real_world(), member_options(options), metrics,
                                     [&failure](const Error& error) { failure.tell(error); });
  if (!member) return failed(member.error());
  readers.serve(**member);

  const rpc::MemberHeader header(**member);
  rpc::Counters counters(metrics);
  rpc::LargeReads large({.reader = [&member] { return (*member)->reader(); },
                         .damaged = [&member](const Error& error) { (*member)->damaged(error); }});
  rpc::Context context{**member, header, readers, counters, {options.max_request_bytes, options.max_txn_ops}, &large};
  rpc::add_kv(client_routes, context);
  rpc::add_watch(client_routes, (*member)->watches(), header);
  rpc::add_lease(client_routes, context);
  rpc::add_cluster(client_routes, context);
  rpc::add_maintenance(client_routes, context);
  rpc::add_election(client_routes, context);
  rpc::add_later(client_routes);
  rpc::add_health(client_routes, context);
  rpc::add_version(client_routes);
  rpc::add_info(client_routes, context, metrics);
  rpc::add_version(peer_routes);
  rpc::add_peer_info(peer_routes, context);
  serve(**member, large, clients, peers, failure);
  return failure.error() ? 1 : 0;
}

// What the flags alone do not tell.
Status check_flags(config::Parsed& parsed) {
  TRY(config::unsupported_yet(parsed.options));
  std::error_code ignored;
  if (std::filesystem::exists(parsed.options.data_dir + "/CURRENT", ignored)) return {};  // a member's already
  return config::check_first_start(parsed.options, config::addresses_of, parsed.warnings);
}

}  // namespace

int main(int argc, char** argv) {
  auto parsed = config::parse(argc, argv, environ);
  if (!parsed) {
    std::fprintf(stderr, "conclave: %s\n", parsed.error().message.c_str());
    return 1;
  }
  if (parsed->print) {
    std::fputs(parsed->print->c_str(), stdout);
    return 0;
  }
  if (auto checked = check_flags(*parsed); !checked) {
    std::fprintf(stderr, "conclave: %s\n", checked.error().message.c_str());
    return 1;
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is told as a full disk
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (auto opened = open_log(parsed->options.log); !opened) {
    std::fprintf(stderr, "conclave: %s\n", opened.error().message.c_str());
    return 1;
  }
  for (const std::string& warning : parsed->warnings) log_warn(warning);
  log_info(
      "starting conclave",
      {{"version", config::kProgramVersion}, {"name", parsed->options.name}, {"data_dir", parsed->options.data_dir}});
  return run(parsed->options);
}
