#include "member/member.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "member/member_of.h"
#include "member/raft_messages.h"

namespace member {
namespace {

raft::Config raft_config(const Options& options, uint64_t id) {
  raft::Config config;
  config.id = id;
  config.heartbeat_ticks = 1;
  config.election_ticks = static_cast<uint32_t>(options.election_timeout / options.heartbeat_interval);
  config.pre_vote = options.pre_vote;
  return config;
}

raft::Restored restored_of(DataFolder& folder, const std::vector<apply::Member>& members) {
  raft::Restored restored;
  restored.hard_state = folder.contents.hard_state;
  restored.base_index = folder.contents.base_index;
  restored.base_term = folder.contents.base_term;
  restored.entries = std::move(folder.contents.entries);
  restored.applied = folder.store->meta().applied_index;
  // A folder of a release that did not begin behind the founding entry: a member that joins must get a snapshot all the
  // same.
  if (restored.base_index == 0 && restored.applied > 0) {
    restored.base_index = restored.entries.front().index;
    restored.base_term = restored.entries.front().term;
    restored.entries.erase(restored.entries.begin());
  }
  // The store may be ahead of the commit index that was logged: what is applied was committed.
  restored.hard_state.commit = std::max(restored.hard_state.commit, restored.applied);
  restored.membership = membership_of(members);
  return restored;
}

wal::StoreMark logged(const store::Mark& mark) {
  return {mark.applied, mark.salt1, mark.salt2, mark.frames, mark.done};
}

}  // namespace

MemberOf::MemberOf(World& world, const Options& options, metrics::Registry& metrics, Surroundings around)
    : world_(world),
      options_(options),
      around_(std::move(around)),
      wal_sync_(metrics.histogram("etcd_disk_wal_fsync_duration_seconds",
                                  "The latency of a write and sync of the Raft log.",
                                  metrics::exponential_buckets(0.001, 2, 14))),
      commit_(metrics.histogram("etcd_disk_backend_commit_duration_seconds",
                                "The latency of applying and committing a batch of entries to the store.",
                                metrics::exponential_buckets(0.001, 2, 14))),
      pause_(metrics.histogram("conclave_store_pause_duration_seconds",
                               "How long writes stood still for the end of a checkpoint of the store.",
                               metrics::exponential_buckets(0.001, 2, 14))),
      failed_(metrics.counter("etcd_server_proposals_failed_total", "The total number of failed proposals seen.")),
      compactor_(options.auto_compaction) {
  failure_.on_failure = [this](const Error& error) {
    waiters_.fail_all({Code::kUnavailable, kErrorStopped});
    around_.on_failure(error);
  };
}

MemberOf::~MemberOf() { stop(); }

Status MemberOf::open() {
  TRY_ASSIGN(folder_, open_data_folder(world_, options_));
  std::optional<Founding> founding;
  if (folder_.is_new) {
    TRY_ASSIGN(founding, found(options_, around_.ask_cluster));
    folder_.contents.identity = founding->identity;
  }
  TRY(open_parts());
  if (founding) TRY(bootstrap(*founding));
  if (folder_.lacks_founding) TRY(log_founding({}));
  if (options_.force_new_cluster) TRY(go_on_alone());
  const auto members = applier_->members();
  const auto own = std::ranges::find(members, member_id(), &apply::Member::id);
  if (own != members.end() && own->folder_id != 0 && own->folder_id != folder_.id) {
    return ::fail(Code::kFailedPrecondition, options_.data_dir + ": " + other_folder(member_id()));
  }
  if (own == members.end()) {
    const bool removed = std::ranges::binary_search(applier_->removed_members(), member_id());
    return ::fail(Code::kFailedPrecondition,
                  options_.data_dir + ": " +
                      (removed ? kErrorRemoved
                               : "the store does not know the member whose Raft log this is. Log and store are of "
                                 "different members"));
  }
  build_stages();
  next_request_ = world_.random.next() | 1;
  log_info("member opened", {{"data_dir", options_.data_dir},
                             {"member_id", member_id()},
                             {"cluster_id", cluster_id()},
                             {"members", members.size()},
                             {"applied_index", folder_.store->meta().applied_index},
                             {"revision", folder_.store->meta().revision},
                             {"keys", mvcc_->key_count()},
                             {"leases", leases_.size()}});
  return {};
}

Status MemberOf::open_parts() {
  TRY_ASSIGN(const auto rows, folder_.store->load_leases());
  leases_.load(rows);
  const auto attach = [this](std::string_view key, int64_t lease) { leases_.attach(lease, key); };
  TRY_ASSIGN(mvcc_, mvcc::Mvcc::open(*folder_.store, {.cache_bytes = options_.cache_bytes / 3}, attach));
  leases_.commit();
  hub_ = watch::Hub::make(*mvcc_, {.watcher_buffer_bytes = options_.watcher_buffer_bytes,
                                   .progress_interval = options_.watch_progress_interval});
  applier_ = std::make_unique<apply::Applier>(apply::Applier::Parts{
      .store = *folder_.store, .mvcc = *mvcc_, .leases = leases_, .hub = *hub_, .member_id = member_id()});
  return {};
}

// The members must be in the database file, synced, before the log exists: there is no entry to apply them from. One
// that joins knows whom to talk to; its state comes with a snapshot.
Status MemberOf::bootstrap(const Founding& founding) {
  const uint64_t index = founding.joins ? 0 : kFoundingIndex;
  TRY(applier_->bootstrap(founding.members, index, index == 0 ? 0 : kFoundingTerm));
  TRY_ASSIGN(const auto begun, folder_.store->begin_checkpoint());
  std::optional<store::Mark> mark;
  if (begun) {
    TRY_ASSIGN(mark, folder_.store->run_checkpoint());
  }
  folder_.store->end_checkpoint();
  TRY(create_log(world_, options_, folder_));
  wal::WalBatch batch;
  if (mark) batch.mark = logged(*mark);
  return founding.joins ? folder_.wal->append(batch) : log_founding(std::move(batch));
}

Status MemberOf::log_founding(wal::WalBatch batch) {
  batch.snapshot = wal::SnapshotRecord{.index = kFoundingIndex, .term = kFoundingTerm, .data = {}};
  batch.hard_state = HardState{.term = kFoundingTerm, .vote = raft::kNobody, .commit = kFoundingIndex};
  TRY(folder_.wal->append(batch));
  folder_.contents.base_index = kFoundingIndex;
  folder_.contents.base_term = kFoundingTerm;
  folder_.contents.hard_state = *batch.hard_state;
  return {};
}

// --force-new-cluster: this member's word counts alone from here on. What it has is kept, also what was never
// committed; changes of the membership among that are dropped.
Status MemberOf::go_on_alone() {
  log_warn("--force-new-cluster: this member goes on alone. The others must never be started with their data again",
           {{"member_id", member_id()}, {"members_dropped", applier_->members().size() - 1}});
  TRY(applier_->leave_alone(member_id()));
  wal::WalBatch batch;  // from the first change on: what is written there supersedes all behind it
  for (LogEntry& entry : folder_.contents.entries) {
    if (entry.index <= folder_.store->meta().applied_index) continue;
    if (entry.type == EntryType::kMembership) {
      entry.type = EntryType::kCommand;
      entry.data = std::make_shared<const Bytes>();
    } else if (batch.entries.empty()) {
      continue;
    }
    batch.entries.push_back(entry);
  }
  return checkpoint_now(std::move(batch));
}

// Makes what the store holds durable, and logs `batch` with the marks.
Status MemberOf::checkpoint_now(wal::WalBatch batch) {
  TRY_ASSIGN(const auto begun, folder_.store->begin_checkpoint());
  if (begun) {
    batch.mark = logged(*begun);
    TRY(folder_.wal->append(batch));
    TRY_ASSIGN(const auto done, folder_.store->run_checkpoint());
    batch = {};
    batch.mark = logged(done);
  }
  folder_.store->end_checkpoint();
  return folder_.wal->append(batch);
}

void MemberOf::build_stages() {
  if (around_.network) network_ = around_.network(cluster_id(), member_id(), folder_.id);
  wal_.emplace(
      std::move(folder_.wal), world_.clock, failure_, wal_sync_,
      [this](raft::BatchNumber batch) { loop_->persisted(batch); },
      [this](const raft::Message& message) { send(network_.get(), message); });
  apply_.emplace(ApplyStage::Parts{
      .clock = world_.clock,
      .failure = failure_,
      .waiters = waiters_,
      .store = *folder_.store,
      .applier = *applier_,
      .gate = gate_,
      .commit_seconds = commit_,
      .member_id = member_id(),
      .slices_below_bytes = options_.checkpoint_from_bytes,
      .applied = [this](AppliedNote note) { loop_->applied(std::move(note)); },
      .checkpoint_needed = [this] { checkpoint_->wake(); },
  });
  checkpoint_.emplace(CheckpointStage::Parts{
      .clock = world_.clock,
      .failure = failure_,
      .store = *folder_.store,
      .gate = gate_,
      .log = [this](WalStage::Job job) { wal_->push(std::move(job)); },
      .wake_apply = [this] { apply_->wake(); },
      .pause_seconds = pause_,
      .from_bytes = options_.checkpoint_from_bytes,
      .pause_below_bytes = options_.checkpoint_pause_below_bytes,
      .entries_kept = options_.snapshot_count,
  });
  watch_.emplace(world_.clock, *hub_, [this](Time now) { return housekeeping(now); });
  reads_.emplace();
  build_snapshot_stages();
  build_loop();
}

void MemberOf::build_snapshot_stages() {
  const auto send = [this](uint64_t to, Bytes frame) {
    return network_ && network_->send(to, Network::Lane::kSnapshot, std::move(frame));
  };
  snapshots_.emplace(SnapshotMaker::Parts{
      .clock = world_.clock,
      .failure = failure_,
      .disk = world_.disk,
      .store = *folder_.store,
      .data_dir = options_.data_dir,
      .cluster_id = cluster_id(),
      .hold_compaction =
          [this](bool held) {
            applier_->hold_compaction(held);
            if (!held) apply_->go_on_with_slices();
          },
      .send = send,
  });
  receiver_.emplace(SnapshotReceiver::Parts{
      .clock = world_.clock,
      .failure = failure_,
      .disk = world_.disk,
      .options = options_,
      .cluster_id = cluster_id(),
      .send = send,
      .built = [this](const SnapshotReceiver::Built& built) { snapshot_built(built); },
      .failed = [this](const Generation&, const Error&) { loop_->fetch_failed(); },
  });
}

void MemberOf::build_loop() {
  raft::Restored restored = restored_of(folder_, applier_->members());
  loop_.emplace(options_, raft_config(options_, member_id()), std::move(restored),
                Loop::Parts{
                    .clock = world_.clock,
                    .random = world_.random,
                    .failure = failure_,
                    .waiters = waiters_,
                    .leases = leases_,
                    .network = network_.get(),
                    .persist = [this](WalStage::Job job) { wal_->push(std::move(job)); },
                    .commit = [this](std::vector<LogEntry> committed) { apply_->push(std::move(committed)); },
                    .members = [this] { return applier_->members(); },
                    .members_changed = [this] { tell_network(); },
                    .snapshot_needed = [this](uint64_t to, uint64_t index_min) { make_snapshot(to, index_min); },
                    .snapshot_offered =
                        [this](const raft::SnapshotOffer& offer) {
                          receiver_->offer(offer.from, {.term = offer.point.term, .index = offer.point.index});
                        },
                });
}

std::vector<Stage*> MemberOf::stages() {
  return {&*loop_, &*wal_, &*apply_, &*checkpoint_, &*watch_, &*reads_, &*snapshots_, &*receiver_};
}

void MemberOf::start() {
  for (Stage* stage : stages()) threads_.emplace_back(*stage, world_.clock);
  for (StageThread& thread : threads_) thread.start();
  if (Status connected = connect(); !connected) failure_.stop(connected.error());
}

void MemberOf::stop() {
  if (std::exchange(stopped_, true) || !loop_) return;
  if (network_) network_->stop();
  waiters_.fail_all({Code::kUnavailable, kErrorStopped});
  for (StageThread& thread : threads_) thread.stop();
  wal_->seal();
}

Result<std::unique_ptr<Member>> Member::open(World& world, const Options& options, metrics::Registry& metrics,
                                             Surroundings around) {
  auto member = std::make_unique<MemberOf>(world, options, metrics, std::move(around));
  TRY(member->open());
  return std::unique_ptr<Member>(std::move(member));
}

}  // namespace member
