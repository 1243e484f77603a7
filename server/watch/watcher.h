// One watch, and the set of watches that catch-up moves together.
#pragma once

#include <cstdint>
#include <vector>

#include "watch/delivery.h"
#include "watch/range_index.h"

namespace watch {

class StreamImpl;
struct Watcher;

// Behind watchers with one common cursor. While a slice of catch-up reads for it, nobody joins it (what the slice
// skipped may be what the newcomer wants) and it is not deleted when it becomes empty.
struct Cohort {
  int64_t next = 0;
  bool in_slice = false;
  std::vector<Watcher*> watchers;  // in no order; a watcher knows its slot
};

enum class Place : uint8_t {
  kTip,      // hears publish()
  kBehind,   // in a cohort
  kBlocked,  // behind, and its buffer is full: waits until its stream was read
  kEnded,    // cancelled by us; only its id is still taken, as in etcd, until the client cancels it
};

// Lives in its stream's map.
struct Watcher {
  StreamImpl* stream = nullptr;
  Shape shape;

  // Guarded by the hub's mutex.
  int64_t next = 0;  // at the tip: the first revision it wants, maybe in the future; blocked: its cursor
  Group* group = nullptr;
  Cohort* cohort = nullptr;  // of kBehind; has its cursor then
  uint32_t group_slot = 0;
  uint32_t cohort_slot = 0;
  Place place = Place::kEnded;
  bool progress_notify = false;
  bool quiet = true;  // heard no event since the last periodic progress

  // Guarded by the stream's mutex.
  bool waiting = false;  // a delivery was refused because a buffer was full
  uint32_t queued = 0;   // deliveries
  size_t buffered_bytes = 0;
};

}  // namespace watch
