#include "apply/execute.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>

#include "apply/entry_version.h"
#include "apply/shape.h"
#include "apply/txn.h"

namespace apply {
namespace {

using conclavepb::Entry;

// The usual entry takes the fast way; one that is nested deeper than protobuf's default limit takes the other.
template <class T>
bool parse(const Bytes& data, T* message) {
  if (message->ParseFromString(data)) return true;
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(data.data()),
                                               static_cast<int>(data.size()));
  input.SetRecursionLimit(kMessageDepthMax);
  return message->ParseFromCodedStream(&input) && input.ConsumedEntireMessage();
}

Error cannot_read(const LogEntry& entry) {
  return {Code::kDataLoss, "entry " + std::to_string(entry.index) + " of the log is not a command of ours"};
}

template <class T>
Reply answer(const Batch& batch, std::unique_ptr<T> response) {
  response->mutable_header()->set_revision(batch.writer.revision());
  return Reply{.response = std::move(response), .when_compacted = -1};
}

// Runs what may write, inside a revision of its own.
template <class Run>
auto in_revision(Batch& batch, const Run& run) {
  batch.writer.begin_revision();
  auto result = run();
  mvcc::EventBatch events = batch.writer.end_revision();
  if (!events.events.empty()) batch.events.push_back(std::move(events));
  return result;
}

// What alarms refuse, as etcd's corrupt and capped appliers do: damage goes before space.
Status check_alarms(const Batch& batch, const Entry& entry) {
  bool corrupting = false;
  bool filling = false;
  switch (entry.command_case()) {
    case Entry::kPut:
    case Entry::kLeaseGrant:
      corrupting = filling = true;
      break;
    case Entry::kTxn:
      corrupting = true;
      filling = batch.alarms.no_space() && has_put(entry.txn());
      break;
    case Entry::kDeleteRange:
    case Entry::kCompaction:
    case Entry::kLeaseRevoke:
      corrupting = true;
      break;
    default:
      break;
  }
  if (corrupting && batch.alarms.corrupt()) return fail(Code::kDataLoss, kErrorCorrupt);
  if (filling && batch.alarms.no_space()) return fail(Code::kResourceExhausted, kErrorNoSpace);
  return {};
}

Reply compact(Batch& batch, const etcdserverpb::CompactionRequest& request) {
  if (request.revision() <= batch.writer.compacted()) return refuse(Code::kOutOfRange, mvcc::kErrorCompacted);
  if (request.revision() > batch.writer.revision()) return refuse(Code::kOutOfRange, mvcc::kErrorFutureRevision);
  batch.meta.compacted = request.revision();
  batch.writer.set_compacted(request.revision());
  Reply reply = answer(batch, std::make_unique<etcdserverpb::CompactionResponse>());
  if (request.physical()) reply.when_compacted = request.revision();
  return reply;
}

Result<Reply> grant(Batch& batch, const conclavepb::LeaseGrant& request) {
  const int64_t ttl = std::max<int64_t>(1, request.ttl());
  if (Status granted = batch.leases.grant(request.id(), ttl); !granted) return refuse(granted.error());
  TRY(batch.txn.put_lease({.id = request.id(), .ttl = ttl, .remaining = 0}));
  batch.lease_changes.push_back({.kind = LeaseChange::Kind::kGranted, .id = request.id(), .ttl = ttl, .remaining = 0});
  auto response = std::make_unique<etcdserverpb::LeaseGrantResponse>();
  response->set_id(request.id());
  response->set_ttl(ttl);
  return answer(batch, std::move(response));
}

Result<Reply> revoke(Batch& batch, const conclavepb::LeaseRevoke& request, uint64_t term) {
  if (request.term() != 0 && request.term() != term) return refuse(Code::kFailedPrecondition, kErrorOtherTerm);
  auto keys = batch.leases.revoke(request.id());
  if (!keys) return refuse(keys.error());
  TRY(batch.txn.delete_lease(request.id()));
  Context context{.writer = batch.writer, .leases = batch.leases};
  TRY(in_revision(batch, [&] { return erase_keys(context, *keys); }));
  batch.lease_changes.push_back({.kind = LeaseChange::Kind::kRevoked, .id = request.id(), .ttl = 0, .remaining = 0});
  return answer(batch, std::make_unique<etcdserverpb::LeaseRevokeResponse>());
}

// Leases that are gone by now are left out: their revocation and the checkpoint met in the log.
Result<Reply> checkpoint(Batch& batch, const conclavepb::LeaseCheckpoint& request, uint64_t term) {
  if (request.term() != 0 && request.term() != term) return refuse(Code::kFailedPrecondition, kErrorOtherTerm);
  for (const auto& item : request.items()) {
    auto lease = batch.leases.find(item.id());
    if (!lease) continue;
    const int64_t remaining = std::clamp<int64_t>(item.remaining_ttl(), 0, lease->ttl);
    TRY(batch.leases.checkpoint(lease->id, remaining));
    TRY(batch.txn.put_lease({.id = lease->id, .ttl = lease->ttl, .remaining = remaining}));
    const auto kind = remaining == 0 ? LeaseChange::Kind::kReset : LeaseChange::Kind::kCheckpointed;
    batch.lease_changes.push_back({.kind = kind, .id = lease->id, .ttl = 0, .remaining = remaining});
  }
  return Reply{};
}

Result<Reply> alarm(Batch& batch, const etcdserverpb::AlarmRequest& request) {
  auto response = batch.alarms.apply(request);
  if (!response) return refuse(response.error());
  return answer(batch, std::make_unique<etcdserverpb::AlarmResponse>(std::move(*response)));
}

Result<Reply> execute_command(Batch& batch, const LogEntry& log, const Entry& entry, bool answer_wanted) {
  if (Status allowed = check_alarms(batch, entry); !allowed) {
    const bool expiry = entry.has_lease_revoke() && entry.lease_revoke().term() == log.term;
    if (expiry) batch.revocations_refused.push_back(entry.lease_revoke().id());
    return refuse(allowed.error());
  }
  Context context{.writer = batch.writer, .leases = batch.leases, .answer_wanted = answer_wanted};
  switch (entry.command_case()) {
    case Entry::kPut:
      return in_revision(batch, [&] { return put(context, entry.put()); });
    case Entry::kDeleteRange:
      return in_revision(batch, [&] { return delete_range(context, entry.delete_range()); });
    case Entry::kTxn:
      return in_revision(batch, [&] { return txn(context, entry.txn()); });
    case Entry::kCompaction:
      return compact(batch, entry.compaction());
    case Entry::kLeaseGrant:
      return grant(batch, entry.lease_grant());
    case Entry::kLeaseRevoke:
      return revoke(batch, entry.lease_revoke(), log.term);
    case Entry::kLeaseCheckpoint:
      return checkpoint(batch, entry.lease_checkpoint(), log.term);
    case Entry::kAlarm:
      return alarm(batch, entry.alarm());
    case Entry::kMemberAttributes:
      if (Status set = batch.members.set_attributes(entry.member_attributes()); !set) return refuse(set.error());
      batch.attributes = true;
      return Reply{};
    case Entry::COMMAND_NOT_SET:
      break;
  }
  return refuse(Code::kInvalidArgument, kErrorNoCommand);
}

Result<Executed> execute_membership(Batch& batch, const LogEntry& log) {
  conclavepb::MembershipChange change;
  if (!parse(*log.data, &change)) return ::fail(cannot_read(log));
  Executed executed;
  executed.request_id = change.request_id();
  executed.proposer = change.proposer();
  if (Status done = batch.members.change(change); !done) executed.reply = refuse(done.error());
  return executed;
}

}  // namespace

Status check_command(const Bytes& data) {
  Entry entry;
  if (!parse(data, &entry)) return ::fail(Code::kInvalidArgument, "etcdserver: entry that cannot be read");
  if (entry.version() > kEntryVersion) {
    return ::fail(Code::kFailedPrecondition, "etcdserver: entry of version " + std::to_string(entry.version()) +
                                                 ", the leader knows " + std::to_string(kEntryVersion) + " at most");
  }
  if (entry.command_case() == Entry::COMMAND_NOT_SET) return ::fail(Code::kInvalidArgument, kErrorNoCommand);
  return {};
}

Result<Executed> execute(Batch& batch, const LogEntry& log, uint64_t member_id) {
  if (log.data->empty()) return Executed{};  // the no-op with which a leader begins its term
  if (log.type == EntryType::kMembership) return execute_membership(batch, log);
  Entry entry;
  if (!parse(*log.data, &entry)) return ::fail(cannot_read(log));
  if (entry.version() > kEntryVersion) {
    return ::fail(Code::kFailedPrecondition, "entry " + std::to_string(log.index) + " of the log is of version " +
                                                 std::to_string(entry.version()) + ", this program knows " +
                                                 std::to_string(kEntryVersion) +
                                                 " at most: start a newer release of it on this data");
  }
  const bool answer_wanted = entry.request_id() != 0 && (member_id == 0 || entry.proposer() == member_id);
  TRY_ASSIGN(Reply reply, execute_command(batch, log, entry, answer_wanted));
  return Executed{.request_id = entry.request_id(), .proposer = entry.proposer(), .reply = std::move(reply)};
}

}  // namespace apply
