// Options and results of the key-value calls (client.h, txn.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conclave/call.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

enum class SortOrder : std::uint8_t { kNone, kAscend, kDescend };
enum class SortTarget : std::uint8_t { kKey, kVersion, kCreate, kMod, kValue };

struct GetOptions {
  Revision revision{};        // as it was then; zero: now. Compacted or in the future: kOutOfRange
  bool serializable = false;  // any member may answer from what it has: fast, perhaps stale
  CallOptions call = {};
};

// Which keys: `key` alone, with `prefix` all that begin with it, or with `range_end` all in [key, range_end); a
// range_end of one zero byte means "and all above". `prefix` and `range_end` exclude each other.
struct RangeOptions {
  std::string key = {};
  bool prefix = false;
  std::string range_end = {};
  std::int64_t limit = 0;  // zero: no limit
  Revision revision{};
  SortOrder order = SortOrder::kNone;
  SortTarget sort_by = SortTarget::kKey;
  bool serializable = false;
  bool keys_only = false;
  bool count_only = false;
  Revision min_mod_revision{};
  Revision max_mod_revision{};
  Revision min_create_revision{};
  Revision max_create_revision{};
  CallOptions call = {};
};

struct RangeResult {
  std::vector<KeyValue> kvs = {};
  bool more = false;       // `limit` cut the list
  std::int64_t count = 0;  // keys in the range, whatever the limit
  Revision revision{};     // the store's revision at which the answer holds
};

struct PutOptions {
  LeaseId lease{};            // the key goes when the lease does; zero: none
  bool prev_kv = false;       // give back what was there
  bool ignore_value = false;  // change the lease only; the value given must be empty
  bool ignore_lease = false;  // change the value only; `lease` must be zero
  CallOptions call = {};
};

struct PutResult {
  Revision revision{};
  std::optional<KeyValue> previous = std::nullopt;  // with `prev_kv`
};

struct DeleteOptions {
  bool prefix = false;
  std::string range_end = {};
  bool prev_kv = false;
  CallOptions call = {};
};

struct DeleteResult {
  Revision revision{};
  std::int64_t deleted = 0;
  std::vector<KeyValue> previous = {};  // with `prev_kv`
};

struct UpdateOptions {
  std::optional<LeaseId> lease = std::nullopt;  // unset: the key keeps the lease it has, a new key gets none
  CallOptions call = {};                        // all attempts together
};

struct CompactOptions {
  bool physical = false;  // answer only when the history is gone from the database
  CallOptions call = {};
};

}  // namespace v1
}  // namespace conclave
