// Answers as short texts: "@3" is a header with revision 3, "a=1 c2 m3 v2 l7" a key with value, create and mod
// revision, version and lease (left out when 0).
#pragma once

#include <string>

#include "api/rpc.pb.h"
#include "apply/reply.h"

namespace apply {

inline std::string show(const Error& error) {
  return "error " + std::to_string(static_cast<int>(error.code)) + ": " + error.message;
}
inline std::string show(const etcdserverpb::ResponseHeader& header) {
  if (header.cluster_id() != 0 || header.member_id() != 0 || header.raft_term() != 0) return "@too much";
  return header.revision() == 0 ? "@-" : "@" + std::to_string(header.revision());
}
inline std::string show(const mvccpb::KeyValue& kv) {
  std::string text = kv.key() + "=" + kv.value() + " c" + std::to_string(kv.create_revision()) + " m" +
                     std::to_string(kv.mod_revision()) + " v" + std::to_string(kv.version());
  if (kv.lease() != 0) text += " l" + std::to_string(kv.lease());
  return text;
}
inline std::string show(const etcdserverpb::ResponseOp& part);
inline std::string show(const etcdserverpb::AlarmMember& alarm);
template <class List>
std::string show_list(const List& list) {
  std::string text = "[";
  for (const auto& item : list) text += (text.size() > 1 ? ", " : "") + show(item);
  return text + "]";
}
inline std::string show(const etcdserverpb::PutResponse& put) {
  return show(put.header()) + (put.has_prev_kv() ? " before " + show(put.prev_kv()) : "");
}
inline std::string show(const etcdserverpb::DeleteRangeResponse& deleted) {
  return show(deleted.header()) + " deleted " + std::to_string(deleted.deleted()) +
         (deleted.prev_kvs_size() > 0 ? " " + show_list(deleted.prev_kvs()) : "");
}
inline std::string show(const etcdserverpb::RangeResponse& range) {
  return show(range.header()) + " " + show_list(range.kvs()) + " of " + std::to_string(range.count()) +
         (range.more() ? " more" : "");
}
inline std::string show(const etcdserverpb::TxnResponse& txn);
inline std::string show(const etcdserverpb::ResponseOp& part) {
  if (part.has_response_put()) return "put " + show(part.response_put());
  if (part.has_response_range()) return "range " + show(part.response_range());
  if (part.has_response_delete_range()) return "delete " + show(part.response_delete_range());
  if (part.has_response_txn()) return "txn " + show(part.response_txn());
  return "nothing";
}
inline std::string show(const etcdserverpb::TxnResponse& txn) {
  if (!txn.has_header()) return "no header";
  return show(txn.header()) + (txn.succeeded() ? " yes " : " no ") + show_list(txn.responses());
}
inline std::string show(const etcdserverpb::AlarmMember& alarm) {
  return std::to_string(alarm.memberid()) + ":" + std::to_string(alarm.alarm());
}

inline std::string show(const Result<Message>& response) {
  if (!response) return show(response.error());
  const google::protobuf::Message* message = response->get();
  if (message == nullptr) return "ok";
  if (auto* put = dynamic_cast<const etcdserverpb::PutResponse*>(message)) return show(*put);
  if (auto* range = dynamic_cast<const etcdserverpb::RangeResponse*>(message)) return show(*range);
  if (auto* deleted = dynamic_cast<const etcdserverpb::DeleteRangeResponse*>(message)) return show(*deleted);
  if (auto* txn = dynamic_cast<const etcdserverpb::TxnResponse*>(message)) return show(*txn);
  if (auto* compacted = dynamic_cast<const etcdserverpb::CompactionResponse*>(message)) {
    return show(compacted->header()) + " compacted";
  }
  if (auto* granted = dynamic_cast<const etcdserverpb::LeaseGrantResponse*>(message)) {
    return show(granted->header()) + " lease " + std::to_string(granted->id()) + " ttl " +
           std::to_string(granted->ttl()) + granted->error();
  }
  if (auto* revoked = dynamic_cast<const etcdserverpb::LeaseRevokeResponse*>(message)) {
    return show(revoked->header()) + " revoked";
  }
  if (auto* alarms = dynamic_cast<const etcdserverpb::AlarmResponse*>(message)) {
    return show(alarms->header()) + " alarms " + show_list(alarms->alarms());
  }
  return message->GetTypeName();
}

}  // namespace apply
