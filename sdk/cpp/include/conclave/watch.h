// The changes of a key or range, each exactly once and in order, through restarts of the server and changes of member.
//
//   auto watch = Watch::open(client, {.key = "app/", .prefix = true});
//   while (auto batch = watch->next({.stop = stop})) { /* batch->gap, then batch->events: all of one revision */ }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conclave/call.h"
#include "conclave/client.h"
#include "conclave/result.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

enum class EventType : std::uint8_t { kPut, kDelete };

struct Event {
  EventType type = EventType::kPut;
  KeyValue kv = {};                                 // of a delete: key and mod_revision only
  std::optional<KeyValue> previous = std::nullopt;  // with `prev_kv`, unless compacted
  bool created() const { return type == EventType::kPut && kv.create_revision == kv.mod_revision; }
};

// Events were lost: the history was compacted, or replaced by an older one. Read the range again.
struct Gap {
  Revision after{};   // the last revision before the hole
  Revision resume{};  // events from this revision on follow, none of them missing
  std::string reason = {};
};

struct WatchBatch {
  std::optional<Gap> gap = std::nullopt;  // comes before the events of this batch
  Revision revision{};                    // of all events of this batch
  std::vector<Event> events = {};         // empty only when there is a gap
};

struct WatchOptions {
  std::string key = {};
  bool prefix = false;
  std::string range_end = {};  // as in RangeOptions
  Revision from{};             // the first revision wanted; zero: what happens after the watch is ready
  bool prev_kv = false;
  bool puts = true;  // false: leave out puts
  bool deletes = true;
};

class [[nodiscard]] Watch {
 public:
  // Returns at once; the watch starts as soon as a member answers and lives until it is closed or destroyed.
  static Result<Watch> open(const Client& client, WatchOptions options);
  Watch(Watch&&) noexcept;
  Watch& operator=(Watch&&) noexcept;
  ~Watch();

  // Waits until a member has accepted the watch: what happens from then on is seen.
  Status wait_ready(CallOptions call = {}) const;

  // The next revision with events, or the next gap. Without a timeout it waits for ever. Errors end the wait, not the
  // watch, but kFailedPrecondition (closed) and what the server refuses for good (kNeverWorks). One thread at a time.
  Result<WatchBatch> next(CallOptions call = {});

  // All events up to this revision have been handed out by next().
  Revision synced() const;

  void close();  // next() then gives kFailedPrecondition

 private:
  class Impl;
  explicit Watch(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

using WatchHandler = std::function<void(const WatchBatch&)>;

// The pushed form: `handler` runs on a callback thread, one batch at a time and in order, until the subscription is
// destroyed. A slow handler slows its own subscription only. `on_end` tells when the server refuses the watch for good.
class [[nodiscard]] Subscription {
 public:
  Subscription(Subscription&&) noexcept;
  Subscription& operator=(Subscription&&) noexcept;
  ~Subscription();  // waits for a running handler, except from inside it

  Status wait_ready(CallOptions call = {}) const;

 private:
  friend Result<Subscription> subscribe(const Client&, WatchOptions, WatchHandler, std::function<void(const Error&)>);
  class Impl;
  explicit Subscription(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

Result<Subscription> subscribe(const Client& client, WatchOptions options, WatchHandler handler,
                               std::function<void(const Error&)> on_end = nullptr);

}  // namespace v1
}  // namespace conclave
