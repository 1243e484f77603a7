// etcd's flags that do nothing here: because their subject does not exist in this server, or because it is still to
// come.
#include "config/flag.h"

namespace config {

namespace {

using Kind = Flag::Kind;

constexpr std::string_view kElection =
    "a member that starts waits between one and two election timeouts for a leader, and not at all when it is alone";
constexpr std::string_view kCompare =
    "members do not compare their contents by themselves; every page is checked when it is read, and hashkv compares";
constexpr std::string_view kCatchUp = "what a member lacks is kept for it while it catches up, within fixed limits";
constexpr std::string_view kPeerTimes = "connections between members have time limits of their own";
constexpr std::string_view kDowngrade = "the cluster's version cannot be lowered";
constexpr std::string_view kReady = "the server waits three seconds for a leader, then serves as far as that goes";
constexpr std::string_view kEngine = "it tunes etcd's storage engine; this server has another";
constexpr std::string_view kProfiling = "it is about Go's runtime; use perf on this server";
constexpr std::string_view kRetention = "log segments and snapshots are kept exactly as long as they are needed";
constexpr std::string_view kCompaction = "compaction always works in slices of at most 2 ms between writes";
constexpr std::string_view kGone = "etcd's v2 API and proxy do not exist here";

constexpr std::string_view kTls = "TLS comes with a later release; leave it out, and put a TLS proxy before the server";
constexpr std::string_view kAuth = "users and roles come with a later release; leave it out";
constexpr std::string_view kStreams = "a connection may have 16,384 open calls; leave it out";
constexpr std::string_view kPings = "clients may ping as often as they like; leave it out";
constexpr std::string_view kKeepalive = "a client that is gone is noticed by TCP's keepalive, in 90 s; leave it out";
constexpr std::string_view kDiscovery = "discovery comes with a later release; leave it out";
constexpr std::string_view kTracing = "tracing comes with a later release; leave it out";
constexpr std::string_view kSlow = "slow requests are not logged yet; leave it out";
constexpr std::string_view kListeners =
    "more listeners come with a later release; --listen-client-urls serves everything";

Flag no_effect(std::string_view name, Kind kind, std::string_view why, std::string_view values = "") {
  return {.name = name,
          .kind = kind,
          .standing = Flag::Standing::kNoEffect,
          .group = {},
          .initial = {},
          .text = why,
          .legal = {},
          .values = values,
          .store = {}};
}

Flag missing(std::string_view name, Kind kind, std::string_view advice, std::string_view harmless) {
  return {.name = name,
          .kind = kind,
          .standing = Flag::Standing::kMissing,
          .group = {},
          .initial = {},
          .text = advice,
          .legal = {},
          .values = harmless,
          .store = {}};
}

std::vector<Flag> make() {
  return {
      no_effect("initial-election-tick-advance", Kind::kSwitch, kElection),
      no_effect("initial-corrupt-check", Kind::kSwitch, kCompare),
      no_effect("corrupt-check-time", Kind::kDuration, kCompare),
      no_effect("compact-hash-check-enabled", Kind::kSwitch, kCompare),
      no_effect("compact-hash-check-time", Kind::kDuration, kCompare),
      no_effect("snapshot-catchup-entries", Kind::kNumber, kCatchUp),
      no_effect("raft-read-timeout", Kind::kDuration, kPeerTimes),
      no_effect("raft-write-timeout", Kind::kDuration, kPeerTimes),
      no_effect("downgrade-check-time", Kind::kDuration, kDowngrade),
      no_effect("wait-cluster-ready-timeout", Kind::kDuration, kReady),

      no_effect("backend-batch-interval", Kind::kDuration, kEngine),
      no_effect("backend-batch-limit", Kind::kNumber, kEngine),
      no_effect("backend-bbolt-freelist-type", Kind::kText, kEngine, "array|map"),
      no_effect("txn-mode-write-with-shared-buffer", Kind::kSwitch, kEngine),
      no_effect("bootstrap-defrag-threshold-megabytes", Kind::kNumber, kEngine),
      no_effect("enable-pprof", Kind::kSwitch, kProfiling),
      no_effect("max-wals", Kind::kNumber, kRetention),
      no_effect("max-snapshots", Kind::kNumber, kRetention),
      no_effect("compaction-batch-limit", Kind::kNumber, kCompaction),
      no_effect("compaction-sleep-interval", Kind::kDuration, kCompaction),
      no_effect("unsafe-no-fsync", Kind::kSwitch, "this server always syncs before it acknowledges"),
      no_effect("enable-lease-checkpoint", Kind::kSwitch, "remaining lease times are always kept over restarts"),
      no_effect("enable-lease-checkpoint-persist", Kind::kSwitch,
                "remaining lease times are always kept over restarts"),
      no_effect("v2-deprecation", Kind::kText, kGone, "not-yet|write-only|write-only-drop-data|gone"),
      no_effect("enable-v2", Kind::kSwitch, kGone),
      no_effect("enable-v2v3", Kind::kText, kGone),

      missing("config-file", Kind::kText, "give its settings as flags or ETCD_... variables", ""),
      missing("cert-file", Kind::kText, kTls, ""),
      missing("key-file", Kind::kText, kTls, ""),
      missing("client-cert-file", Kind::kText, kTls, ""),
      missing("client-key-file", Kind::kText, kTls, ""),
      missing("client-cert-auth", Kind::kSwitch, kTls, "false"),
      missing("client-crl-file", Kind::kText, kTls, ""),
      missing("client-cert-allowed-hostname", Kind::kText, kTls, ""),
      missing("trusted-ca-file", Kind::kText, kTls, ""),
      missing("auto-tls", Kind::kSwitch, kTls, "false"),
      missing("peer-cert-file", Kind::kText, kTls, ""),
      missing("peer-key-file", Kind::kText, kTls, ""),
      missing("peer-client-cert-auth", Kind::kSwitch, kTls, "false"),
      missing("peer-client-cert-file", Kind::kText, kTls, ""),
      missing("peer-client-key-file", Kind::kText, kTls, ""),
      missing("peer-trusted-ca-file", Kind::kText, kTls, ""),
      missing("peer-cert-allowed-cn", Kind::kText, kTls, ""),
      missing("peer-cert-allowed-hostname", Kind::kText, kTls, ""),
      missing("peer-auto-tls", Kind::kSwitch, kTls, "false"),
      missing("peer-crl-file", Kind::kText, kTls, ""),
      missing("peer-skip-client-san-verification", Kind::kSwitch, kTls, "false"),
      missing("self-signed-cert-validity", Kind::kNumber, kTls, "1"),
      missing("cipher-suites", Kind::kText, kTls, ""),
      missing("tls-min-version", Kind::kText, kTls, "TLS1.2"),
      missing("tls-max-version", Kind::kText, kTls, ""),

      missing("auth-token", Kind::kText, kAuth, "simple|"),
      missing("auth-token-ttl", Kind::kNumber, kAuth, "300"),
      missing("bcrypt-cost", Kind::kNumber, kAuth, "10"),

      missing("max-concurrent-streams", Kind::kNumber, kStreams, "4294967295"),
      missing("grpc-keepalive-min-time", Kind::kDuration, kPings, "5s"),
      missing("grpc-keepalive-interval", Kind::kDuration, kKeepalive, "2h"),
      missing("grpc-keepalive-timeout", Kind::kDuration, kKeepalive, "20s"),
      missing("enable-grpc-gateway", Kind::kSwitch, "the JSON gateway cannot be switched off yet; leave it out",
              "true"),

      missing("listen-client-http-urls", Kind::kText, kListeners, ""),
      missing("listen-metrics-urls", Kind::kText, kListeners, ""),
      missing("socket-reuse-port", Kind::kSwitch, kListeners, "false"),
      missing("socket-reuse-address", Kind::kSwitch, kListeners, "false"),
      missing("cors", Kind::kText, "every origin may ask; leave it out", "*|"),
      missing("host-whitelist", Kind::kText, "every host name is accepted; leave it out", "*|"),

      missing("discovery", Kind::kText, kDiscovery, ""),
      missing("discovery-token", Kind::kText, kDiscovery, ""),
      missing("discovery-endpoints", Kind::kText, kDiscovery, ""),
      missing("discovery-dial-timeout", Kind::kDuration, kDiscovery, "2s"),
      missing("discovery-request-timeout", Kind::kDuration, kDiscovery, "5s"),
      missing("discovery-keepalive-time", Kind::kDuration, kDiscovery, "2s"),
      missing("discovery-keepalive-timeout", Kind::kDuration, kDiscovery, "6s"),
      missing("discovery-insecure-transport", Kind::kSwitch, kDiscovery, "true"),
      missing("discovery-insecure-skip-tls-verify", Kind::kSwitch, kDiscovery, "false"),
      missing("discovery-cert", Kind::kText, kDiscovery, ""),
      missing("discovery-key", Kind::kText, kDiscovery, ""),
      missing("discovery-cacert", Kind::kText, kDiscovery, ""),
      missing("discovery-user", Kind::kText, kDiscovery, ""),
      missing("discovery-password", Kind::kText, kDiscovery, ""),
      missing("discovery-fallback", Kind::kText, kDiscovery, "exit"),
      missing("discovery-proxy", Kind::kText, kDiscovery, ""),
      missing("discovery-srv", Kind::kText, kDiscovery, ""),
      missing("discovery-srv-name", Kind::kText, kDiscovery, ""),

      missing("metrics", Kind::kText, "there is one set of metrics; leave it out", "basic"),
      missing("warning-apply-duration", Kind::kDuration, kSlow, "100ms"),
      missing("warning-unary-request-duration", Kind::kDuration, kSlow, "300ms"),
      missing("logger", Kind::kText, "--log-format chooses between json and console; leave it out", "zap"),
      missing("enable-log-rotation", Kind::kSwitch, "let logrotate or the journal rotate the log", "false"),
      missing("log-rotation-config-json", Kind::kText, "let logrotate or the journal rotate the log",
              R"({"maxsize": 100, "maxage": 0, "maxbackups": 0, "localtime": false, "compress": false}|)"),
      missing("enable-distributed-tracing", Kind::kSwitch, kTracing, "false"),
      missing("distributed-tracing-address", Kind::kText, kTracing, "localhost:4317"),
      missing("distributed-tracing-service-name", Kind::kText, kTracing, "etcd"),
      missing("distributed-tracing-instance-id", Kind::kText, kTracing, ""),
      missing("distributed-tracing-sampling-rate", Kind::kNumber, kTracing, "0"),

      missing("memory-mlock", Kind::kSwitch, "switch swap off for the server's control group instead", "false"),
      missing("stop-grpc-service-on-defrag", Kind::kSwitch, "there is no defragmentation yet; leave it out", "false"),
      missing("max-learners", Kind::kNumber, "a cluster has one learner at a time; leave it out", "1"),
      missing("set-member-localaddr", Kind::kSwitch,
              "the system chooses the address that members connect from; leave it out", "false"),
  };
}

}  // namespace

const std::vector<Flag>& flags_of_others() {
  static const std::vector<Flag> flags = make();
  return flags;
}

}  // namespace config
