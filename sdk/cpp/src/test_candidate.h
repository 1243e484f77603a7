// A candidate's terms and states, as the tests of Candidate see them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "conclave/candidate.h"

namespace conclave::testing {

using namespace std::chrono_literals;

inline void wait_for_stop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait(lock, stop, [] { return false; });
}

// The terms of one candidate, each until it is told to stop or to return.
class Terms {
 public:
  auto lead() {
    return [this](Leadership& mine, std::stop_token stop) {
      std::unique_lock lock(mutex_);
      tokens_.push_back(number(mine.token()));
      leading_ = true;
      wake_.notify_all();
      wake_.wait(lock, stop, [this] { return go_back_; });
      stopped_ = stop.stop_requested();
      go_back_ = false;
      leading_ = false;
      wake_.notify_all();
    };
  }
  // Until the term with this number (from 1) has begun; its token, or 0.
  std::int64_t wait_for(std::size_t term, std::chrono::milliseconds limit = 15s) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, limit, [&] { return tokens_.size() >= term; }) ? tokens_[term - 1] : 0;
  }
  void go_back() {
    std::scoped_lock lock(mutex_);
    go_back_ = true;
    wake_.notify_all();
  }
  std::size_t count() {
    std::scoped_lock lock(mutex_);
    return tokens_.size();
  }
  bool leading() {
    std::scoped_lock lock(mutex_);
    return leading_;
  }
  bool stopped() {
    std::scoped_lock lock(mutex_);
    return stopped_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<std::int64_t> tokens_;
  bool leading_ = false;
  bool go_back_ = false;
  bool stopped_ = false;
};

// What on_state told, in order.
class Told {
 public:
  auto listener() {
    return [this](CandidateState state, const std::string& why) {
      std::scoped_lock lock(mutex_);
      states_.push_back(state);
      why_ = why;
      wake_.notify_all();
    };
  }
  bool wait_for(CandidateState state, std::chrono::milliseconds limit = 15s) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, limit, [&] { return !states_.empty() && states_.back() == state; });
  }
  std::vector<CandidateState> states() {
    std::scoped_lock lock(mutex_);
    return states_;
  }
  std::string why() {
    std::scoped_lock lock(mutex_);
    return why_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<CandidateState> states_;
  std::string why_;
};

inline CandidateOptions standing(Terms& terms, std::string value = "v") {
  return {.election = "e", .value = std::move(value), .ttl = 5s, .lead = terms.lead()};
}

}  // namespace conclave::testing
