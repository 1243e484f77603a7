#include "sim/machine.h"

#include <algorithm>
#include <utility>

#include "member/snapshot_install.h"

namespace sim {

Machine::Machine(SimClock& clock, SeededRandom& random, std::unique_ptr<MemoryDisk> disk, DiskTime disk_time)
    : clock_(clock),
      random_(random),
      disk_time_(disk_time),
      local_clock_(clock),
      disk_(std::move(disk)),
      world_{local_clock_, random_, *disk_} {
  disk_->set_hook([this](const MemoryDisk::Call& call) {
    const bool is_sync = call.operation == MemoryDisk::Operation::kSync;
    const bool slow = is_sync && random_.below(disk_speed.slow_one_in) == 0;
    const uint64_t at_most = slow ? disk_speed.slow_sync_us : is_sync ? disk_speed.sync_us : disk_speed.call_us;
    const auto took = std::chrono::microseconds(random_.below(at_most) + 1);
    if (disk_time_ == DiskTime::kOfTheWorld) {
      clock_.advance(took);
    } else {
      local_clock_.used += took;
    }
  });
}

Status Machine::open(const member::Options& options, const Connections& connections) {
  failure_.reset();
  replacement_.reset();
  metrics_ = std::make_unique<metrics::Registry>();
  local_clock_.used = {};
  TRY_ASSIGN(member_,
             member::Member::open(world_, options, *metrics_,
                                  {.on_failure = [this](const Error& error) { failure_ = error; },
                                   .network = connections.network,
                                   .ask_cluster = connections.ask_cluster,
                                   .on_replace = [this](const member::Generation& with) { replacement_ = with; }}));
  member_->watches().set_header([](etcdserverpb::ResponseHeader*) {});
  const member::Time ready = local_clock_.monotonic();  // a start takes as long as its disk calls
  local_clock_.used = {};
  slots_.clear();
  for (member::Stage* stage : member_->stages()) {
    const size_t place = slots_.size();
    slots_.push_back({.stage = stage, .woken_at = ready});
    stage->set_waker(
        [this, place] { slots_[place].woken_at = std::min(slots_[place].woken_at, local_clock_.monotonic()); });
  }
  return member_->connect();
}

void Machine::kill() {
  disk_->restart();
  slots_.clear();
  member_.reset();
}

void Machine::close() {
  member_->stop();
  slots_.clear();
  member_.reset();
}

Status Machine::replace(const member::Options& options) {
  const uint64_t applied = member_->state().published.applied_index;
  close();
  disk_->restart();
  return member::put_in_force(*disk_, options, *std::exchange(replacement_, std::nullopt), applied);
}

void Machine::collect(std::vector<Choice>& ready, member::Time& next) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    const member::Time at = slots_[i].runs_at();
    if (at <= clock_.monotonic()) {
      ready.push_back({this, i});
    } else {
      next = std::min(next, at);
    }
  }
}

void Machine::run(size_t stage) {
  Slot& slot = slots_[stage];
  slot.woken_at = member::kWhenWoken;
  clock_.advance(std::chrono::microseconds(random_.below(20) + 1));
  const member::Time due = slot.stage->step();
  slot.due = due == member::kNow ? local_clock_.monotonic() : due;
  slot.busy_until = local_clock_.monotonic();
  local_clock_.used = {};
}

member::Options default_options() {
  member::Options options;
  options.data_dir = "data";
  options.peer_urls = {"http://127.0.0.1:2380"};
  options.client_urls = {"http://127.0.0.1:2379"};
  options.snapshot_count = 20;
  options.cache_bytes = 3 << 20;
  options.log_segment_bytes = 32 << 10;
  options.store_wal_bytes_max = 1 << 20;
  options.checkpoint_from_bytes = 96 << 10;
  options.checkpoint_pause_below_bytes = 16 << 10;
  options.watcher_buffer_bytes = 4 << 10;
  return options;
}

}  // namespace sim
