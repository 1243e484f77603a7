// Everything the server can be told, typed and checked (parse.h makes it). Defaults are etcd's.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "config/url.h"

namespace config {

struct AutoCompaction {
  enum class Mode : uint8_t { kOff, kPeriodic, kRevision };
  Mode mode = Mode::kOff;
  std::chrono::nanoseconds period{0};  // kPeriodic: how much history to keep
  int64_t revisions = 0;               // kRevision: how many revisions to keep
  friend bool operator==(const AutoCompaction&, const AutoCompaction&) = default;
};

struct InitialMember {
  std::string name;
  std::vector<Url> peer_urls;  // sorted by text
  friend bool operator==(const InitialMember&, const InitialMember&) = default;
};

struct Options {
  std::string name = "default";
  std::string data_dir;  // "<name>.etcd" unless given
  std::string wal_dir;   // empty: inside data_dir

  std::vector<Url> listen_client_urls;     // http://localhost:2379
  std::vector<Url> advertise_client_urls;  // http://localhost:2379
  std::vector<Url> listen_peer_urls;       // http://localhost:2380
  std::vector<Url> initial_advertise_peer_urls;
  // Of a new cluster, or of the one to join; by name, this member among them. Counts while the data folder is empty.
  std::vector<InitialMember> initial_cluster;
  bool existing = false;  // join a cluster that runs, instead of beginning one; counts while the data folder is empty
  std::string initial_cluster_token = "etcd-cluster";
  bool force_new_cluster = false;     // the members in the data folder are forgotten, all but this one
  bool strict_reconfig_check = true;  // changes of the members that could cost the quorum are refused
  bool pre_vote = true;

  std::chrono::milliseconds heartbeat_interval{100};
  std::chrono::milliseconds election_timeout{1000};
  uint64_t snapshot_count = 10'000;                               // applied entries between two snapshots of the log
  int64_t quota_backend_bytes = int64_t{2} * 1024 * 1024 * 1024;  // below zero: no limit
  uint32_t max_request_bytes = 1536 * 1024;
  uint32_t max_txn_ops = 128;
  AutoCompaction auto_compaction;
  std::chrono::nanoseconds watch_progress_notify_interval = std::chrono::minutes(10);

  uint64_t cache_bytes = uint64_t{64} * 1024 * 1024;  // all caches together
  uint32_t io_threads = 1;

  LogOptions log;
};

}  // namespace config
