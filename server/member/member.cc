#include "member/member.h"

#include <algorithm>
#include <deque>

#include "apply/entry_version.h"
#include "apply/shape.h"
#include "base/check.h"
#include "base/log.h"
#include "member/apply_stage.h"
#include "member/checkpoint_stage.h"
#include "member/compactor.h"
#include "member/data_folder.h"
#include "member/read_stage.h"
#include "member/stage_thread.h"
#include "member/wal_stage.h"
#include "member/watch_stage.h"

namespace member {
namespace {

constexpr Time kHousekeepingEvery = std::chrono::milliseconds(100);
constexpr Time kSoon = std::chrono::milliseconds(3);  // while the start waits for it

raft::Config raft_config(const Options& options, uint64_t id) {
  raft::Config config;
  config.id = id;
  config.heartbeat_ticks = 1;
  config.election_ticks = static_cast<uint32_t>(options.election_timeout / options.heartbeat_interval);
  return config;
}

raft::Restored restored_of(const DataFolder& folder, const std::vector<apply::Member>& members) {
  raft::Restored restored;
  restored.hard_state = folder.contents.hard_state;
  restored.base_index = folder.contents.base_index;
  restored.base_term = folder.contents.base_term;
  restored.entries = folder.contents.entries;
  restored.applied = folder.store->meta().applied_index;
  // The store may be ahead of the commit index that was logged: what is applied was committed.
  restored.hard_state.commit = std::max(restored.hard_state.commit, restored.applied);
  for (const apply::Member& member : members) {
    (member.is_learner ? restored.membership.learners : restored.membership.voters).push_back(member.id);
  }
  std::sort(restored.membership.voters.begin(), restored.membership.voters.end());
  std::sort(restored.membership.learners.begin(), restored.membership.learners.end());
  return restored;
}

class MemberOf final : public Member {
 public:
  MemberOf(World& world, const Options& options, metrics::Registry& metrics,
           std::function<void(const Error&)> on_failure)
      : world_(world),
        options_(options),
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
    failure_.on_failure = [this, on_failure = std::move(on_failure)](const Error& error) {
      waiters_.fail_all({Code::kUnavailable, kErrorStopped});
      on_failure(error);
    };
  }
  ~MemberOf() override { stop(); }

  Status open();

  void start() override {
    for (Stage* stage : stages()) threads_.emplace_back(*stage, world_.clock);
    for (StageThread& thread : threads_) thread.start();
  }
  void stop() override;
  std::vector<Stage*> stages() override { return {&*loop_, &*wal_, &*apply_, &*checkpoint_, &*watch_, &*reads_}; }

  void propose(conclavepb::Entry command, Done done) override;
  void linearize(std::function<void(Status)> done) override;
  bool linearizable_now() const override { return loop_->is_whole_quorum(); }
  std::unique_ptr<mvcc::Reader> reader() override { return mvcc_->reader(); }
  void keep_alive(int64_t lease, KeptAlive done) override {
    if (!loop_->keep_alive(lease, done)) done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
  }
  void remaining(int64_t lease, Remaining done) override {
    if (!loop_->remaining(lease, done)) done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
  }
  const lease::Table& leases() const override { return leases_; }
  int64_t new_lease_id() override;
  void damaged(const Error& error) override { failure_.report(error); }
  watch::Hub& watches() override { return *hub_; }
  State state() const override;
  uint64_t term() const override { return loop_->term(); }
  uint64_t cluster_id() const override { return folder_.contents.identity.cluster_id; }
  uint64_t member_id() const override { return folder_.contents.identity.member_id; }
  std::vector<apply::Member> members() const override { return applier_->members(); }
  std::vector<etcdserverpb::AlarmMember> alarms() const override { return applier_->alarms(); }
  const Options& options() const override { return options_; }

 private:
  Status open_parts();
  Status bootstrap();
  void build_stages(const std::vector<apply::Member>& members);
  Time housekeeping(Time now);
  void announce();
  void watch_space();
  bool refused_for_space(const conclavepb::Entry& command) const;
  bool over_quota() const;

  World& world_;
  const Options options_;
  metrics::Histogram& wal_sync_;
  metrics::Histogram& commit_;
  metrics::Histogram& pause_;
  metrics::Counter& failed_;
  Failure failure_;
  Waiters waiters_;
  PauseGate gate_;
  DataFolder folder_;
  lease::Table leases_;
  std::unique_ptr<mvcc::Mvcc> mvcc_;
  std::unique_ptr<watch::Hub> hub_;
  std::unique_ptr<apply::Applier> applier_;
  std::optional<WalStage> wal_;
  std::optional<ApplyStage> apply_;
  std::optional<CheckpointStage> checkpoint_;
  std::optional<WatchStage> watch_;
  std::optional<ReadStage> reads_;
  std::optional<Loop> loop_;
  Compactor compactor_;
  std::deque<StageThread> threads_;
  std::atomic<uint64_t> next_request_{1};
  // Housekeeping, on the watch stage.
  std::atomic<bool> announced_{false};
  std::atomic<bool> announcing_{false};
  std::atomic<bool> raising_alarm_{false};
  bool stopped_ = false;
};

Status MemberOf::open() {
  TRY_ASSIGN(folder_, open_data_folder(world_, options_));
  TRY(open_parts());
  if (folder_.is_new) TRY(bootstrap());
  const auto members = applier_->members();
  const bool known = std::any_of(members.begin(), members.end(), [&](const auto& m) { return m.id == member_id(); });
  if (!known) {
    return ::fail(Code::kFailedPrecondition, options_.data_dir +
                                                 ": the store does not know the member whose Raft log this is. "
                                                 "Log and store are of different members");
  }
  build_stages(members);
  next_request_ = world_.random.next() | 1;
  log_info("member opened", {{"data_dir", options_.data_dir},
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
  hub_ = watch::Hub::make(*mvcc_, {.progress_interval = options_.watch_progress_interval});
  const uint64_t id = (folder_.is_new ? identity_of(options_) : folder_.contents.identity).member_id;
  applier_ = std::make_unique<apply::Applier>(
      apply::Applier::Parts{.store = *folder_.store, .mvcc = *mvcc_, .leases = leases_, .hub = *hub_, .member_id = id});
  return {};
}

// The members must be in the database file, synced, before the log exists: there is no entry to apply them from.
Status MemberOf::bootstrap() {
  const wal::Identity identity = identity_of(options_);
  apply::Member self;
  self.id = identity.member_id;
  self.peer_urls = options_.peer_urls;
  TRY(applier_->bootstrap({self}));
  TRY_ASSIGN(const auto mark, folder_.store->begin_checkpoint());
  std::optional<store::Mark> done;
  if (mark) {
    TRY_ASSIGN(done, folder_.store->run_checkpoint());
  }
  folder_.store->end_checkpoint();
  TRY(create_log(world_, options_, folder_));
  if (!done) return {};
  wal::WalBatch batch;
  batch.mark = wal::StoreMark{done->applied, done->salt1, done->salt2, done->frames, done->done};
  return folder_.wal->append(batch);
}

void MemberOf::build_stages(const std::vector<apply::Member>& members) {
  wal_.emplace(std::move(folder_.wal), world_.clock, failure_, wal_sync_,
               [this](raft::BatchNumber batch) { loop_->persisted(batch); });
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
  loop_.emplace(options_, raft_config(options_, member_id()), restored_of(folder_, members),
                Loop::Parts{
                    .clock = world_.clock,
                    .random = world_.random,
                    .failure = failure_,
                    .waiters = waiters_,
                    .leases = leases_,
                    .persist = [this](WalStage::Job job) { wal_->push(std::move(job)); },
                    .commit = [this](std::vector<LogEntry> committed) { apply_->push(std::move(committed)); },
                });
  folder_.contents.entries.clear();
  folder_.contents.entries.shrink_to_fit();
}

void MemberOf::stop() {
  if (std::exchange(stopped_, true) || !loop_) return;
  waiters_.fail_all({Code::kUnavailable, kErrorStopped});
  for (StageThread& thread : threads_) thread.stop();
  wal_->seal();
}

void MemberOf::propose(conclavepb::Entry command, Done done) {
  if (refused_for_space(command)) {
    return done(::fail(Code::kResourceExhausted, kErrorNoSpace));
  }
  const uint64_t id = next_request_.fetch_add(1, std::memory_order_relaxed);
  command.set_version(apply::kEntryVersion);
  command.set_request_id(id);
  command.set_proposer(member_id());
  command.set_wall_ms(std::chrono::duration_cast<std::chrono::milliseconds>(world_.clock.wall()).count());
  auto data = std::make_shared<const Bytes>(command.SerializeAsString());
  waiters_.add(id, world_.clock.monotonic() + options_.request_timeout(),
               [this, done = std::move(done)](Result<apply::Message> response) {
                 if (!response) failed_.add();
                 done(std::move(response));
               });
  if (!loop_->propose({id, std::move(data)})) {
    waiters_.complete(id, ::fail(Code::kResourceExhausted, kErrorTooManyRequests));
  }
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

void MemberOf::linearize(std::function<void(Status)> done) {
  if (loop_->is_whole_quorum()) return done({});
  auto later = [this, done](Status status) { reads_->push([done, status] { done(status); }); };
  if (!loop_->read_index(std::move(later))) done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
}

int64_t MemberOf::new_lease_id() {
  while (true) {
    const auto id = static_cast<int64_t>(world_.random.next() >> 1);
    if (id != 0 && !leases_.find(id)) return id;
  }
}

Member::State MemberOf::state() const {
  State state;
  state.cluster_id = cluster_id();
  state.member_id = member_id();
  state.raft = loop_->status();
  state.published = mvcc_->published();
  state.store = folder_.store->stats();
  state.keys = mvcc_->key_count();
  state.proposals_waiting = waiters_.size();
  state.out_of_space = failure_.out_of_space();
  state.ready = !failure_.failed() && announced_.load() && state.raft.leader != raft::kNobody &&
                state.published.applied_term == state.raft.term;
  return state;
}

Time MemberOf::housekeeping(Time now) {
  if (failure_.failed()) return kWhenWoken;
  // Damage that a watch's read of history met, or any other that nobody reported.
  if (Status sound = folder_.store->sound(); !sound) {
    failure_.report(sound.error());
    return kWhenWoken;
  }
  if (!loop_->is_whole_quorum()) return now + kSoon;
  announce();
  watch_space();
  if (const auto revision = compactor_.tick(now, mvcc_->published().revision)) {
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
  return now + (announced_.load() ? kHousekeepingEvery : kSoon);
}

// Tells the cluster this member's name and client URLs, if they are not what it knows.
void MemberOf::announce() {
  if (announced_ || announcing_.load()) return;
  for (const apply::Member& member : applier_->members()) {
    if (member.id == member_id() && member.name == options_.name && member.client_urls == options_.client_urls) {
      announced_ = true;
      return;
    }
  }
  announcing_ = true;
  conclavepb::Entry command;
  auto& attributes = *command.mutable_member_attributes();
  attributes.set_id(member_id());
  attributes.set_name(options_.name);
  for (const std::string& url : options_.client_urls) attributes.add_client_urls(url);
  propose(std::move(command), [this](const Result<apply::Message>&) { announcing_ = false; });
}

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

}  // namespace

Result<std::unique_ptr<Member>> Member::open(World& world, const Options& options, metrics::Registry& metrics,
                                             std::function<void(const Error&)> on_failure) {
  auto member = std::make_unique<MemberOf>(world, options, metrics, std::move(on_failure));
  TRY(member->open());
  return std::unique_ptr<Member>(std::move(member));
}

}  // namespace member
