// The flags that work, in the order of --help.
#include <algorithm>
#include <limits>

#include "config/duration.h"
#include "config/flag.h"

namespace config {

namespace {

using Kind = Flag::Kind;
using Store = std::function<Result<bool>(Draft&, std::string_view)>;

constexpr std::string_view kMember = "Member";
constexpr std::string_view kClustering = "Clustering";
constexpr std::string_view kLimits = "Limits";
constexpr std::string_view kHistory = "History";
constexpr std::string_view kLogging = "Logging";
constexpr std::string_view kOurs = "Conclave's own";

constexpr std::string_view kLegalUrls =
    "comma separated URLs of the form http://host:port or unix://file, such as http://127.0.0.1:2379";
constexpr uint64_t kRequestBytesMax = uint64_t{512} * 1024 * 1024;  // well below the store's limit for one row
constexpr uint64_t kCacheBytesMin = uint64_t{1} * 1024 * 1024;
constexpr uint32_t kIoThreadsMax = 64;

Flag works(std::string_view group, std::string_view name, Kind kind, std::string_view initial, std::string_view text,
           std::string_view legal, Store store) {
  return {.name = name,
          .kind = kind,
          .standing = Flag::Standing::kWorks,
          .group = group,
          .initial = initial,
          .text = text,
          .legal = legal,
          .values = {},
          .store = std::move(store)};
}

Store store_text(std::string Options::*member, bool may_be_empty) {
  return [=](Draft& draft, std::string_view value) -> Result<bool> {
    if (value.empty() && !may_be_empty) return false;
    draft.options.*member = value;
    return true;
  };
}

template <class Integer>
Store store_number(Integer Options::*member, uint64_t min, uint64_t max) {
  return [=](Draft& draft, std::string_view value) -> Result<bool> {
    const auto number = parse_number(value);
    if (!number || *number < 0) return false;
    const auto unsigned_number = static_cast<uint64_t>(*number);
    if (unsigned_number < min || unsigned_number > max) return false;
    draft.options.*member = static_cast<Integer>(unsigned_number);
    return true;
  };
}

Store store_milliseconds(std::chrono::milliseconds Options::*member, int64_t max) {
  return [=](Draft& draft, std::string_view value) -> Result<bool> {
    const auto number = parse_number(value);
    if (!number || *number < 1 || *number > max) return false;
    draft.options.*member = std::chrono::milliseconds(*number);
    return true;
  };
}

// `given` notes that the flag was set, for checks.cc.
Store store_urls(std::vector<Url> Options::*member, bool Draft::*given = nullptr) {
  return [=](Draft& draft, std::string_view value) -> Result<bool> {
    auto urls = parse_urls(value);
    if (!urls) return false;
    draft.options.*member = std::move(*urls);
    if (given != nullptr) draft.*given = true;
    return true;
  };
}

Store store_switch(bool Options::*member) {
  return [=](Draft& draft, std::string_view value) -> Result<bool> {
    draft.options.*member = *parse_switch(value);  // apply_flag() saw that it is one
    return true;
  };
}

Result<bool> store_cluster_state(Draft& draft, std::string_view value) {
  draft.options.existing = value == "existing";
  return value == "new" || value == "existing";
}

Result<bool> store_quota(Draft& draft, std::string_view value) {
  const auto bytes = parse_number(value);
  if (!bytes) return false;
  draft.options.quota_backend_bytes = *bytes == 0 ? Options{}.quota_backend_bytes : *bytes;
  return true;
}

Result<bool> store_snapshot_count(Draft& draft, std::string_view value) {
  const auto count = parse_number(value);
  if (!count || *count < 0) return false;
  draft.options.snapshot_count = *count == 0 ? Options{}.snapshot_count : static_cast<uint64_t>(*count);
  return true;
}

Result<bool> store_progress_interval(Draft& draft, std::string_view value) {
  const auto interval = parse_duration(value);
  if (!interval || *interval < std::chrono::milliseconds(100)) return false;
  draft.options.watch_progress_notify_interval = *interval;
  return true;
}

Result<bool> store_log_level(Draft& draft, std::string_view value) {
  constexpr std::string_view kNames[] = {"debug", "info", "warn", "error", "panic", "fatal"};
  const auto* found = std::find(std::begin(kNames), std::end(kNames), value);
  if (found == std::end(kNames)) return false;
  draft.options.log.level = static_cast<LogLevel>(found - std::begin(kNames));
  return true;
}

Result<bool> store_log_format(Draft& draft, std::string_view value) {
  draft.options.log.json = value == "json";
  return value == "json" || value == "console";
}

Result<bool> store_log_outputs(Draft& draft, std::string_view value) {
  std::string outputs;
  size_t count = 0;
  bool has_default = false;
  for (bool more = true; more; ++count) {
    const size_t comma = value.find(',');
    more = comma != std::string_view::npos;
    std::string_view output = value.substr(0, comma);
    value.remove_prefix(more ? comma + 1 : value.size());
    if (output.empty()) return false;
    if (output == "systemd/journal") {
      return fail(
          Code::kInvalidArgument,
          "--log-outputs: \"systemd/journal\" is not supported yet: use stderr, which systemd puts into the journal");
    }
    has_default = has_default || output == "default";
    if (output == "default") output = "stderr";
    outputs.append(outputs.empty() ? "" : ",").append(output);
  }
  if (has_default && count > 1) return false;  // as etcd
  draft.options.log.outputs = outputs;
  return true;
}

struct Gate {
  std::string_view name;
  std::string_view why;  // empty: true is refused
};
constexpr Gate kGates[] = {
    {"AllAlpha", "its gates have none here"},
    {"AllBeta", "its gates have none here"},
    {"CompactHashCheck", "members do not compare their contents by themselves"},
    {"FastLeaseKeepAlive", "keepalives always take the short way"},
    {"InitialCorruptCheck", "members do not compare their contents by themselves"},
    {"LeaseCheckpoint", "remaining lease times are always kept over restarts"},
    {"LeaseCheckpointPersist", "remaining lease times are always kept over restarts"},
    {"PriorityRequest", "no request waits behind another's priority"},
    {"SetMemberLocalAddr", "the system chooses the address that members connect from"},
    {"StopGRPCServiceOnDefrag", ""},
    {"TxnModeWriteWithSharedBuffer", "it tunes etcd's storage engine"},
};

Result<bool> store_feature_gates(Draft& draft, std::string_view value) {
  while (!value.empty()) {
    const std::string_view pair = value.substr(0, value.find(','));
    value.remove_prefix(std::min(value.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view name = pair.substr(0, equals);
    const auto on = parse_switch(pair.substr(equals + 1));
    const auto* gate =
        std::find_if(std::begin(kGates), std::end(kGates), [&](const Gate& g) { return g.name == name; });
    if (!on || gate == std::end(kGates)) return false;
    if (gate->why.empty()) {
      if (!*on) continue;
      return fail(Code::kInvalidArgument,
                  "--feature-gates: \"" + std::string(pair) + "\" is not supported yet: there is no defragmentation");
    }
    draft.warnings.push_back("--feature-gates " + std::string(pair) + " has no effect: " + std::string(gate->why));
  }
  return true;
}

std::vector<Flag> make() {
  constexpr uint64_t kInt32Max = std::numeric_limits<int32_t>::max();
  constexpr uint64_t kInt64Max = std::numeric_limits<int64_t>::max();
  return {
      works(kMember, "name", Kind::kText, "default", "Name of this member, as in --initial-cluster.",
            "any text but the empty one", store_text(&Options::name, false)),
      works(kMember, "data-dir", Kind::kText, "<name>.etcd", "Folder of the data; made if it is not there.",
            "a folder's path", store_text(&Options::data_dir, false)),
      works(kMember, "wal-dir", Kind::kText, "", "Folder of the log, when it has a disk of its own.", "a folder's path",
            store_text(&Options::wal_dir, true)),
      works(kMember, "listen-client-urls", Kind::kText, "http://localhost:2379", "Where clients connect.", kLegalUrls,
            store_urls(&Options::listen_client_urls, &Draft::listen_client_urls_given)),
      works(kMember, "advertise-client-urls", Kind::kText, "http://localhost:2379",
            "How clients reach this member; required with --listen-client-urls.", kLegalUrls,
            store_urls(&Options::advertise_client_urls, &Draft::advertise_client_urls_given)),
      works(kMember, "listen-peer-urls", Kind::kText, "http://localhost:2380", "Where other members connect.",
            kLegalUrls, store_urls(&Options::listen_peer_urls)),

      works(kClustering, "initial-advertise-peer-urls", Kind::kText, "http://localhost:2380",
            "How other members reach this one.", kLegalUrls, store_urls(&Options::initial_advertise_peer_urls)),
      works(kClustering, "initial-cluster", Kind::kText, "<name>=<initial-advertise-peer-urls>",
            "The members that begin a new cluster, or make up the one to join.", "name=URL, comma separated",
            [](Draft& draft, std::string_view value) -> Result<bool> {
              draft.initial_cluster = value;
              return true;
            }),
      works(kClustering, "initial-cluster-state", Kind::kText, "new",
            "Begin a cluster (new), or join the one of --initial-cluster that runs (existing).", "new or existing",
            store_cluster_state),
      works(kClustering, "initial-cluster-token", Kind::kText, "etcd-cluster",
            "Keeps clusters apart that have members of the same names and URLs.", "any text",
            store_text(&Options::initial_cluster_token, true)),
      works(kClustering, "force-new-cluster", Kind::kSwitch, "false",
            "Begin a cluster of this member alone with the data that it has: for the last one that is left.",
            "true or false", store_switch(&Options::force_new_cluster)),
      works(kClustering, "strict-reconfig-check", Kind::kSwitch, "true",
            "Refuse changes of the members that could cost the quorum.", "true or false",
            store_switch(&Options::strict_reconfig_check)),
      works(kClustering, "pre-vote", Kind::kSwitch, "true", "Ask whether an election can be won before beginning one.",
            "true or false", store_switch(&Options::pre_vote)),
      works(kClustering, "heartbeat-interval", Kind::kNumber, "100", "Milliseconds between heartbeats.",
            "whole milliseconds from 1 to 10000", store_milliseconds(&Options::heartbeat_interval, 10'000)),
      works(kClustering, "election-timeout", Kind::kNumber, "1000",
            "Milliseconds without a leader before an election; at least five heartbeats.",
            "whole milliseconds from 1 to 50000", store_milliseconds(&Options::election_timeout, 50'000)),
      works(kClustering, "snapshot-count", Kind::kNumber, "10000",
            "Applied entries between two snapshots of the log (0: the default).", "a whole number from 0",
            store_snapshot_count),
      works(kClustering, "feature-gates", Kind::kText, "",
            "etcd's experimental features, each NAME=true or NAME=false.",
            "comma separated NAME=true or NAME=false with a name that etcd 3.7 knows", store_feature_gates),

      works(kLimits, "quota-backend-bytes", Kind::kNumber, "0",
            "Size of the database at which writes are refused (0: 2 GiB; below 0: none).", "a whole number of bytes",
            store_quota),
      works(kLimits, "max-request-bytes", Kind::kNumber, "1572864", "Largest request of a client.",
            "whole bytes from 1 to 536870912", store_number(&Options::max_request_bytes, 1, kRequestBytesMax)),
      works(kLimits, "max-txn-ops", Kind::kNumber, "128", "Most operations in a transaction.",
            "a whole number from 0 to 2147483647", store_number(&Options::max_txn_ops, 0, kInt32Max)),

      works(kHistory, "auto-compaction-mode", Kind::kText, "periodic",
            "Keep history by time (periodic) or by number of revisions (revision).", "periodic or revision",
            [](Draft& draft, std::string_view value) -> Result<bool> {
              draft.auto_compaction_mode = value;
              return value == "periodic" || value == "revision";
            }),
      works(kHistory, "auto-compaction-retention", Kind::kText, "0",
            "How much history to keep: hours or a duration (5m), or revisions. 0: all.",
            "0, whole hours (5), a duration (5m, 1h30m), or with --auto-compaction-mode=revision a number of revisions",
            [](Draft& draft, std::string_view value) -> Result<bool> {
              draft.auto_compaction_retention = value;
              return true;  // what is legal depends on the mode: checks.cc
            }),
      works(kHistory, "watch-progress-notify-interval", Kind::kDuration, "10m0s",
            "How often an idle watch that asked for it hears of progress.", "a duration from 100ms",
            store_progress_interval),

      works(kLogging, "log-level", Kind::kText, "info", "The least important lines to log.",
            "debug, info, warn, error, panic or fatal", store_log_level),
      works(kLogging, "log-outputs", Kind::kText, "default",
            "Where to: default (stderr), stdout, stderr, files; comma separated.",
            "default alone, or a comma separated list of stdout, stderr and paths of files", store_log_outputs),
      works(kLogging, "log-format", Kind::kText, "json", "json: one object a line; console: text.", "json or console",
            store_log_format),

      works(kOurs, "cache-bytes", Kind::kNumber, "67108864", "Memory of all caches together.",
            "whole bytes from 1048576", store_number(&Options::cache_bytes, kCacheBytesMin, kInt64Max)),
      works(kOurs, "io-threads", Kind::kNumber, "half of the processors", "Threads that serve connections.",
            "a whole number from 1 to 64", store_number(&Options::io_threads, 1, kIoThreadsMax)),
  };
}

}  // namespace

const std::vector<Flag>& supported_flags() {
  static const std::vector<Flag> flags = make();
  return flags;
}

}  // namespace config
