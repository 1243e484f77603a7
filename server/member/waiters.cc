#include "member/waiters.h"

#include "member/options.h"

namespace member {

void Waiters::add(uint64_t request_id, Time deadline, Done done) {
  std::optional<Error> ended;
  {
    MutexLock lock(mutex_);
    ended = ended_;
    if (!ended) waiters_.emplace(request_id, Waiter{deadline, std::move(done)});
  }
  if (ended) done(::fail(*ended));
}

void Waiters::complete(uint64_t request_id, Result<apply::Message> response) {
  Done done;
  {
    MutexLock lock(mutex_);
    const auto found = waiters_.find(request_id);
    if (found == waiters_.end()) return;
    done = std::move(found->second.done);
    waiters_.erase(found);
  }
  done(std::move(response));
}

void Waiters::expire(Time now) {
  std::vector<Done> late;
  {
    MutexLock lock(mutex_);
    for (auto it = waiters_.begin(); it != waiters_.end();) {
      if (it->second.deadline <= now) {
        late.push_back(std::move(it->second.done));
        it = waiters_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (Done& done : late) done(::fail(Code::kUnavailable, kErrorTimeout));
}

void Waiters::fail_all(const Error& error) {
  std::unordered_map<uint64_t, Waiter> all;
  {
    MutexLock lock(mutex_);
    ended_ = error;
    all.swap(waiters_);
  }
  for (auto& [id, waiter] : all) waiter.done(::fail(error));
}

size_t Waiters::size() const {
  MutexLock lock(mutex_);
  return waiters_.size();
}

}  // namespace member
