#include "peer/meters.h"

#include "peer/address.h"

namespace peer {

PeerMeters& Meters::of(uint64_t peer) {
  MutexLock lock(mutex_);
  if (const auto found = peers_.find(peer); found != peers_.end()) return found->second;
  const std::vector<metrics::Label> to = {{"To", id_text(peer)}};
  const std::vector<metrics::Label> from = {{"From", id_text(peer)}};
  const std::vector<metrics::Label> both = {{"Local", id_text(local_)}, {"Remote", id_text(peer)}};
  const auto name = [](const char* rest) { return std::string("etcd_network_") + rest; };
  return peers_
      .emplace(
          peer,
          PeerMeters{
              .sent_bytes =
                  registry_.counter(name("peer_sent_bytes_total"), "The total number of bytes sent to peers.", to),
              .received_bytes = registry_.counter(name("peer_received_bytes_total"),
                                                  "The total number of bytes received from peers.", from),
              .sent_failures = registry_.counter(name("peer_sent_failures_total"),
                                                 "The total number of send failures from peers.", to),
              .received_failures = registry_.counter(name("peer_received_failures_total"),
                                                     "The total number of receive failures from peers.", from),
              .disconnected =
                  registry_.counter(name("disconnected_peers_total"), "The total number of disconnected peers.", both),
              .active = registry_.level(name("active_peers"), "The current number of active peer connections.", both),
              .round_trip =
                  registry_.histogram(name("peer_round_trip_time_seconds"), "Round-Trip-Time histogram between peers",
                                      metrics::exponential_buckets(0.0001, 2, 16), to)})
      .first->second;
}

}  // namespace peer
