// What became of the files of one store. The first error that is not a full disk is final: everything after it is
// refused with the same words, because what SQLite or the kernel hold in memory may no longer be what is on disk. Any
// thread.
#pragma once

#include <atomic>
#include <optional>

#include "base/result.h"
#include "base/thread.h"

namespace store {

class Failure {
 public:
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  Status check() const {
    if (!failed()) return {};
    MutexLock lock(mutex_);
    return fail(*final_);
  }
  void set(Error error) {
    MutexLock lock(mutex_);
    if (!final_) final_ = std::move(error);
    failed_.store(true, std::memory_order_release);
  }
  // A write that found no room; what SQLite makes of it says less.
  void note_full(Error error) {
    MutexLock lock(mutex_);
    full_ = std::move(error);
  }
  Error full() const {
    MutexLock lock(mutex_);
    return full_;
  }

 private:
  mutable Mutex mutex_;
  std::atomic<bool> failed_{false};
  std::optional<Error> final_ GUARDED_BY(mutex_);
  Error full_ GUARDED_BY(mutex_) = {Code::kResourceExhausted, "no space left"};
};

}  // namespace store
