// The server from its ports to its end. A member that gets a snapshot is closed and opened again with the new state, in
// this process.
#include "run.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <future>
#include <optional>

#include "base/log.h"
#include "base/thread.h"
#include "base/world.h"
#include "config/initial_cluster.h"
#include "http/server.h"
#include "member/member.h"
#include "member/snapshot_install.h"
#include "peer/network.h"
#include "rpc/context.h"
#include "rpc/watch.h"

namespace {

// Together they let it exit within 1.5 s of SIGTERM.
constexpr auto kHandOverPatience = std::chrono::milliseconds(400);
constexpr auto kStopPatience = std::chrono::milliseconds(700);
constexpr auto kReadyPatience = std::chrono::seconds(3);
constexpr int kWakeMain = SIGUSR1;  // the member has something to tell; otherwise it means nothing
constexpr timespec kReadyPoll{.tv_sec = 0, .tv_nsec = 1'000'000};
constexpr timespec kMemoryPoll{.tv_sec = 1, .tv_nsec = 0};

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
  for (const config::InitialMember& member : from.initial_cluster) {
    to.initial_cluster.push_back({member.name, texts(member.peer_urls)});
  }
  to.join_existing = from.existing;
  to.force_new_cluster = from.force_new_cluster;
  to.strict_reconfig_check = from.strict_reconfig_check;
  to.pre_vote = from.pre_vote;
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

http::ServerOptions server_options(const config::Options& from, size_t connections_max, http::BatchHooks hooks) {
  http::ServerOptions to;
  to.io_threads = from.io_threads;
  to.limits.connections_max = connections_max;
  to.limits.request_bytes_max = from.max_request_bytes;
  // Some of the largest requests at a time, whatever their size.
  to.limits.requests_bytes_max = std::max(to.limits.requests_bytes_max, 4 * to.limits.body_bytes_max());
  to.hooks = std::move(hooks);
  return to;
}

std::string joined(const std::vector<std::string>& urls) {
  std::string out;
  for (const std::string& url : urls) out += (out.empty() ? "" : ",") + url;
  return out;
}

Error with_advice(Error error, const char* flag) {
  if (error.code == Code::kUnavailable) error.message += std::string("; stop what uses it, or choose another ") + flag;
  return error;
}

int failed(const Error& error) {
  log_error("conclave cannot start", {{"error", error.message}});
  std::fprintf(stderr, "conclave: %s\n", error.message.c_str());
  return 1;
}

// What the member says when it cannot go on as it is; the signal only wakes main.
class MemberEnd {
 public:
  void fail(const Error& error) {
    {
      MutexLock lock(mutex_);
      if (!error_) error_ = error;
    }
    kill(getpid(), kWakeMain);
  }
  void replace(const member::Generation& generation) {
    {
      MutexLock lock(mutex_);
      replacement_ = generation;
    }
    kill(getpid(), kWakeMain);
  }
  std::optional<Error> error() const {
    MutexLock lock(mutex_);
    return error_;
  }
  std::optional<member::Generation> replacement() const {
    MutexLock lock(mutex_);
    return replacement_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<Error> error_ GUARDED_BY(mutex_);
  std::optional<member::Generation> replacement_ GUARDED_BY(mutex_);
};

void log_end(int signal, const MemberEnd& end) {
  if (const auto error = end.error()) {
    log_error("stopping because the member cannot go on", {{"error", error->message}});
  } else if (end.replacement()) {
    log_info("clients are disconnected while the state of a snapshot is put in place");
  } else {
    log_info("stopping", {{"signal", signal}});
  }
}

// malloc keeps what is freed for the thread that had it: after a flood of large requests or answers that may be
// hundreds of megabytes. They are given back when no more is in use; that stops an arena for some ten milliseconds, so
// it has to be worth it.
class FreedMemory {
 public:
  void look(size_t buffered) {
    const size_t resident = resident_bytes();
    base_ = std::min(base_, resident);
    if (buffered > kBufferedMax || (resident < base_ + kWorthBytes && !again_)) return;
    malloc_trim(0);
    base_ = resident_bytes();
    again_ = base_ + kWorthBytes / 4 < resident;  // the flood may still be draining
  }

 private:
  static constexpr size_t kBufferedMax = 1 << 20;
  static constexpr size_t kWorthBytes = 32 << 20;

  // 0 when /proc is not to be had.
  static size_t resident_bytes() {
    unsigned long total = 0;
    unsigned long resident = 0;
    if (FILE* file = std::fopen("/proc/self/statm", "re")) {
      if (std::fscanf(file, "%lu %lu", &total, &resident) != 2) resident = 0;
      std::fclose(file);
    }
    return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  }

  size_t base_ = resident_bytes();  // what there is at least
  bool again_ = false;
};

// The others need no election timeout to find out that a leader is gone which hands over before. Clients are still
// served meanwhile: by its successor, at the end.
void hand_over(member::Member& member) {
  auto over = std::make_shared<std::promise<bool>>();
  auto result = over->get_future();
  member.transfer_leadership(raft::kNobody, [over](const Status& status) { over->set_value(status.has_value()); });
  if (result.wait_for(kHandOverPatience) != std::future_status::ready) {
    log_warn("no other member has taken over; they will elect a leader");
  } else if (result.get()) {
    log_info("another member leads now");
  }
}

// Until a signal asks to stop, or the member has to: which signal.
int serve(member::Member& member, rpc::LargeReads& large, http::Server& clients, http::Server& peers,
          const MemberEnd& end) {
  const sigset_t signals = stop_signals();
  peers.start();  // the member's network hands it what is no member
  member.start();
  large.start();
  int signal = -1;
  Clock& clock = real_world().clock;
  const auto begin = clock.monotonic();
  bool serving = false;
  const auto is_over = [&] { return signal >= 0 && (signal != kWakeMain || end.error() || end.replacement()); };
  while (!is_over() && !member.state().ready) {
    signal = sigtimedwait(&signals, nullptr, &kReadyPoll);
    if (!serving && clock.monotonic() > begin + kReadyPatience) {
      log_warn("not ready yet: clients are answered as far as that goes, and health says so");
      clients.start();
      serving = true;
    }
  }
  if (!is_over()) {
    if (!serving) clients.start();
    log_info("ready to serve client requests", {{"client_urls", joined(clients.urls())}});
    FreedMemory freed;
    while (!is_over()) {
      signal = sigtimedwait(&signals, nullptr, &kMemoryPoll);
      freed.look(clients.counters().requests_bytes + large.stats().bytes);
    }
  }
  log_end(signal, end);
  if (!end.error() && !end.replacement()) hand_over(member);
  clients.stop(kStopPatience);
  peers.stop(std::chrono::milliseconds(0));
  large.stop();
  member.stop();
  return signal;
}

// The ports are bound before the data folder is touched: one that is taken is the most common mistake.
struct Replacement {
  member::Generation generation;
  uint64_t applied = 0;  // by the store that is replaced
};

int run_once(const config::Options& options, const Descriptors& descriptors, std::optional<Replacement>& replacement) {
  rpc::Readers readers(options.io_threads);
  http::Router client_routes;
  http::Router peer_routes;
  http::Server clients(client_routes, server_options(options, descriptors.clients_max, readers.hooks()));
  if (auto bound = clients.listen(texts(options.listen_client_urls)); !bound) {
    return failed(with_advice(bound.error(), "--listen-client-urls"));
  }
  auto peer_port = peer::Listener::bind(texts(options.listen_peer_urls));
  if (!peer_port) return failed(with_advice(peer_port.error(), "--listen-peer-urls"));
  http::Server peers(peer_routes, server_options(options, descriptors.requests_of_peer_port_max, {}));

  metrics::Registry metrics;
  MemberEnd end;
  auto member = member::Member::open(
      real_world(), member_options(options), metrics,
      {.on_failure = [&end](const Error& error) { end.fail(error); },
       .network =
           [&](uint64_t cluster_id, uint64_t member_id, uint64_t folder_id) {
             return peer::make_network({.cluster_id = cluster_id,
                                        .member_id = member_id,
                                        .folder_id = folder_id,
                                        .own_urls = texts(options.initial_advertise_peer_urls),
                                        .listener = std::move(*peer_port),
                                        .election_timeout = options.election_timeout,
                                        .take_http = [&peers](int socket) { peers.adopt(socket); }},
                                       metrics);
           },
       .ask_cluster = [](const std::vector<std::string>& urls) { return peer::ask_cluster(urls); },
       .on_replace = [&end](const member::Generation& generation) { end.replace(generation); }});
  if (!member) return failed(member.error());
  readers.serve(**member);

  const rpc::MemberHeader header(**member);
  rpc::Counters counters(metrics);
  rpc::LargeReads large({.reader = [&member] { return (*member)->reader(); },
                         .damaged = [&member](const Error& error) { (*member)->damaged(error); }});
  rpc::Context context{**member, header, readers, counters, {options.max_request_bytes, options.max_txn_ops}, &large};
  client_routes.admit(rpc::admission(**member));
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
  const int signal = serve(**member, large, clients, peers, end);
  if (const auto generation = end.replacement(); generation && !end.error() && signal == kWakeMain) {
    replacement = Replacement{*generation, (*member)->state().published.applied_index};
  }
  return end.error() ? 1 : 0;
}

}  // namespace

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, kWakeMain}) sigaddset(&set, signal);
  return set;
}

int run(const config::Options& first, const Descriptors& descriptors) {
  config::Options options = first;
  while (true) {
    std::optional<Replacement> replacement;
    const int code = run_once(options, descriptors, replacement);
    if (!replacement) return code;
    const Status put =
        member::put_in_force(real_world().disk, member_options(options), replacement->generation, replacement->applied);
    if (!put && put.error().code != Code::kFailedPrecondition) return failed(put.error());
    if (!put) log_warn("the state of a snapshot is not used", {{"reason", put.error().message}});
    options.force_new_cluster = false;
  }
}
