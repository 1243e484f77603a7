#include "apply/shape.h"
#include "base/log.h"
#include "member/member_of.h"

namespace member {
namespace {

constexpr Time kHousekeepingEvery = std::chrono::milliseconds(100);
constexpr Time kSoon = std::chrono::milliseconds(3);  // while the start waits for it

}  // namespace

Time MemberOf::housekeeping(Time now) {
  if (failure_.failed()) return kWhenWoken;
  // Damage that a watch's read of history met, or any other that nobody reported.
  if (Status sound = folder_.store->sound(); !sound) {
    failure_.report(sound.error());
    return kWhenWoken;
  }
  const RaftStatus raft = loop_->status();
  const bool in_term = mvcc_->published().applied_term == raft.term;
  if (raft.leader == raft::kNobody || !in_term) return now + (announced_.load() ? kHousekeepingEvery : kSoon);
  announce();
  watch_space();
  if (raft.role == raft::Role::kLeader) compact_automatically(now);
  return now + (announced_.load() ? kHousekeepingEvery : kSoon);
}

void MemberOf::compact_automatically(Time now) {
  const auto revision = compactor_.tick(now, mvcc_->published().revision);
  if (!revision) return;
  conclavepb::Entry command;
  command.mutable_compaction()->set_revision(*revision);
  propose(std::move(command), [revision = *revision](Result<apply::Message> done) {
    if (done) {
      log_info("compacted automatically", {{"revision", revision}});
    } else if (done.error().message != mvcc::kErrorCompacted) {
      log_warn("automatic compaction failed", {{"revision", revision}, {"error", done.error().message}});
    }
  });
}

// Tells the cluster this member's name and client URLs, if they are not what it knows.
void MemberOf::announce() {
  if (announced_ || announcing_.load()) return;
  for (const apply::Member& member : applier_->members()) {
    if (member.id == member_id() && member.name == options_.name && member.client_urls == options_.client_urls &&
        member.folder_id == folder_.id) {
      announced_ = true;
      return;
    }
  }
  announcing_ = true;
  conclavepb::Entry command;
  auto& attributes = *command.mutable_member_attributes();
  attributes.set_id(member_id());
  attributes.set_name(options_.name);
  attributes.set_folder_id(folder_.id);
  for (const std::string& url : options_.client_urls) attributes.add_client_urls(url);
  propose(std::move(command), [this](const Result<apply::Message>&) { announcing_ = false; });
}

// Deletes, compactions and the like must go through, or there would be no way back.
bool MemberOf::refused_for_space(const conclavepb::Entry& command) const {
  const bool grows =
      command.has_put() || command.has_lease_grant() || (command.has_txn() && apply::has_put(command.txn()));
  return grows && over_quota();
}

// Without free pages: they are used before the file grows, so it stays within the quota, and a compaction makes room at
// once, however much of it is given back to the file system.
bool MemberOf::over_quota() const { return folder_.store->stats().size_in_use_bytes > options_.quota_bytes; }

void MemberOf::watch_space() {
  if (!over_quota() || raising_alarm_.load()) return;
  for (const auto& alarm : applier_->alarms()) {
    if (alarm.memberid() == member_id() && alarm.alarm() == etcdserverpb::NOSPACE) return;
  }
  log_warn(
      "the store is larger than --quota-backend-bytes: writes are refused from now on. Compact, then disarm the alarm",
      {{"size_in_use_bytes", folder_.store->stats().size_in_use_bytes}, {"quota_bytes", options_.quota_bytes}});
  raising_alarm_ = true;
  conclavepb::Entry command;
  command.mutable_alarm()->set_action(etcdserverpb::AlarmRequest::ACTIVATE);
  command.mutable_alarm()->set_memberid(member_id());
  command.mutable_alarm()->set_alarm(etcdserverpb::NOSPACE);
  propose(std::move(command), [this](const Result<apply::Message>&) { raising_alarm_ = false; });
}

}  // namespace member
