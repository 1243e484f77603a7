// All keys below a prefix, kept up to date: a list, then a watch from the revision after it, and a list again after a
// gap. Through restarts of the server and changes of member nothing is missed and nothing comes twice. What Discovery
// and ConfigReloader stand on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "conclave/kv.h"
#include "core.h"
#include "watch_core.h"

namespace conclave::inline v1::internal {

class ListWatch : public std::enable_shared_from_this<ListWatch> {
 public:
  // Called one at a time and in order, on a transport or timer thread: they must not block, nor call this object.
  struct Hooks {
    std::function<void(const RangeResult&)> on_list;  // the whole, at one revision; what was known before is void
    std::function<void(const WatchBatch&)> on_batch;  // the next revision with changes
    std::function<void(const Error&)> on_trouble;     // it goes on trying
  };

  ListWatch(std::shared_ptr<Core> core, std::string prefix, Hooks hooks);

  void start();
  void end();  // none of the hooks runs or starts afterwards

 private:
  void list();
  void listed(Result<Reply> reply);
  void list_later(std::chrono::milliseconds delay);
  void follow();

  const std::shared_ptr<Core> core_;
  const std::string prefix_;
  const Hooks hooks_;

  std::mutex mutex_;
  bool ended_ = false;
  bool listing_ = true;  // what the watch has is left with it until the list is there
  std::int64_t at_ = 0;  // told up to this revision
  std::shared_ptr<WatchCore> watch_;
  std::shared_ptr<Call> call_;
  Backoff backoff_;
};

}  // namespace conclave::inline v1::internal
