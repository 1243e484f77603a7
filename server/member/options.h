// What a member is told at its start. main.cc fills it from the flags; the simulator by hand.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace member {

struct AutoCompaction {
  enum class Mode { kOff, kPeriodic, kRevision } mode = Mode::kOff;
  std::chrono::nanoseconds period{};  // kPeriodic: keep this much history
  int64_t revisions = 0;              // kRevision: keep that many
};

struct Options {
  std::string name = "default";
  std::string data_dir;
  std::string wal_dir;  // empty: <data_dir>/wal
  std::vector<std::string> peer_urls;
  std::vector<std::string> client_urls;  // advertised
  std::string cluster_token = "etcd-cluster";

  struct InitialMember {
    std::string name;
    std::vector<std::string> peer_urls;
  };
  std::vector<InitialMember> initial_cluster;  // of a folder that is new; empty: this member alone
  bool join_existing = false;                  // the others are asked who the cluster is
  bool force_new_cluster = false;              // this member, as the last survivor, goes on alone
  bool strict_reconfig_check = true;
  bool pre_vote = true;

  std::chrono::milliseconds heartbeat_interval{100};
  std::chrono::milliseconds election_timeout{1000};
  uint64_t snapshot_count = 10'000;    // entries kept in the log below the store's mark, for members that lag
  int64_t quota_bytes = 2LL << 30;     // of the database, without its free pages
  uint64_t cache_bytes = 64ULL << 20;  // all caches together
  AutoCompaction auto_compaction;
  std::chrono::milliseconds watch_progress_interval{600'000};

  // Not flags: the simulator makes them small, so that every rare path is a common one.
  uint64_t log_segment_bytes = 16ULL << 20;
  uint64_t store_wal_bytes_max = 64ULL << 20;       // hard limit of SQLite's -wal
  uint64_t checkpoint_from_bytes = 16ULL << 20;     // of the -wal: a pass beside the traffic
  uint64_t checkpoint_pause_below_bytes = 1 << 20;  // left to copy: some milliseconds in which apply stands still
  size_t watcher_buffer_bytes = 1 << 20;            // events held for one watcher that does not read

  std::chrono::milliseconds request_timeout() const { return std::chrono::milliseconds(5000) + 2 * election_timeout; }
  // etcd's: one and a half election timeouts, in whole seconds.
  int64_t lease_ttl_min_seconds() const { return (3 * election_timeout.count() / 2 + 999) / 1000; }
};

inline constexpr size_t kProposalsWaitingMax = 20'000;  // beyond: "etcdserver: too many requests"
inline constexpr size_t kCallsWaitingMax = 100'000;     // keepalives and reads in the loop's inbox
// Frames of calls that other members forward, together; what is above is dropped. They are strangers' too: a member
// that this one has not heard of yet may speak.
inline constexpr size_t kForwardedBytesMax = 64 << 20;
inline constexpr size_t kForwardedBytesPerStep = 1 << 20;  // are read (one frame may be larger)
inline constexpr size_t kEntriesPerBatchMax = 2'000;       // in one store transaction
inline constexpr size_t kBytesPerBatchMax = 4 << 20;
inline constexpr size_t kWalBytesPerSyncMax = 8 << 20;  // joined into one append
inline constexpr std::chrono::milliseconds kSpaceRetry{500};

inline constexpr const char* kErrorTooManyRequests = "etcdserver: too many requests";
inline constexpr const char* kErrorTooLarge = "etcdserver: request is too large";
inline constexpr const char* kErrorStopped = "etcdserver: server stopped";
inline constexpr const char* kErrorTimeout = "etcdserver: request timed out";
inline constexpr const char* kErrorNoLeader = "etcdserver: no leader";
inline constexpr const char* kErrorRemoved =
    "this member was removed from the cluster. To use the machine again, add it as a new member and start it with an "
    "empty --data-dir";
inline constexpr const char* kErrorTransferTimeout = "etcdserver: request timed out, leader transfer took too long";
inline constexpr const char* kErrorNoSpace = "etcdserver: mvcc: database space exceeded";

}  // namespace member
