// Where the user's callbacks run: a few threads, and for each object a queue that runs one at a time and in order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace conclave::inline v1::internal {

class CallbackPool;

// The serial queue of one object. After close() returns none of its callbacks runs or starts; a running one is waited
// for, except from inside itself.
class CallbackQueue {
 public:
  // `name` appears in the log when a callback throws or takes over a second.
  CallbackQueue(std::shared_ptr<CallbackPool> pool, std::string name);
  ~CallbackQueue();
  CallbackQueue(const CallbackQueue&) = delete;
  CallbackQueue& operator=(const CallbackQueue&) = delete;

  // False: closed, or kCallbacksWaitingMax are waiting already (conflate instead of queueing each change).
  bool post(std::function<void()> callback);
  void close();

 private:
  friend class CallbackPool;
  struct State;
  std::shared_ptr<State> state_;
};

constexpr std::size_t kCallbacksWaitingMax = 4096;

class CallbackPool : public std::enable_shared_from_this<CallbackPool> {
 public:
  explicit CallbackPool(int threads);
  ~CallbackPool();

  // Told of callbacks that threw or ran over a second; called on the callback threads.
  void set_reporter(std::function<void(const std::string&)> report);
  std::uint64_t thrown() const;  // callbacks that threw so far
  void stop();                   // waits for what runs, except from inside; what waits is destroyed unrun
  bool on_thread() const;

 private:
  friend class CallbackQueue;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace conclave::inline v1::internal
