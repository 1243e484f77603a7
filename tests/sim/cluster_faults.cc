#include "sim/cluster_faults.h"

#include <vector>

namespace sim {
namespace {

constexpr uint64_t kVast = 1ULL << 50;  // bytes; as good as no limit

}  // namespace

Faults::Kinds Faults::some(SeededRandom& random) {
  const auto maybe = [&random] { return random.below(2) == 0; };
  return {.power = maybe(),
          .kill = maybe(),
          .stop = maybe(),
          .pause = maybe(),
          .partition = maybe(),
          .bad_network = maybe(),
          .slow_disk = maybe(),
          .failing_disk = random.below(4) == 0,
          .full_disk = random.below(4) == 0};
}

void Faults::act() {
  end_the_due();
  SeededRandom& random = cluster_.random;
  const size_t node = random.below(cluster_.size());
  const bool open = cluster_.node(node).is_open();
  const uint64_t kind = random.below(9);
  const auto count = [this](bool is) {
    injected_ += is;
    return is;
  };
  switch (kind) {
    case 0:
      if (count(kinds_.power && open)) power(node);
      return;
    case 1:
      if (count(kinds_.kill && open)) cluster_.kill(node);
      return;
    case 2:
      if (count(kinds_.stop && cluster_.is_up(node) && random.below(3) == 0)) cluster_.close(node);
      return;
    case 3:
      if (count(kinds_.pause && cluster_.is_up(node))) pause(node);
      return;
    case 4:
      if (count(kinds_.partition && cluster_.size() > 1)) partition(node);
      return;
    case 5:
      if (count(kinds_.bad_network)) bad_network();
      return;
    case 6:
      if (count(kinds_.slow_disk)) slow_disk(node);
      return;
    case 7:
      if (count(kinds_.failing_disk && open)) failing_disk(node);
      return;
    default:
      if (count(kinds_.full_disk && open)) full_disk(node);
  }
}

// The power goes in the middle of one of the next changes of the disk, or at once.
void Faults::power(size_t node) {
  MemoryDisk& disk = cluster_.node(node).machine->disk();
  if (cluster_.random.below(4) == 0) return cluster_.crash(node);
  disk.cut_power_at(disk.changes() + cluster_.random.below(300));
}

void Faults::pause(size_t node) {
  cluster_.pause(node);
  const uint64_t at_most = cluster_.random.below(3) == 0 ? 8000 : 500;
  paused_until_[node] = cluster_.clock.monotonic() + std::chrono::milliseconds(cluster_.random.below(at_most));
}

void Faults::partition(size_t node) {
  SeededRandom& random = cluster_.random;
  const auto from = static_cast<SimulatedNetwork::Node>(node);
  switch (random.below(4)) {
    case 0: {  // alone
      std::vector<SimulatedNetwork::Node> others;
      for (size_t i = 0; i < cluster_.size(); ++i) others.push_back(static_cast<SimulatedNetwork::Node>(i));
      cluster_.network.cut_off(from, others);
      break;
    }
    case 1: {  // some on one side, some on the other
      for (size_t a = 0; a < cluster_.size(); ++a) {
        for (size_t b = 0; b < cluster_.size(); ++b) {
          const bool apart = (a < node) != (b < node);
          if (apart) cluster_.network.cut(static_cast<uint32_t>(a), static_cast<uint32_t>(b));
        }
      }
      break;
    }
    case 2:  // one direction
      cluster_.network.cut(from, static_cast<uint32_t>(random.below(cluster_.size())));
      break;
    default:  // one lane of one direction
      cluster_.network.cut(from, static_cast<uint32_t>(random.below(cluster_.size())),
                           static_cast<Network::Lane>(random.below(Network::kLanes)));
  }
  cut_until_ = cluster_.clock.monotonic() + std::chrono::milliseconds(random.below(8000));
}

void Faults::bad_network() {
  SeededRandom& random = cluster_.random;
  SimulatedNetwork::Quality quality;
  if (random.below(2) == 0) {
    quality.lost_per_million = static_cast<uint32_t>(random.below(200'000));
    quality.repeated_per_million = static_cast<uint32_t>(random.below(200'000));
    quality.reordered_per_million = static_cast<uint32_t>(random.below(300'000));
    quality.delay = std::chrono::microseconds(random.below(50'000));
    quality.jitter = std::chrono::microseconds(random.below(50'000));
    if (random.below(4) == 0) {
      quality.bytes_per_second = 100'000;
      quality.queue_bytes_max = 200'000;
    }
  }
  cluster_.network.set_quality(quality);
}

void Faults::slow_disk(size_t node) {
  Machine::DiskSpeed& speed = cluster_.node(node).machine->disk_speed;
  speed = {};
  if (cluster_.random.below(2) == 0) {
    speed.sync_us = cluster_.random.below(500'000);
    speed.slow_sync_us = 5'000'000;
    speed.slow_one_in = 20;
  }
}

// One call fails; the member stops and is started again.
void Faults::failing_disk(size_t node) {
  using Operation = MemoryDisk::Operation;
  constexpr Operation kOperations[] = {Operation::kWrite, Operation::kSync, Operation::kSyncDirectory,
                                       Operation::kRename, Operation::kAllocate};
  MemoryDisk::Fault fault{.operation = kOperations[cluster_.random.below(std::size(kOperations))]};
  fault.nth = 1 + cluster_.random.below(40);
  fault.path = cluster_.random.below(2) == 0 ? "data/wal" : "data/store";
  fault.partial_bytes = cluster_.random.below(2) * cluster_.random.below(5000);
  cluster_.node(node).machine->disk().inject(fault);
}

void Faults::full_disk(size_t node) {
  MemoryDisk& disk = cluster_.node(node).machine->disk();
  disk.set_capacity(kVast);
  if (const auto free = disk.free_bytes("data")) {
    disk.set_capacity(kVast - *free + cluster_.random.below(100'000));
    full_until_[node] = cluster_.clock.monotonic() + std::chrono::milliseconds(cluster_.random.below(8000));
  }
}

void Faults::end_the_due() {
  const auto now = cluster_.clock.monotonic();
  for (auto it = paused_until_.begin(); it != paused_until_.end();) {
    if (it->second > now) {
      ++it;
      continue;
    }
    if (cluster_.node(it->first).paused) cluster_.resume(it->first);
    it = paused_until_.erase(it);
  }
  for (auto it = full_until_.begin(); it != full_until_.end();) {
    if (it->second > now) {
      ++it;
      continue;
    }
    cluster_.node(it->first).machine->disk().set_capacity(kVast);
    it = full_until_.erase(it);
  }
  if (cut_until_ != std::chrono::nanoseconds{} && cut_until_ <= now) {
    cluster_.network.heal_all();
    cut_until_ = {};
  }
}

void Faults::heal() {
  for (size_t i = 0; i < cluster_.size(); ++i) {
    Cluster::Node& node = cluster_.node(i);
    node.machine->disk_speed = {};
    node.machine->disk().clear_faults();
    node.machine->disk().set_capacity(kVast);
    node.machine->disk().cut_power_at(~uint64_t{0});
    if (node.paused) cluster_.resume(i);
  }
  paused_until_.clear();
  full_until_.clear();
  cut_until_ = {};
  cluster_.network.heal_all();
  cluster_.network.set_quality({});
}

}  // namespace sim
