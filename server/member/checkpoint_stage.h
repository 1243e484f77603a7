// The `checkpoint` stage: copies what SQLite's -wal holds into the database file, beside the traffic, and lets the Raft
// log forget what the store remembers. One pass:
//
//   pin the last commit and sync the -wal -> log the mark, durably -> copy and sync the database -> log the mark as
//   done, durably -> let go of the pin -> drop log segments that are below the mark
//
// A pass beside the traffic never catches up with it, so that the -wal could not start anew. When little is left, or
// the -wal is near its limit, the apply stage is asked to stand still for one more, short pass (PauseGate).
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "base/world.h"
#include "member/apply_stage.h"
#include "member/failure.h"
#include "member/stage.h"
#include "member/wal_stage.h"
#include "store/store.h"

namespace member {

class CheckpointStage final : public Stage {
 public:
  struct Parts {
    Clock& clock;
    Failure& failure;
    store::Store& store;
    PauseGate& gate;
    std::function<void(WalStage::Job)> log;  // to the wal stage
    std::function<void()> wake_apply;
    metrics::Histogram& pause_seconds;
    uint64_t from_bytes = 0;  // options.h: checkpoint_from_bytes, checkpoint_pause_below_bytes
    uint64_t pause_below_bytes = 0;
    uint64_t entries_kept = 0;  // below the mark, for members that lag
  };
  explicit CheckpointStage(Parts parts);

  Time step() override;
  const char* name() const override { return "checkpoint"; }

 private:
  enum class At { kIdle, kWaitsForMark, kWaitsForDone };
  void fail(const Error& error);
  Time begin();
  Time copy();
  Time end();
  void resume();
  void log_mark(const store::Mark& mark);
  bool wanted() const;

  Parts parts_;
  At at_ = At::kIdle;
  bool paused_pass_ = false;  // apply stands still for the pass that is running
  int passes_ = 0;            // beside the traffic, since the -wal last started anew
  store::Mark mark_;
  uint64_t bytes_at_pin_ = 0;
  Time paused_at_{};
  std::atomic<bool> mark_durable_{false};
};

}  // namespace member
