// SIGINT and SIGTERM as a stop token. First line of main: it blocks both for this thread and all it starts from then
// on.
#pragma once

#include <memory>
#include <stop_token>

namespace conclave {
inline namespace v1 {

class ShutdownSignal {
 public:
  ShutdownSignal();
  ~ShutdownSignal();  // the signals of this thread are as before
  ShutdownSignal(const ShutdownSignal&) = delete;
  ShutdownSignal& operator=(const ShutdownSignal&) = delete;

  std::stop_token token() const;
  void wait() const;   // until one of the signals has come
  int signal() const;  // which one; 0: none yet

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace conclave
