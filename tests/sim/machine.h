// One machine of a simulation: a disk, and the member that runs on it now. Its stages are run by whoever simulates, one
// step at a time.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/memory_disk.h"
#include "base/world.h"
#include "member/member.h"
#include "metrics/registry.h"
#include "sim/clock.h"

namespace sim {

class Machine {
 public:
  // What a disk call costs is virtual time: of the whole world (simplest, for one machine), or of the stage that made
  // it, which is then busy while everything else goes on.
  enum class DiskTime : uint8_t { kOfTheWorld, kOfTheStage };
  struct DiskSpeed {
    uint64_t call_us = 3;
    uint64_t sync_us = 500;
    uint64_t slow_sync_us = 20'000;
    uint64_t slow_one_in = 50;
  };

  Machine(SimClock& clock, SeededRandom& random, std::unique_ptr<MemoryDisk> disk, DiskTime disk_time);

  // Opens the member on what the disk has. An error is the member's own refusal (or the power that went meanwhile).
  // Without a network it is a cluster of one.
  struct Connections {
    std::function<std::unique_ptr<Network>(uint64_t cluster_id, uint64_t member_id, uint64_t folder_id)> network = {};
    member::AskCluster ask_cluster = {};
  };
  Status open(const member::Options& options, const Connections& connections);
  Status open(const member::Options& options) { return open(options, {}); }
  // The process is gone, the disk is not. What it had asked for is never answered.
  void kill();
  // Stops it in order.
  void close();
  // The member wants to be replaced by what it was sent: closes it and puts that in force. Then it is to be opened.
  bool wants_replacement() const { return replacement_.has_value(); }
  Status replace(const member::Options& options);

  member::Member& member() { return *member_; }
  bool is_open() const { return member_ != nullptr; }
  const std::optional<Error>& failure() const { return failure_; }

  // The stages that want to run now are added to `ready`; `next` becomes the time of the earliest other one if that is
  // earlier.
  struct Choice {
    Machine* machine = nullptr;
    size_t stage = 0;
  };
  void collect(std::vector<Choice>& ready, member::Time& next);
  void run(size_t stage);
  const char* stage_name(size_t stage) const { return slots_[stage].stage->name(); }

  MemoryDisk& disk() { return *disk_; }
  DiskSpeed disk_speed;

 private:
  // The shared clock, and what the step under way has used up of its own.
  class LocalClock final : public Clock {
   public:
    explicit LocalClock(SimClock& shared) : shared_(shared) {}
    std::chrono::nanoseconds monotonic() override { return shared_.monotonic() + used; }
    std::chrono::nanoseconds wall() override { return shared_.wall() + used; }
    std::chrono::nanoseconds used{};

   private:
    SimClock& shared_;
  };
  struct Slot {
    member::Stage* stage = nullptr;
    member::Time woken_at = member::kNow;  // kWhenWoken: not woken
    member::Time due = member::kWhenWoken;
    member::Time busy_until = member::kNow;
    member::Time runs_at() const { return std::max(std::min(woken_at, due), busy_until); }
  };

  SimClock& clock_;
  SeededRandom& random_;
  const DiskTime disk_time_;
  LocalClock local_clock_;
  const std::unique_ptr<MemoryDisk> disk_;
  World world_;
  std::unique_ptr<metrics::Registry> metrics_;
  std::optional<Error> failure_;
  std::optional<member::Generation> replacement_;
  std::unique_ptr<member::Member> member_;
  std::vector<Slot> slots_;
};

// Small segments, caches and limits, so that every rare path is a common one.
member::Options default_options();

}  // namespace sim
