#include "sim/records.h"

#include "member/options.h"

namespace sim {

using history::Outcome;
using history::WatchItem;

Outcome outcome_of(const Error& error) {
  switch (error.code) {
    case Code::kResourceExhausted:
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kOutOfRange:
    case Code::kFailedPrecondition:
      return Outcome::kFailed;
    case Code::kUnavailable:
      return error.message == member::kErrorNoLeader ? Outcome::kFailed : Outcome::kUnknown;
    default:
      return Outcome::kUnknown;
  }
}

history::KeyValue key_value_of(const mvccpb::KeyValue& kv) {
  return {kv.key(), kv.value(), kv.create_revision(), kv.mod_revision(), kv.version(), kv.lease()};
}

std::optional<WatchItem> item_of(const etcdserverpb::WatchResponse& response, history::Time at) {
  WatchItem item{.at = at, .revision = response.header().revision()};
  if (response.canceled()) {
    item.kind = WatchItem::Kind::kCompacted;
    item.revision = response.compact_revision();
    return item;
  }
  if (response.created()) return std::nullopt;
  if (response.events().empty()) item.kind = WatchItem::Kind::kProgress;
  for (const auto& event : response.events()) {
    item.events.push_back({event.type() == mvccpb::Event::DELETE, key_value_of(event.kv())});
  }
  return item;
}

Status read_events(mvcc::Reader& reader, int64_t from, int64_t to, history::Events& events) {
  return reader.history(
      from, to, [](std::string_view) { return true; },
      [&events](const mvcc::EventBatch& batch) {
        for (const mvcc::Event& event : batch.events) {
          const mvcc::KeyValue& kv = *event.kv;
          events[batch.revision].push_back(
              {event.is_delete, {kv.key, kv.value, kv.create_revision, kv.mod_revision, kv.version, kv.lease}});
        }
        return true;
      });
}

}  // namespace sim
