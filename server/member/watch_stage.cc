#include "member/watch_stage.h"

#include <algorithm>

namespace member {
namespace {

constexpr Time kTick = std::chrono::milliseconds(100);

}  // namespace

WatchStage::WatchStage(Clock& clock, watch::Hub& hub, std::function<Time(Time now)> housekeeping)
    : clock_(clock), hub_(hub), housekeeping_(std::move(housekeeping)) {
  hub_.set_on_work([this] { wake(); });
}

Time WatchStage::step() {
  const Time now = clock_.monotonic();
  if (now >= next_tick_) {
    next_tick_ = now + kTick;
    hub_.tick(now);
  }
  if (now >= next_housekeeping_) next_housekeeping_ = housekeeping_(now);
  return hub_.step() ? kNow : std::min(next_tick_, next_housekeeping_);
}

}  // namespace member
