// /version and /metrics, and what the metrics are made of.
#include <array>
#include <cstdio>

#include "config/version.h"
#include "rpc/context.h"

namespace rpc {
namespace {

void add_gauges(metrics::Registry& registry, const member::Member& member) {
  using State = member::Member::State;
  const auto gauge = [&](const char* name, const char* help, double (*read)(const State&)) {
    registry.gauge(name, help, [&member, read] { return read(member.state()); });
  };
  const auto counter = [&](const char* name, const char* help, double (*read)(const State&)) {
    registry.counter_from(name, help, [&member, read] { return read(member.state()); });
  };
  gauge("etcd_server_has_leader", "Whether or not a leader exists. 1 is existence, 0 is not.",
        [](const State& s) { return s.raft.leader != raft::kNobody ? 1.0 : 0.0; });
  gauge("etcd_server_is_leader", "Whether or not this member is a leader. 1 if is, 0 otherwise.",
        [](const State& s) { return s.raft.role == raft::Role::kLeader ? 1.0 : 0.0; });
  gauge("etcd_server_is_learner", "Whether or not this member is a learner. 1 if is, 0 otherwise.",
        [](const State& s) { return s.is_learner ? 1.0 : 0.0; });
  counter("etcd_server_leader_changes_seen_total", "The number of leader changes seen.",
          [](const State& s) { return static_cast<double>(s.raft.leader_changes); });
  gauge("etcd_server_proposals_committed_total", "The total number of consensus proposals committed.",
        [](const State& s) { return static_cast<double>(s.raft.commit_index); });
  gauge("etcd_server_proposals_applied_total", "The total number of consensus proposals applied.",
        [](const State& s) { return static_cast<double>(s.published.applied_index); });
  gauge("etcd_server_proposals_pending", "The current number of pending proposals to commit.",
        [](const State& s) { return static_cast<double>(s.proposals_waiting); });
  gauge("etcd_debugging_mvcc_keys_total", "Total number of keys.", [](const State& s) { return double(s.keys); });
  gauge("etcd_debugging_mvcc_current_revision", "The current revision of store.",
        [](const State& s) { return static_cast<double>(s.published.revision); });
  gauge("etcd_debugging_mvcc_compact_revision", "The revision of the last compaction in store.",
        [](const State& s) { return static_cast<double>(s.published.compacted); });
  gauge("etcd_mvcc_db_total_size_in_bytes", "Total size of the underlying database physically allocated in bytes.",
        [](const State& s) { return static_cast<double>(s.store.size_bytes); });
  gauge("etcd_mvcc_db_total_size_in_use_in_bytes", "Total size of the underlying database logically in use in bytes.",
        [](const State& s) { return static_cast<double>(s.store.size_in_use_bytes); });
  gauge("conclave_store_wal_bytes", "Size of the store's journal that is not yet in its database file.",
        [](const State& s) { return static_cast<double>(s.store.wal_bytes); });
  counter("conclave_store_syncs_total", "Syncs of the store's files.",
          [](const State& s) { return static_cast<double>(s.store.syncs); });
  counter("conclave_store_written_bytes_total", "Bytes written to the store's files.",
          [](const State& s) { return static_cast<double>(s.store.bytes_written); });
  registry.gauge("etcd_server_quota_backend_bytes", "Current backend storage quota size in bytes.",
                 [&member] { return static_cast<double>(member.options().quota_bytes); });
  registry.gauge("etcd_server_version", "Which version is running. 1 for 'server_version' label with current version.",
                 [] { return 1.0; }, {{"server_version", std::string(config::kEtcdVersion)}});
  std::array<char, 20> id{};
  std::snprintf(id.data(), id.size(), "%llx", static_cast<unsigned long long>(member.member_id()));
  registry.gauge("etcd_server_id",
                 "Server or member ID in hexadecimal format. 1 for 'server_id' label with current ID.",
                 [] { return 1.0; }, {{"server_id", id.data()}});
}

void add_watch_gauges(metrics::Registry& registry, watch::Hub& hub) {
  registry.gauge("etcd_debugging_mvcc_watcher_total", "Total number of watchers.",
                 [&hub] { return static_cast<double>(hub.stats().watchers); });
  registry.gauge("etcd_debugging_mvcc_watch_stream_total", "Total number of watch streams.",
                 [&hub] { return static_cast<double>(hub.stats().streams); });
  registry.gauge("etcd_debugging_mvcc_slow_watcher_total", "Total number of unsynced slow watchers.",
                 [&hub] { return static_cast<double>(hub.stats().behind); });
  registry.gauge("conclave_watch_buffered_bytes", "Bytes of events that wait for their watchers to read.",
                 [&hub] { return static_cast<double>(hub.stats().buffered_bytes); });
  registry.counter_from("etcd_debugging_mvcc_events_total", "Total number of events sent by this member.",
                        [&hub] { return static_cast<double>(hub.stats().events); });
}

}  // namespace

Counters::Counters(metrics::Registry& registry)
    : puts(registry.counter("etcd_mvcc_put_total", "Total number of puts seen by this member.")),
      ranges(registry.counter("etcd_mvcc_range_total", "Total number of ranges seen by this member.")),
      deletes(registry.counter("etcd_mvcc_delete_total", "Total number of deletes seen by this member.")),
      txns(registry.counter("etcd_mvcc_txn_total", "Total number of txns seen by this member.")),
      leases_granted(registry.counter("etcd_debugging_lease_granted_total", "The total number of granted leases.")),
      leases_revoked(registry.counter("etcd_debugging_lease_revoked_total", "The total number of revoked leases.")),
      leases_renewed(
          registry.counter("etcd_debugging_lease_renewed_total", "The number of renewed leases seen by the leader.")) {}

void add_version(http::Router& router) {
  router.plain({.path = "/version", .handler = [](const http::PlainRequest&, http::PlainReply reply) {
                  const std::string cluster(config::kClusterVersion);
                  reply.send({.content_type = "application/json",
                              .body = R"({"etcdserver":")" + std::string(config::kEtcdVersion) +
                                      R"(","etcdcluster":")" + cluster + R"(","storage":")" + cluster + R"("})",
                              .headers = {}});
                }});
}

void add_info(http::Router& router, Context& context, metrics::Registry& registry) {
  add_gauges(registry, context.member);
  add_watch_gauges(registry, context.member.watches());
  registry.add_process_metrics();
  router.plain({.path = "/metrics",
                .handler =
                    [&registry](const http::PlainRequest&, http::PlainReply reply) {
                      reply.send({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                                  .body = registry.text(),
                                  .headers = {}});
                    },
                .get_only = false});
}

}  // namespace rpc
