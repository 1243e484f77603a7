// One watch: a position in the history, and the streams that move it forward.
//
// `next_` is the first revision not yet queued. Whatever ends a stream, the next one starts there, and what a stream
// repeats is dropped, so each event is queued exactly once. A stream that was silent for a while is opened anew beside
// the old one: that finds members that hang and connections that are dead without saying so, and asks how far the
// history has come, so that a later compaction is not mistaken for a loss.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conclave/watch.h"
#include "core.h"
#include "watch_stream.h"

namespace conclave::inline v1::internal {

class WatchCore : public std::enable_shared_from_this<WatchCore> {
 public:
  WatchCore(std::shared_ptr<Core> core, WatchOptions options);

  void start();
  void end(Error why);  // at most once effective

  // `listener` runs after something was queued or the watch ended; on a transport or timer thread, so it must not
  // block.
  void set_listener(std::function<void()> listener);
  Result<WatchBatch> next(TimePoint deadline, const std::stop_token& stop);
  std::optional<WatchBatch> try_next();
  bool has_batch() const;
  std::optional<Error> ended() const;  // once the queue is empty
  Status wait_ready(TimePoint deadline, const std::stop_token& stop);
  Revision synced() const;

 private:
  struct Attempt {
    std::uint64_t id = 0;
    std::size_t endpoint = 0;
    std::shared_ptr<Stream> stream;
    LineCutter lines;
    bool created = false;
    bool renewal = false;
  };
  // What must not be done with the mutex held.
  struct After {
    std::vector<std::shared_ptr<Stream>> cancel;
    bool notify = false;
  };
  template <class Change>
  void change(Change&& change);

  void connect(bool renewal);
  void on_data(std::uint64_t id, std::string_view piece);
  void on_done(std::uint64_t id, const HttpReply& reply);
  void on_message(After& after, std::uint64_t id, std::string_view line);
  bool refused(After& after, const Attempt& attempt, const Json& answer);
  void on_created(After& after, Attempt& attempt, const Json& result);
  void on_cancelled(After& after, Attempt& attempt, const Json& result);
  void on_events(After& after, const Json& result);
  void on_create_timeout(std::uint64_t id);
  void on_quiet_timer();

  Attempt* find(std::uint64_t id);
  void drop(After& after, std::uint64_t id);  // lets the stream go, and sees to it that another comes
  void drop_all(After& after);
  void stop(After& after, Error why);
  void gap(After& after, Revision resume, std::string reason);
  void queue(After& after, WatchBatch batch);
  void moved_to(std::int64_t revision);
  void connect_later(bool renewal, std::chrono::nanoseconds delay);
  void arm_quiet_timer(std::chrono::nanoseconds delay);
  void taken();  // a batch left the queue

  const std::shared_ptr<Core> core_;
  const WatchOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::function<void()> listener_;
  std::vector<Attempt> attempts_;  // the current one, and at most one renewal
  std::uint64_t last_id_ = 0;
  std::uint64_t tried_ = 0;
  std::uint64_t generation_ = 0;  // of the cluster
  std::int64_t next_ = 0;         // 0: not known before the first answer
  bool ready_ = false;
  bool connecting_ = false;  // an attempt will start by itself
  bool paused_ = false;      // the queue is full; the streams are let go until half of it is read
  std::optional<Error> end_;
  std::deque<WatchBatch> queue_;
  std::size_t queue_bytes_ = 0;
  Backoff backoff_;
  TimePoint last_message_{};
};

// A watch with its owner's hold on the client: ended when the owner or the client ends.
class OwnedWatch {
 public:
  // Checks the options; does not start it.
  static Result<std::shared_ptr<OwnedWatch>> make(const Client& client, WatchOptions options);
  OwnedWatch(std::shared_ptr<Handle> handle, WatchOptions options);
  ~OwnedWatch();
  OwnedWatch(const OwnedWatch&) = delete;
  OwnedWatch& operator=(const OwnedWatch&) = delete;

  Core& core() { return *handle_->core(); }
  WatchCore* operator->() { return watch_.get(); }
  void close();

 private:
  const std::shared_ptr<Handle> handle_;
  const std::shared_ptr<WatchCore> watch_;
  std::uint64_t closer_ = 0;
};

}  // namespace conclave::inline v1::internal
