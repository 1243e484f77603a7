// Threads of the SDK have names and leave all signals to the program.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <functional>
#include <string>
#include <thread>

namespace conclave::inline v1::internal {

// Blocks all signals of this thread, and so of those it starts, while it lives.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

inline std::thread start_thread(const std::string& name, std::function<void()> run) {
  SignalsBlocked blocked;
  return std::thread([name, run = std::move(run)] {
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    run();
  });
}

// Joins, or lets go when called on that very thread (an object destroyed from inside its own callback).
inline void join_or_detach(std::thread& thread) {
  if (!thread.joinable()) return;
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

}  // namespace conclave::inline v1::internal
