// The list of one service's instances: from the cluster, or from the last copy on disk until a member answers.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "conclave/discovery.h"
#include "core.h"
#include "list_watch.h"
#include "picker.h"

namespace conclave::inline v1::internal {

class DiscoveryCore : public std::enable_shared_from_this<DiscoveryCore> {
 public:
  DiscoveryCore(std::shared_ptr<Core> core, DiscoveryOptions options);

  void start();
  void close(Error why);  // the list stays as it is; what waits gets `why`
  void end_callbacks();

  Status wait_ready(const CallOptions& call);
  std::shared_ptr<const InstanceList> snapshot() const;
  Result<Picker::Choice> pick(const PickOptions& options);
  const std::shared_ptr<Picker>& picker() const { return picker_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void on_list(const RangeResult& all);
  void on_batch(const WatchBatch& batch);
  void read(const KeyValue& kv);
  void publish(Lock& lock, Revision revision, ViewSource source);
  void tell();
  void load();
  void save_soon();
  void save();

  const std::shared_ptr<Core> core_;
  const DiscoveryOptions options_;
  const std::string prefix_;
  const std::shared_ptr<Picker> picker_;
  const std::unique_ptr<CallbackQueue> callbacks_;
  const std::unique_ptr<CallbackQueue> disk_;  // saves wait for no callback of the user's
  std::shared_ptr<ListWatch> list_watch_;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::map<std::string, Instance> instances_;  // by key
  std::set<std::string> unreadable_;           // keys
  std::set<std::string> logged_;               // unreadable keys that were told of
  std::shared_ptr<const InstanceList> list_ = std::make_shared<const InstanceList>();
  std::string trouble_;
  std::string copy_trouble_;
  std::optional<Error> closed_;
  bool telling_ = false;  // a callback waits, and will see the newest list
  bool saving_ = false;
  TimePoint saved_at_{};
};

}  // namespace conclave::inline v1::internal
