// The one thread that fires `lost()`: request_stop() runs the user's stop callbacks, so it must not run on the timer
// thread.
#pragma once

#include <memory>
#include <stop_token>
#include <thread>

namespace conclave::inline v1::internal {

class Firing {
 public:
  Firing();
  ~Firing();
  Firing(const Firing&) = delete;
  Firing& operator=(const Firing&) = delete;

  void fire(std::stop_source source);  // soon, in order; at once on this thread after stop()
  void stop();                         // fires what waits, then ends the thread

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace conclave::inline v1::internal
