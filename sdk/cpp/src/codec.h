// The messages of etcd's v3 JSON gateway: bodies from options, results from answers. 64-bit numbers travel as decimal
// strings, bytes as base64.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "conclave/client.h"
#include "conclave/kv.h"
#include "conclave/result.h"
#include "conclave/txn.h"
#include "conclave/watch.h"
#include "json.h"
#include "key_space.h"

namespace conclave::inline v1::internal {

namespace path {
constexpr const char* kRange = "/v3/kv/range";
constexpr const char* kPut = "/v3/kv/put";
constexpr const char* kDelete = "/v3/kv/deleterange";
constexpr const char* kTxn = "/v3/kv/txn";
constexpr const char* kCompact = "/v3/kv/compaction";
constexpr const char* kWatch = "/v3/watch";
constexpr const char* kLeaseGrant = "/v3/lease/grant";
constexpr const char* kLeaseKeepAlive = "/v3/lease/keepalive";
constexpr const char* kLeaseRevoke = "/v3/lease/revoke";
constexpr const char* kStatus = "/v3/maintenance/status";
}  // namespace path

Result<Json> encode_range(const RangeOptions& options, const KeySpace& keys);
Result<Json> encode_put(std::string_view key, std::string_view value, const PutOptions& options, const KeySpace& keys);
Result<Json> encode_delete(std::string_view key, const DeleteOptions& options, const KeySpace& keys);
Result<Json> encode_txn(const Txn& txn, const KeySpace& keys);
Json encode_compact(Revision revision, bool physical);
Result<Json> encode_watch(const WatchOptions& options, Revision from, const KeySpace& keys);

RangeResult decode_range(const Json& answer, const KeySpace& keys);
PutResult decode_put(const Json& answer, const KeySpace& keys);
DeleteResult decode_delete(const Json& answer, const KeySpace& keys);
// kInternal if the answer does not fit the transaction sent.
Result<TxnResult> decode_txn(const Json& answer, const KeySpace& keys);
Event decode_event(const Json& event, const KeySpace& keys);
ServerStatus decode_status(const Json& answer);

// The error in the gateway's envelope, of a call or in a stream; nothing if this is none.
std::optional<Error> decode_error(const Json& answer);

Revision header_revision(const Json& answer);
std::uint64_t header_cluster(const Json& answer);  // also of a stream's message

Json int64(std::int64_t number);  // as the gateway writes it

}  // namespace conclave::inline v1::internal
