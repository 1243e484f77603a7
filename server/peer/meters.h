// The peer port's metrics, under etcd's names and labels.
#pragma once

#include <cstdint>
#include <map>

#include "base/thread.h"
#include "metrics/registry.h"

namespace peer {

struct PeerMeters {
  metrics::Counter& sent_bytes;
  metrics::Counter& received_bytes;
  metrics::Counter& sent_failures;      // frames that were dropped
  metrics::Counter& received_failures;  // connections that broke in the middle of a frame or carried nonsense
  metrics::Counter& disconnected;
  metrics::Gauge& active;
  metrics::Histogram& round_trip;
};

class Meters {
 public:
  Meters(metrics::Registry& registry, uint64_t local) : registry_(registry), local_(local) {}
  PeerMeters& of(uint64_t peer) EXCLUDES(mutex_);  // any thread; stays where it is

 private:
  metrics::Registry& registry_;
  const uint64_t local_;
  Mutex mutex_;
  std::map<uint64_t, PeerMeters> peers_ GUARDED_BY(mutex_);  // of all that ever were members, few
};

}  // namespace peer
