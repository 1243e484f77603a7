// An informer without its type: what is below the prefix, which keys are due, and the workers.
//
// Three steps, each on a thread that may do it: the transport's hands in what came (`news_`, one entry a key however
// often it changes), a callback thread decodes that and publishes it as one revision, and the workers reconcile.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "conclave/informer.h"
#include "core.h"
#include "list_watch.h"
#include "work_queue.h"

namespace conclave::inline v1::internal {

// What came since the last time it was taken in.
struct InformerNews {
  bool whole = false;  // `changed` is all there is: what is not in it is gone
  std::map<std::string, std::optional<KeyValue>> changed;
  Revision revision{};
};

class InformerCore : public std::enable_shared_from_this<InformerCore> {
 public:
  InformerCore(std::shared_ptr<Core> core, InformerHooks hooks);

  void start();
  void close(Error why);  // nothing new starts; what waits gets `why`
  void join();            // after close(): none of the user's code runs any more, except what called this

  Status wait_ready(const CallOptions& call);
  std::shared_ptr<const InformerState> snapshot();
  std::shared_ptr<const void> get(std::string_view key) const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Object = std::shared_ptr<const void>;

  struct Decoded {
    std::string key;
    std::optional<Result<Object>> object;  // nothing: deleted
  };

  void on_list(const RangeResult& all);
  void on_batch(const WatchBatch& batch);
  void came(Lock& lock);
  void take_in();
  void publish(const InformerNews& news, std::vector<Decoded> decoded);
  Result<Object> decode(const KeyValue& kv);

  void work();
  void settle(Lock& lock, const std::string& key);
  Result<Requeue> reconcile(const std::string& key, const Object& now);
  void resync_later();
  void tell(const std::string& key, const Error& error);
  tl::unexpected<Error> threw(Code code, const std::string& key, const std::string& what);

  const std::shared_ptr<Core> core_;
  const InformerHooks hooks_;
  const std::unique_ptr<CallbackQueue> callbacks_;
  std::shared_ptr<ListWatch> list_watch_;
  std::vector<std::thread> workers_;

  mutable std::mutex mutex_;
  std::condition_variable work_came_;
  std::condition_variable_any ready_;
  std::optional<InformerNews> news_;  // there is something: take_in() is on its way
  InformerState state_;
  std::set<std::string, std::less<>> refused_;
  std::shared_ptr<const InformerState> snapshot_;  // of state_; null: it has changed since
  WorkQueue queue_;
  std::map<std::string, Backoff> backoffs_;  // of keys that failed last time
  Loop::TimerId resync_timer_ = 0;
  std::string trouble_;
  std::optional<Error> closed_;
};

}  // namespace conclave::inline v1::internal
