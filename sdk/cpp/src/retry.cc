#include "retry.h"

#include <algorithm>
#include <condition_variable>

#include "random.h"

namespace conclave::inline v1::internal {

namespace {
constexpr std::chrono::milliseconds kBackoffMin{50};
constexpr int kDoublingsMax = 20;
constexpr std::chrono::seconds kSlotLength{5};
constexpr std::int64_t kRetriesAlways = 10;
constexpr std::int64_t kCallsPerRetry = 10;
}  // namespace

std::chrono::milliseconds Backoff::next() {
  const auto limit = std::min(max_, kBackoffMin * (1 << std::min(attempt_, kDoublingsMax)));
  ++attempt_;
  return std::chrono::milliseconds(random_below(static_cast<std::uint64_t>(limit.count()) + 1));
}

void pause_until(TimePoint until, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, stop, until, [] { return false; });
}

RetryBudget::Slot& RetryBudget::slot(TimePoint now) {
  const std::int64_t number = now.time_since_epoch() / kSlotLength;
  Slot& slot = slots_[static_cast<std::size_t>(number) % kSlots];
  if (slot.number != number) slot = {.number = number};
  return slot;
}

void RetryBudget::called(TimePoint now) {
  std::scoped_lock lock(mutex_);
  ++slot(now).calls;
}

bool RetryBudget::take(TimePoint now) {
  std::scoped_lock lock(mutex_);
  Slot& current = slot(now);
  std::int64_t calls = 0;
  std::int64_t retries = 0;
  for (const Slot& slot : slots_) {
    if (slot.number + static_cast<std::int64_t>(kSlots) <= current.number) continue;
    calls += slot.calls;
    retries += slot.retries;
  }
  if (retries >= kRetriesAlways + calls / kCallsPerRetry) return false;
  ++current.retries;
  return true;
}

}  // namespace conclave::inline v1::internal
