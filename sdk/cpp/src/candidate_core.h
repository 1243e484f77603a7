// One candidate and its thread, which has all the calls and runs `lead`: a lease, a place in the queue, a term, and all
// over again.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "conclave/candidate.h"
#include "core.h"
#include "hold.h"
#include "ownership.h"
#include "session_core.h"

namespace conclave::inline v1::internal {

class CandidateCore : public std::enable_shared_from_this<CandidateCore> {
 public:
  CandidateCore(std::shared_ptr<Core> core, CandidateOptions options);

  void start();
  // Does not wait for `lead`; the end of the client does, within its limits.
  void ask_to_stop(const std::string& why);
  void end();  // waits for `lead`, except from inside itself; no callback runs afterwards
  Status close(const CallOptions& call);

  CandidateState state() const;
  Status wait_ready(const CallOptions& call);

 private:
  using Lock = std::unique_lock<std::mutex>;

  void work(const std::stop_token& stop);
  void stand(const std::stop_token& stop);
  Result<std::shared_ptr<SessionCore>> hold_session(const std::stop_token& stop);
  void lead(std::unique_ptr<Hold> hold, const std::stop_token& stop);
  void leave();
  void set_state(Lock& lock, CandidateState state, const std::string& why);
  void trouble(const std::string& why, const std::stop_token& stop);
  void pause(std::chrono::milliseconds time, const std::stop_token& stop);
  template <class Ready>
  bool wait(Lock& lock, TimePoint until, const std::stop_token& stop, Ready ready);

  const std::shared_ptr<Core> core_;
  const CandidateOptions options_;
  const std::unique_ptr<CallbackQueue> callbacks_;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  CandidateState state_ = CandidateState::kJoining;
  std::string why_;                       // of the state, or the last obstacle
  std::string end_why_;                   // it was asked to stop
  std::shared_ptr<Ownership> ownership_;  // of the present term
  std::shared_ptr<SessionCore> session_;  // written by the thread; the last one stays for close()
  std::shared_ptr<void> farewell_;        // keeps the client's end waiting
  std::stop_source stop_;
  std::thread thread_;
  std::thread::id thread_id_;
};

}  // namespace conclave::inline v1::internal
