// The hub. One mutex guards the index of watchers, their places and cursors, and the ring of recent batches; it is held
// for one publish (matching and handing out references), one request of a stream, or one chunk of catch-up, and never
// across a read of the store or a call out (wake, on_work). Lock order: hub, then one stream. mvcc may be locked when
// the hub's is taken (history's `wanted`), so nothing calls mvcc under it.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "watch/delivery.h"
#include "watch/hub.h"
#include "watch/range_index.h"
#include "watch/stream.h"
#include "watch/watcher.h"

namespace watch {

// One step of catch-up reads at most so many revisions and about so many rows and bytes.
inline constexpr int64_t kSliceRevisions = 1000;
inline constexpr size_t kSliceRowsMax = 1000;
inline constexpr size_t kSliceBytesMax = 4 << 20;
// What is done under one lock of the hub's mutex.
inline constexpr int64_t kChunkRevisions = 64;
inline constexpr size_t kChunkWatchers = 1000;

// Texts that clients match on: etcd's.
inline constexpr const char* kErrorEmptyRange = "mvcc: watcher range is empty";
inline constexpr const char* kErrorDuplicateId = "mvcc: duplicate watch ID provided on the WatchStream";
inline constexpr const char* kErrorTooMany = "etcdserver: too many watches on one stream";

inline constexpr int64_t kNoWatchId = -1;

class HubImpl final : public Hub {
 public:
  HubImpl(mvcc::Mvcc& mvcc, const Options& options);
  ~HubImpl() override;

  void set_header(std::function<void(etcdserverpb::ResponseHeader*)> fill) override {
    builder_.set_header(std::move(fill));
  }
  void publish(std::vector<mvcc::EventBatch> batches, int64_t revision) override EXCLUDES(mutex_);
  void compacted(int64_t revision) override EXCLUDES(mutex_);
  std::shared_ptr<Stream> open(std::function<void()> wake) override EXCLUDES(mutex_);
  bool step() override EXCLUDES(mutex_);
  void set_on_work(std::function<void()> on_work) override { on_work_ = std::move(on_work); }
  void tick(std::chrono::nanoseconds now) override EXCLUDES(mutex_);
  Stats stats() const override EXCLUDES(mutex_);

  // For streams.
  void create(StreamImpl& stream, const etcdserverpb::WatchCreateRequest& request) EXCLUDES(mutex_);
  void cancel(StreamImpl& stream, int64_t watch_id) EXCLUDES(mutex_);
  void progress(StreamImpl& stream) EXCLUDES(mutex_);
  void close(StreamImpl& stream) EXCLUDES(mutex_);
  void unblock(StreamImpl& stream) EXCLUDES(mutex_);  // it was read: those with room again may go on
  const Options& options() const { return options_; }
  const ResponseBuilder& builder() const { return builder_; }
  std::atomic<uint64_t>& buffered_bytes() { return buffered_bytes_; }

 private:
  using List = std::vector<Watcher*> Group::*;
  using BatchPtr = std::shared_ptr<const mvcc::EventBatch>;
  struct Slice;

  // Places (hub.cc). A watcher is in its group's list and its cohort only while its place says so.
  void to_tip(Watcher& watcher, int64_t next) REQUIRES(mutex_);
  void to_behind(Watcher& watcher, int64_t next, Effects& effects) REQUIRES(mutex_);
  void to_blocked(Watcher& watcher, int64_t next) REQUIRES(mutex_);
  void leave_place(Watcher& watcher) REQUIRES(mutex_);
  void resume_blocked(StreamImpl& stream, Effects& effects) REQUIRES(mutex_);
  void leave(Watcher& watcher) REQUIRES(mutex_);  // for good
  // Cancels from our side: the cursor was compacted, or its history cannot be read (`reason`).
  void end(Watcher& watcher, const std::string& reason, Effects& effects) REQUIRES(mutex_);
  static void put_in(std::vector<Watcher*>& list, Watcher& watcher, uint32_t Watcher::*slot);
  static void take_out(std::vector<Watcher*>& list, Watcher& watcher, uint32_t Watcher::*slot);

  // Handing out (hand_out.cc).
  void collect(const mvcc::EventBatch& batch, List list, std::vector<Group*>& touched) REQUIRES(mutex_);
  void hand_out(std::vector<Group*>& touched, List list, const Cohort* cohort, Effects& effects) REQUIRES(mutex_);
  bool offer(Watcher& watcher, const std::vector<DeliveryPtr>& deliveries, Effects& effects) REQUIRES(mutex_);
  void remember(BatchPtr batch) REQUIRES(mutex_);
  void all_fall_behind(int64_t revision, Effects& effects) REQUIRES(mutex_);

  // Progress (progress.cc).
  void want_progress(StreamImpl& stream, int64_t floor) REQUIRES(mutex_);
  bool answer_progress(StreamImpl& stream, Effects& effects) REQUIRES(mutex_);  // true: not wanted any more
  void check_progress(StreamImpl& stream, Effects& effects) REQUIRES(mutex_);
  void check_all_progress(Effects& effects) REQUIRES(mutex_);
  void schedule_progress(StreamImpl& stream) REQUIRES(mutex_);
  void unschedule_progress(StreamImpl& stream) REQUIRES(mutex_);
  void send_periodic(StreamImpl& stream, Effects& effects) REQUIRES(mutex_);

  // Catch-up (catch_up.cc).
  bool end_compacted(Effects& effects) REQUIRES(mutex_);
  bool plan(Slice& slice) REQUIRES(mutex_);
  Status read(Slice& slice) EXCLUDES(mutex_);
  void serve(Slice& slice) EXCLUDES(mutex_);
  void serve_chunk(Slice& slice, Effects& effects) REQUIRES(mutex_);
  void join(Slice& slice) EXCLUDES(mutex_);
  void give_up(Slice& slice, const Error& error) EXCLUDES(mutex_);
  void finish(Slice& slice) REQUIRES(mutex_);

  void run(Effects& effects) EXCLUDES(mutex_);

  mvcc::Mvcc& mvcc_;
  const Options options_;
  ResponseBuilder builder_;
  std::function<void()> on_work_;
  std::atomic<uint64_t> buffered_bytes_{0};

  mutable Mutex mutex_;
  int64_t revision_ GUARDED_BY(mutex_);  // published to us
  int64_t compacted_ GUARDED_BY(mutex_);
  RangeIndex index_ GUARDED_BY(mutex_);
  std::multimap<int64_t, std::unique_ptr<Cohort>> cohorts_ GUARDED_BY(mutex_);  // by cursor; not those in a slice
  int64_t hand_ GUARDED_BY(mutex_) = 0;  // catch-up goes round the cohorts by cursor, so that none waits for another
  bool work_told_ GUARDED_BY(mutex_) = false;     // on_work was called and step() did not run dry since
  std::deque<BatchPtr> ring_ GUARDED_BY(mutex_);  // without a gap, up to revision_
  size_t ring_bytes_ GUARDED_BY(mutex_) = 0;
  std::vector<StreamImpl*> waiting_ GUARDED_BY(mutex_);  // for an answer to a progress request
  // Periodic progress: due time and the stream's serial.
  std::map<std::pair<std::chrono::nanoseconds, uint64_t>, StreamImpl*> due_ GUARDED_BY(mutex_);
  std::optional<std::chrono::nanoseconds> now_ GUARDED_BY(mutex_);
  uint64_t streams_made_ GUARDED_BY(mutex_) = 0;
  Stats stats_ GUARDED_BY(mutex_);
};

}  // namespace watch
