// The `wal` stage: makes durable what the loop hands over, all that is waiting with one write and one sync, and logs
// the store's marks beside it. The only thread that touches the Raft log on disk.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/world.h"
#include "member/failure.h"
#include "member/stage.h"
#include "metrics/registry.h"
#include "raft/node.h"
#include "wal/wal.h"

namespace member {

class WalStage final : public Stage {
 public:
  struct Job {
    // A hand-over of the loop's, or
    std::optional<raft::BatchNumber> batch;
    std::optional<HardState> hard_state;
    std::vector<LogEntry> entries;
    std::vector<raft::Message> messages;  // to be sent when all of that is durable; or
    // a mark of the store's; `durable` is called when it is, or
    std::optional<wal::StoreMark> mark;
    std::function<void()> durable;
    // the wish to forget what lies below.
    uint64_t drop_before = 0;
  };

  // `persisted` hears the last hand-over that is durable; before that `send` gets what such hand-overs promise others.
  WalStage(std::unique_ptr<wal::Wal> wal, Clock& clock, Failure& failure, metrics::Histogram& sync_seconds,
           std::function<void(raft::BatchNumber)> persisted, std::function<void(const raft::Message&)> send);

  void push(Job job);  // any thread; in order
  Time step() override;
  const char* name() const override { return "wal"; }
  bool is_urgent() const override { return true; }
  void seal();  // after the stage has stopped

 private:
  void collect();
  Time append();
  void finish();

  std::unique_ptr<wal::Wal> wal_;
  Clock& clock_;
  Failure& failure_;
  metrics::Histogram& sync_seconds_;
  std::function<void(raft::BatchNumber)> persisted_;
  std::function<void(const raft::Message&)> send_;
  Inbox<Job> inbox_;

  // Being written; kept over a retry when the disk is full.
  std::vector<Job> drained_;
  std::deque<Job> waiting_;
  wal::WalBatch batch_;
  std::optional<raft::BatchNumber> last_;
  std::vector<std::function<void()>> durable_;
  std::vector<raft::Message> messages_;
  uint64_t drop_before_ = 0;
  bool full_told_ = false;
};

}  // namespace member
