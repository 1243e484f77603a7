// What a write did, as watchers hear it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"

namespace mvcc {

// A key at a revision. Immutable once made; shared between cache, events and answers.
struct KeyValue {
  Bytes key;
  Bytes value;
  int64_t create_revision = 0;
  int64_t mod_revision = 0;
  int64_t version = 0;
  int64_t lease = 0;
};
using KeyValuePtr = std::shared_ptr<const KeyValue>;

struct Event {
  bool is_delete = false;
  KeyValuePtr kv;  // of a delete: key and mod_revision only
};

// All events of one revision, in order of sub.
struct EventBatch {
  int64_t revision = 0;
  std::vector<Event> events;
};

}  // namespace mvcc
