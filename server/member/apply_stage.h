// The `apply` stage: takes committed entries in batches to the applier, answers who waits, and gives compaction a slice
// between batches. The only writer of the store. Never waits for the network.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "apply/applier.h"
#include "base/world.h"
#include "member/failure.h"
#include "member/loop.h"
#include "member/stage.h"
#include "member/waiters.h"
#include "metrics/registry.h"

namespace member {

// How apply and the checkpoint stage agree on a pause, in which nothing is committed to the store.
class PauseGate {
 public:
  void ask() { asked_.store(true); }
  bool asked() const { return asked_.load(); }
  void park() { parked_.store(true); }  // apply: I stand still until release()
  bool parked() const { return parked_.load(); }
  void release() {
    asked_.store(false);
    parked_.store(false);
  }

 private:
  std::atomic<bool> asked_{false};
  std::atomic<bool> parked_{false};
};

class ApplyStage final : public Stage {
 public:
  struct Parts {
    Clock& clock;
    Failure& failure;
    Waiters& waiters;
    store::Store& store;
    apply::Applier& applier;
    PauseGate& gate;
    metrics::Histogram& commit_seconds;
    uint64_t member_id = 0;
    uint64_t slices_below_bytes = 0;           // of the -wal (checkpoint_from_bytes)
    std::function<void(AppliedNote)> applied;  // to the loop
    std::function<void()> checkpoint_needed;   // wakes the checkpoint stage
  };
  explicit ApplyStage(Parts parts);

  void push(std::vector<LogEntry> committed);  // any thread; in order
  // What kept slices of compaction from being done is over (Applier::hold_compaction). Any thread.
  void go_on_with_slices() {
    slices_again_.store(true);
    wake();
  }
  Time step() override;
  const char* name() const override { return "apply"; }
  bool is_urgent() const override { return true; }

 private:
  Time apply_batch();
  Time slice();
  bool checkpoint_is_behind() const { return parts_.store.stats().wal_bytes >= parts_.slices_below_bytes; }
  void answer(std::vector<apply::Outcome> outcomes);

  Parts parts_;
  Inbox<std::vector<LogEntry>> inbox_;
  std::vector<std::vector<LogEntry>> drained_;
  std::deque<LogEntry> waiting_;
  std::vector<LogEntry> batch_;
  bool more_slices_ = true;  // a compaction may be left from before the start
  std::atomic<bool> slices_again_{false};
  bool full_told_ = false;
};

}  // namespace member
