// What members answer, in the words of tests/history.
#pragma once

#include <optional>

#include "api/rpc.pb.h"
#include "base/result.h"
#include "history/history.h"
#include "history/watch_check.h"
#include "mvcc/mvcc.h"

namespace sim {

// What an error leaves open, by the promises of member.h.
history::Outcome outcome_of(const Error& error);
history::KeyValue key_value_of(const mvccpb::KeyValue& kv);
// nullopt: "created", which tells nothing. One that was cancelled is taken for compacted (`revision` 0: it was not).
std::optional<history::WatchItem> item_of(const etcdserverpb::WatchResponse& response, history::Time at);
// Adds what happened in these revisions, both included. kOutOfRange: compacted.
Status read_events(mvcc::Reader& reader, int64_t from, int64_t to, history::Events& events);

}  // namespace sim
