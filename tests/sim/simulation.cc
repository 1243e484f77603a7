#include "sim/simulation.h"

#include <algorithm>

namespace sim {

Simulation::Simulation(uint64_t with_seed, std::unique_ptr<MemoryDisk> with_disk)
    : seed(with_seed), random(with_seed), disk_(std::move(with_disk)), disk(*disk_), world_{clock, random, disk} {
  // Disk calls take time, some of them long.
  disk.set_hook([this](const MemoryDisk::Call& call) {
    const bool is_sync = call.operation == MemoryDisk::Operation::kSync;
    const uint64_t microseconds = is_sync ? (random.below(50) == 0 ? 20'000 : 500) : 3;
    clock.advance(std::chrono::microseconds(random.below(microseconds) + 1));
  });
}

Status Simulation::open(const member::Options& options) {
  failure_.reset();
  metrics_ = std::make_unique<metrics::Registry>();
  TRY_ASSIGN(member_, member::Member::open(world_, options, *metrics_,
                                           {.on_failure = [this](const Error& error) { failure_ = error; }}));
  member_->watches().set_header([](etcdserverpb::ResponseHeader*) {});
  slots_.clear();
  for (member::Stage* stage : member_->stages()) {
    const size_t place = slots_.size();
    slots_.push_back({stage});
    stage->set_waker([this, place] { slots_[place].woken = true; });
  }
  return {};
}

void Simulation::kill() {
  disk.restart();
  slots_.clear();
  member_.reset();
}

void Simulation::close() {
  member_->stop();
  slots_.clear();
  member_.reset();
}

void Simulation::step() {
  std::vector<size_t> ready;
  member::Time next = member::kWhenWoken;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.woken || slot.due <= clock.monotonic()) {
      ready.push_back(i);
    } else {
      next = std::min(next, slot.due);
    }
  }
  if (ready.empty()) {
    clock.advance_to(next == member::kWhenWoken ? clock.monotonic() + std::chrono::milliseconds(1) : next);
    return;
  }
  Slot& slot = slots_[ready[random.below(ready.size())]];
  slot.woken = false;
  clock.advance(std::chrono::microseconds(random.below(20) + 1));
  const member::Time due = slot.stage->step();
  slot.due = due == member::kNow ? clock.monotonic() : due;
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
  return options;
}

}  // namespace sim
