// The member stops when its disk fails it: whoever finds out says so here, once; all stages stand still from then on.
#pragma once

#include <atomic>
#include <functional>

#include "base/log.h"
#include "base/result.h"
#include "base/thread.h"

namespace member {

class Failure {
 public:
  // Set before anything runs. Called once, on the thread that found the failure; must not block.
  std::function<void(const Error&)> on_failure = [](const Error&) {};

  // It has to stop for another reason.
  void stop(const Error& error) {
    if (failed_.exchange(true)) return;
    log_error("this member stops", {{"error", error.message}});
    on_failure(error);
  }

  void report(const Error& error) {
    if (failed_.exchange(true)) return;
    log_error(
        "this member stops: what it must remember can no longer be trusted to its disk. Nothing that was "
        "acknowledged is affected; repair the cause and start it again",
        {{"error", error.message}});
    on_failure(error);
  }
  bool failed() const { return failed_.load(); }

  // A full disk is no failure: what it holds up goes on when there is space. But it is told (health).
  void out_of_space(bool is) { out_of_space_.fetch_add(is ? 1 : -1); }
  bool out_of_space() const { return out_of_space_.load() > 0; }

 private:
  std::atomic<bool> failed_{false};
  std::atomic<int> out_of_space_{0};  // of the log and the store, each
};

}  // namespace member
