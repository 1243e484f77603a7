#include "apply/applier.h"

#include <algorithm>
#include <list>
#include <utility>

#include "apply/alarms.h"
#include "base/check.h"
#include "base/thread.h"

namespace apply {
namespace {

// The store's pages carry checksums: what cannot be read here was never written by us.
template <class T>
T trusted(Result<T> parsed) {
  CHECK(parsed, parsed ? "" : parsed.error().message);
  return std::move(*parsed);
}

}  // namespace

struct Applier::State {
  explicit State(Parts with)
      : parts(with),
        alarms(trusted(Alarms::parse(parts.store.meta().alarms))),
        members(trusted(Members::parse(parts.store.meta().membership))) {}

  Result<Applied> run(Batch& batch, std::span<const LogEntry> entries);
  Status commit(Batch& batch);
  void publish(Batch& batch);
  Result<bool> compact();
  Result<bool> vacuum();

  Parts parts;
  mutable Mutex mutex;
  Alarms alarms GUARDED_BY(mutex);  // of the last commit; written by the apply thread only
  Members members GUARDED_BY(mutex);

  // Physical compactions that are applied and wait for their rows to be gone; as many as clients wait for.
  struct Waiting {
    int64_t revision = 0;
    Outcome outcome;
  };
  std::list<Waiting> waiting;
  std::list<Waiting> waiting_staged;  // of the batch that is being applied
  bool vacuuming = false;

  Mutex slice_mutex;  // over a slice of compaction
  bool held GUARDED_BY(slice_mutex) = false;
};

Applier::Applier(Parts parts) : state_(std::make_unique<State>(parts)) {}
Applier::~Applier() = default;

Status Applier::bootstrap(const std::vector<Member>& members, uint64_t index, uint64_t term) {
  store::Meta meta = state_->parts.store.meta();
  if (!meta.membership.empty()) return fail(Code::kFailedPrecondition, "the store has members already");
  meta.applied_index = index;
  meta.applied_term = term;
  Members all;
  for (const Member& member : members) TRY(all.add(member));
  return set_members(std::move(all), std::move(meta));
}

Status Applier::leave_alone(uint64_t id) {
  Members all;
  {
    MutexLock lock(state_->mutex);
    all = state_->members;
  }
  conclavepb::MembershipChange change;
  change.set_kind(conclavepb::MembershipChange::PROMOTE);
  change.set_id(id);
  if (Status promoted = all.change(change); !promoted && promoted.error().code == Code::kNotFound) return promoted;
  change.set_kind(conclavepb::MembershipChange::REMOVE);
  for (const Member& member : all.list()) {
    if (member.id == id) continue;
    change.set_id(member.id);
    TRY(all.change(change));
  }
  return set_members(std::move(all), state_->parts.store.meta());
}

Status Applier::set_members(Members all, store::Meta meta) {
  State& state = *state_;
  meta.membership = all.serialize();
  TRY_ASSIGN(auto txn, state.parts.store.begin());
  TRY(txn->set_meta(meta));
  TRY(txn->commit());
  MutexLock lock(state.mutex);
  state.members = std::move(all);
  return {};
}

Result<Applied> Applier::apply(std::span<const LogEntry> entries) {
  State& state = *state_;
  if (entries.empty()) return Applied{};
  const store::Meta& before = state.parts.store.meta();
  CHECK(entries.front().index == before.applied_index + 1, entries.front().index, before.applied_index);
  CHECK(entries.front().term >= before.applied_term, entries.front().term, before.applied_term);
  TRY_ASSIGN(auto txn, state.parts.store.begin());
  Batch batch{.txn = *txn,
              .writer = state.parts.mvcc.begin(*txn),
              .leases = state.parts.leases,
              .meta = before,
              .alarms = {},
              .members = {},
              .events = {},
              .lease_changes = {},
              .revocations_refused = {}};
  {
    MutexLock lock(state.mutex);
    batch.alarms = state.alarms;
    batch.members = state.members;
  }
  auto applied = state.run(batch, entries);
  Status committed;
  if (applied) committed = state.commit(batch);
  if (!applied || !committed) {
    state.parts.mvcc.rollback();
    state.parts.leases.undo();
    state.waiting_staged.clear();
    return ::fail(applied ? committed.error() : applied.error());
  }
  state.publish(batch);
  return applied;
}

Result<Applied> Applier::State::run(Batch& batch, std::span<const LogEntry> entries) {
  Applied applied;
  applied.outcomes.reserve(entries.size());
  for (const LogEntry& entry : entries) {
    CHECK(entry.index == batch.meta.applied_index + 1, entry.index, batch.meta.applied_index);
    CHECK(entry.term >= batch.meta.applied_term, entry.term, batch.meta.applied_term);
    TRY_ASSIGN(Executed executed, execute(batch, entry, parts.member_id));
    batch.meta.applied_index = entry.index;
    batch.meta.applied_term = entry.term;
    Outcome outcome{.index = entry.index,
                    .term = entry.term,
                    .request_id = executed.request_id,
                    .proposer = executed.proposer,
                    .response = std::move(executed.reply.response)};
    if (executed.reply.when_compacted >= 0) {
      waiting_staged.push_back({executed.reply.when_compacted, std::move(outcome)});
    } else {
      applied.outcomes.push_back(std::move(outcome));
    }
  }
  applied.leases = std::move(batch.lease_changes);
  applied.revocations_refused = std::move(batch.revocations_refused);
  applied.attributes = batch.attributes;
  return applied;
}

Status Applier::State::commit(Batch& batch) {
  batch.meta.revision = batch.writer.revision();
  batch.meta.content_hash = parts.mvcc.content_hash();
  batch.meta.alarms = batch.alarms.serialize();
  batch.meta.membership = batch.members.serialize();
  TRY(batch.txn.set_meta(batch.meta));
  return batch.txn.commit();
}

void Applier::State::publish(Batch& batch) {
  const int64_t compacted_before = parts.mvcc.published().compacted;
  parts.leases.commit();
  {
    MutexLock lock(mutex);
    alarms = std::move(batch.alarms);
    members = std::move(batch.members);
  }
  waiting.splice(waiting.end(), waiting_staged);
  parts.mvcc.publish({.revision = batch.meta.revision,
                      .compacted = batch.meta.compacted,
                      .applied_index = batch.meta.applied_index,
                      .applied_term = batch.meta.applied_term});
  if (!batch.events.empty()) parts.hub.publish(std::move(batch.events), batch.meta.revision);
  if (batch.meta.compacted != compacted_before) parts.hub.compacted(batch.meta.compacted);
}

Result<Applier::Slice> Applier::step() {
  State& state = *state_;
  Slice slice;
  TRY_ASSIGN(const bool compacting, state.compact());
  if (compacting) {
    slice.more = true;
    return slice;
  }
  const int64_t finished = state.parts.store.meta().compaction_finished;
  auto is_over = [finished](const State::Waiting& waiting) { return waiting.revision <= finished; };
  for (State::Waiting& waiting : state.waiting) {
    if (is_over(waiting)) slice.outcomes.push_back(std::move(waiting.outcome));
  }
  std::erase_if(state.waiting, is_over);
  if (!slice.outcomes.empty()) {
    slice.more = true;  // a failing vacuum must not keep these answers back
    return slice;
  }
  TRY_ASSIGN(slice.more, state.vacuum());
  return slice;
}

void Applier::hold_compaction(bool held) {
  MutexLock lock(state_->slice_mutex);
  state_->held = held;
}

// True: there is more to do.
Result<bool> Applier::State::compact() {
  store::Meta meta = parts.store.meta();
  if (meta.compaction_finished >= meta.compacted) return false;
  MutexLock lock(slice_mutex);
  if (held) return false;
  TRY_ASSIGN(auto txn, parts.store.begin());
  auto slice = [&]() -> Result<bool> {
    TRY_ASSIGN(const bool done, parts.mvcc.compact_step(*txn, kCompactRowsPerSlice));
    if (done) meta.compaction_finished = meta.compacted;
    meta.content_hash = parts.mvcc.content_hash();
    TRY(txn->set_meta(meta));
    TRY(txn->commit());
    return !done;
  };
  auto more = slice();
  if (!more) parts.mvcc.rollback();
  return more;
}

Result<bool> Applier::State::vacuum() {
  const store::Stats stats = parts.store.stats();
  const int64_t free = stats.size_bytes - stats.size_in_use_bytes;
  const int64_t wanted = std::max(kVacuumBytesMin, stats.size_bytes / 4);
  vacuuming = free > (vacuuming ? wanted / 2 : wanted);
  if (vacuuming) TRY(parts.store.vacuum(kVacuumPagesPerSlice));
  return vacuuming;
}

std::vector<uint64_t> Applier::removed_members() const {
  MutexLock lock(state_->mutex);
  return state_->members.removed();
}

std::vector<Member> Applier::members() const {
  MutexLock lock(state_->mutex);
  return state_->members.list();
}

std::vector<etcdserverpb::AlarmMember> Applier::alarms() const {
  MutexLock lock(state_->mutex);
  return state_->alarms.list();
}

}  // namespace apply
