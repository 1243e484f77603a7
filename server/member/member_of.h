// The one Member there is: the stages of one data folder, wired together. Private to this folder.
//   member.cc            opens, wires, starts and stops
//   member_requests.cc   what clients ask for
//   member_network.cc    what other members send
//   housekeeping.cc      what a member does by itself from time to time
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "member/apply_stage.h"
#include "member/checkpoint_stage.h"
#include "member/compactor.h"
#include "member/data_folder.h"
#include "member/founding.h"
#include "member/member.h"
#include "member/read_stage.h"
#include "member/snapshot_make.h"
#include "member/snapshot_receive.h"
#include "member/stage_thread.h"
#include "member/wal_stage.h"
#include "member/watch_stage.h"

namespace member {

class MemberOf final : public Member, private Network::Receiver {
 public:
  MemberOf(World& world, const Options& options, metrics::Registry& metrics, Surroundings around);
  ~MemberOf() override;

  Status open();

  Status connect() override;
  void start() override;
  void stop() override;
  std::vector<Stage*> stages() override;

  void propose(conclavepb::Entry command, Done done) override;
  void change_membership(conclavepb::MembershipChange change, Done done) override;
  void transfer_leadership(uint64_t to, std::function<void(Status)> done) override;
  void linearize(std::function<void(Status)> done) override;
  bool linearizable_now() const override { return loop_->is_whole_quorum(); }
  std::unique_ptr<mvcc::Reader> reader() override { return mvcc_->reader(); }
  void keep_alive(int64_t lease, KeptAlive done) override;
  void remaining(int64_t lease, Remaining done) override;
  const lease::Table& leases() const override { return leases_; }
  int64_t new_lease_id() override;
  void damaged(const Error& error) override { failure_.report(error); }
  watch::Hub& watches() override { return *hub_; }
  State state() const override;
  uint64_t term() const override { return loop_->term(); }
  bool is_learner() const override { return loop_->is_learner(); }
  uint64_t cluster_id() const override { return folder_.contents.identity.cluster_id; }
  uint64_t member_id() const override { return folder_.contents.identity.member_id; }
  std::vector<apply::Member> members() const override { return applier_->members(); }
  std::vector<etcdserverpb::AlarmMember> alarms() const override { return applier_->alarms(); }
  const Options& options() const override { return options_; }

 private:
  // member.cc
  Status open_parts();
  Status bootstrap(const Founding& founding);
  Status log_founding(wal::WalBatch batch);
  Status go_on_alone();
  Status checkpoint_now(wal::WalBatch batch);
  void build_stages();
  void build_snapshot_stages();
  void build_loop();
  uint64_t add_waiter(Done done);
  void submit(Command command);

  // member_network.cc
  void on_frame(uint64_t from, Network::Lane lane, Bytes frame) override;
  void on_unreachable(uint64_t peer) override;
  void on_removed() override;
  void on_other_folder() override;
  void describe_cluster(std::function<void(Bytes)> answer) override;
  void tell_network();
  void make_snapshot(uint64_t to, uint64_t index_min);
  void snapshot_built(const SnapshotReceiver::Built& built);

  // housekeeping.cc
  Time housekeeping(Time now);
  void announce();
  void watch_space();
  void compact_automatically(Time now);
  bool refused_for_space(const conclavepb::Entry& command) const;
  bool over_quota() const;

  World& world_;
  const Options options_;
  const Surroundings around_;
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
  std::unique_ptr<Network> network_;
  std::optional<WalStage> wal_;
  std::optional<ApplyStage> apply_;
  std::optional<CheckpointStage> checkpoint_;
  std::optional<WatchStage> watch_;
  std::optional<ReadStage> reads_;
  std::optional<SnapshotMaker> snapshots_;
  std::optional<SnapshotReceiver> receiver_;
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

}  // namespace member
