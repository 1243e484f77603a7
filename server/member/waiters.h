// Who waits for which proposal. Any thread: registered by the io thread that proposes, completed by apply, failed by
// the loop (refused, timed out, stopped).
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "apply/applier.h"
#include "base/result.h"
#include "base/thread.h"
#include "member/stage.h"

namespace member {

using Done = std::function<void(Result<apply::Message>)>;  // called once, on any thread, must not block

class Waiters {
 public:
  void add(uint64_t request_id, Time deadline, Done done);
  void complete(uint64_t request_id, Result<apply::Message> response);  // nobody waiting: nothing
  void expire(Time now);              // fails what waits too long: it may still happen
  void fail_all(const Error& error);  // and everything that comes after
  size_t size() const;

 private:
  struct Waiter {
    Time deadline{};
    Done done;
  };
  mutable Mutex mutex_;
  std::unordered_map<uint64_t, Waiter> waiters_ GUARDED_BY(mutex_);
  std::optional<Error> ended_ GUARDED_BY(mutex_);
};

}  // namespace member
