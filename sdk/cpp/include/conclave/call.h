// How long a call may take, and what ends it early.
#pragma once

#include <chrono>
#include <initializer_list>
#include <list>
#include <optional>
#include <stop_token>

namespace conclave {
inline namespace v1 {

struct CallOptions {
  // The total, retries on other members included. Unset: the client's `call_timeout`, or no limit for what waits by
  // nature (lock, next). Zero or less: kDeadlineExceeded, and nothing is sent.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  std::stop_token stop = {};  // a stop gives kCancelled
};

// One token that stops when any of several does: `AnyStop either{stop, lock->lost()}; either.token()`.
class AnyStop {
 public:
  AnyStop(std::initializer_list<std::stop_token> tokens) {
    for (const std::stop_token& token : tokens) callbacks_.emplace_back(token, Stop{source_});
  }
  AnyStop(const AnyStop&) = delete;
  AnyStop& operator=(const AnyStop&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Stop {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  std::list<std::stop_callback<Stop>> callbacks_;  // a list: they cannot move
};

}  // namespace v1
}  // namespace conclave
