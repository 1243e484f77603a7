// Watches. A watcher is one cursor (its next revision) that is at the tip or behind.
//
// At the tip, publish() (apply thread) hands it the new batch by reference; when its bounded buffer is full it is
// behind again, and nothing is dropped. Behind, catch-up steps (background thread) read history through mvcc::Reader in
// shared scans until it may join the tip, which is admitted only if nothing was published past its cursor: no gap, no
// repeat. A cursor below the compacted revision is cancelled with compact_revision.
//
// Revisions of one publish() share a response up to response_bytes, so a client that waits for each of its writes sees
// one response a write, and a busy server sends few large ones. The events of a revision are never split, unless the
// watcher asked for fragments.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/rpc.pb.h"
#include "base/result.h"
#include "base/thread.h"
#include "mvcc/mvcc.h"

namespace watch {

struct Options {
  size_t watcher_buffer_bytes = 1 << 20;  // events held for one watcher, shared ones counted in full
  size_t stream_buffer_bytes = 8 << 20;   // for all watchers of one stream
  uint64_t process_buffer_bytes = 256ULL << 20;
  // Each of the three may be exceeded by one delivery (a response, or one larger revision) a stream: a reader whose
  // buffer is empty always gets something.
  size_t response_bytes = 2 << 20;  // about the size of one response of history (gRPC clients refuse over 4 MiB);
                                    // a single revision is only split where the watcher asked for fragments
  size_t watchers_per_stream_max = 100'000;
  std::chrono::milliseconds progress_interval{600'000};  // etcd's --watch-progress-notify-interval; at least 100 ms
  // What was published last, in memory: serves short lags without a look at the store.
  size_t ring_bytes = 4 << 20;
  size_t ring_revisions = 4096;
};

// Answers (created, canceled, progress) that one stream keeps for a client that sends requests and does not read: the
// layer above should take no more requests while Stream::crowded().
inline constexpr size_t kAnswersPerStreamMax = 1024;

// One response message of a stream. Shared by all watchers that get the very same one (same watch id, same events, same
// options). header.cluster_id, member_id and raft_term are what Hub::set_header() filled in when it was built.
struct Response {
  etcdserverpb::WatchResponse message;
  bool shared = false;  // others may get it, too
  // What the layer above makes of `message` once for all who share it (its encoded forms); only that layer knows what
  // is in here. Held by everybody who fills it.
  mutable Mutex forms_mutex;
  mutable std::array<std::shared_ptr<const void>, 2> forms GUARDED_BY(forms_mutex);
};
using ResponsePtr = std::shared_ptr<const Response>;

// The watches of one client stream. Any thread, one at a time for create/cancel/progress/take/close (the io thread's).
// Not to be called from inside `wake`.
class Stream {
 public:
  virtual ~Stream() = default;
  // Answers come through take(), in the stream's order, as etcd's: created, or created + canceled with a reason.
  virtual void create(const etcdserverpb::WatchCreateRequest& request) = 0;
  virtual void cancel(int64_t watch_id) = 0;  // an unknown id is ignored, as etcd does
  virtual void progress() = 0;                // answered once every watcher of the stream has joined the tip
  // The next response, nullptr: nothing now (the stream's `wake` will be called). Values before an event's revision
  // (prev_kv) are read here.
  virtual ResponsePtr take() = 0;
  virtual bool crowded() const = 0;  // kAnswersPerStreamMax answers wait for take()
  virtual void close() = 0;          // ends all watches; `wake` is not called any more after it returned
};

class Hub {
 public:
  static std::unique_ptr<Hub> make(mvcc::Mvcc& mvcc, const Options& options);
  virtual ~Hub() = default;  // after the last stream was closed

  // Fills cluster_id, member_id and raft_term of each response's header. Set once before use; any thread.
  virtual void set_header(std::function<void(etcdserverpb::ResponseHeader*)> fill) = 0;

  // Apply thread, after mvcc.publish(): the batches in revision order (empty ones left out), and where that leaves us.
  // Revisions that are missing between the last publish and this one (a snapshot was installed) are read from history.
  virtual void publish(std::vector<mvcc::EventBatch> batches, int64_t revision) = 0;
  virtual void compacted(int64_t revision) = 0;

  // `wake`: any thread, cheap; called when take() has something again after it had nothing.
  virtual std::shared_ptr<Stream> open(std::function<void()> wake) = 0;

  // One bounded slice of catch-up; true: more to do now. `on_work` (set once before use; any thread) says that there is
  // something to do again. One thread at a time.
  virtual bool step() = 0;
  virtual void set_on_work(std::function<void()> on_work) = 0;
  // Sends periodic progress where asked for and due. Call about every 100 ms with monotonic time.
  virtual void tick(std::chrono::nanoseconds now) = 0;

  struct Stats {
    size_t streams = 0;
    size_t watchers = 0;
    size_t behind = 0;
    uint64_t events = 0;  // handed out
    uint64_t buffered_bytes = 0;
  };
  virtual Stats stats() const = 0;  // any thread
};

}  // namespace watch
