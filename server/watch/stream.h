// The queue of one stream: answers and deliveries in the order in which they go out, with its three budgets.
//
// Locks: the hub's mutex may be held when this one is taken, never the other way round. This one is held for a push or
// a pop; responses are built outside. wake() is called with neither held.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/thread.h"
#include "watch/hub.h"
#include "watch/watcher.h"

namespace watch {

class HubImpl;

// What is to be done once the hub's mutex is free again.
struct Effects {
  std::vector<std::shared_ptr<StreamImpl>> wake;
  bool work = false;  // catch-up has something to do again
};

class StreamImpl final : public Stream, public std::enable_shared_from_this<StreamImpl> {
 public:
  StreamImpl(HubImpl& hub, uint64_t serial, std::function<void()> wake);
  ~StreamImpl() override { close(); }

  void create(const etcdserverpb::WatchCreateRequest& request) override;
  void cancel(int64_t watch_id) override;
  void progress() override;
  ResponsePtr take() override;
  bool crowded() const override;
  void close() override;

  // For the hub, under its mutex.
  // False: no room; the watcher is marked as waiting, and the hub hears unblock() when there is some.
  bool push(Watcher& watcher, const DeliveryPtr& delivery, Effects& effects) EXCLUDES(mutex_);
  void push_answer(ResponsePtr answer, Effects& effects) EXCLUDES(mutex_);
  // Takes the watcher's deliveries out of the queue, and with them the progress that was queued behind them and speaks
  // of them. True: a progress request of the client is to be answered anew.
  bool drop(Watcher& watcher) EXCLUDES(mutex_);
  void drop_all() EXCLUDES(mutex_);                    // everything that is queued; for close()
  bool may_resume(Watcher& watcher) EXCLUDES(mutex_);  // room enough to be worth a scan; if not, it goes on waiting
  void call_wake() EXCLUDES(wake_mutex_);              // under no mutex

  // The hub's notes on this stream, guarded by the hub's mutex.
  struct Notes {
    uint64_t serial = 0;
    std::map<int64_t, Watcher> watchers;
    int64_t next_id = 0;
    size_t behind = 0;              // watchers that are kBehind or kBlocked
    std::vector<Watcher*> blocked;  // the kBlocked ones
    int64_t latest_start = 0;       // of watchers that were made for the future
    bool progress_wanted = false;
    int64_t progress_floor = 0;  // what was published when it was asked for
    size_t progress_notify = 0;  // watchers that want it periodically
    std::chrono::nanoseconds progress_due{0};
  };
  Notes notes;

 private:
  struct Item {
    Watcher* watcher = nullptr;  // of a delivery
    DeliveryPtr delivery;
    ResponsePtr answer;
  };
  Item pop() REQUIRES(mutex_);
  bool low() const REQUIRES(mutex_);
  void wake_when_armed(Effects& effects) REQUIRES(mutex_);

  HubImpl& hub_;
  bool closed_ = false;  // the hub may be gone then
  // Parts of a delivery that became several responses; the reader's own.
  std::vector<ResponsePtr> parts_;
  size_t next_part_ = 0;

  mutable Mutex mutex_;
  std::vector<Item> items_ GUARDED_BY(mutex_);
  size_t head_ GUARDED_BY(mutex_) = 0;  // items before it are gone
  size_t answers_ GUARDED_BY(mutex_) = 0;
  size_t buffered_bytes_ GUARDED_BY(mutex_) = 0;
  bool armed_ GUARDED_BY(mutex_) = true;  // take() found nothing: the next push wakes
  bool any_waiting_ GUARDED_BY(mutex_) = false;

  Mutex wake_mutex_;  // held while `wake_` runs, so that close() can promise that it does not run later
  std::function<void()> wake_ GUARDED_BY(wake_mutex_);
};

}  // namespace watch
