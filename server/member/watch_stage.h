// The `watch` stage: catch-up of watchers that are behind, periodic progress, and the small housekeeping that has a
// clock: automatic compaction and the space alarm.
#pragma once

#include <functional>

#include "base/world.h"
#include "member/compactor.h"
#include "member/failure.h"
#include "member/stage.h"
#include "watch/hub.h"

namespace member {

class WatchStage final : public Stage {
 public:
  // `housekeeping` returns when it wants to be called again.
  WatchStage(Clock& clock, watch::Hub& hub, std::function<Time(Time now)> housekeeping);
  Time step() override;
  const char* name() const override { return "watch"; }

 private:
  Clock& clock_;
  watch::Hub& hub_;
  std::function<Time(Time now)> housekeeping_;
  Time next_tick_{};
  Time next_housekeeping_{};
};

}  // namespace member
