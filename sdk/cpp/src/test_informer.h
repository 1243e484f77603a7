// An informer of numbers for tests, and a record of what it did.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conclave/informer.h"

namespace conclave::testing {

using namespace std::chrono_literals;
using Numbers = Informer<int>;
using Now = std::shared_ptr<const Informed<int>>;
constexpr int kGone = -1;

inline Result<int> parse(const KeyValue& kv) {
  if (kv.value == "bad") return fail(Code::kInvalidArgument, "not a number");
  return std::stoi(kv.value);  // throws at text
}

// What the informer told, to be waited for.
class Told {
 public:
  Result<Requeue> reconcile(const std::string& key, const Now& now) {
    std::unique_lock lock(mutex_);
    turns.emplace_back(key, now ? now->value : kGone);
    state[key] = turns.back().second;
    overlap = overlap || !running.insert(key).second;
    most = std::max(most, running.size());
    wake_.notify_all();
    wake_.wait(lock, [&] { return !held.contains(key); });
    running.erase(key);
    if (failures > 0) {
      --failures;
      return fail(Code::kUnavailable, "not now");
    }
    return Requeue::done();
  }
  void error(const std::string& key, const Error& error) {
    const std::lock_guard lock(mutex_);
    errors.emplace_back(key, error.message);
    wake_.notify_all();
  }
  template <class Done>
  bool wait(Done done, std::chrono::seconds limit = 20s) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, limit, done);
  }
  template <class Change>
  void change(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    wake_.notify_all();
  }
  std::ptrdiff_t count(const std::string& key, int value) const {
    return std::ranges::count(turns, std::pair(key, value));
  }

  std::vector<std::pair<std::string, int>> turns;
  std::map<std::string, int> state;  // of the last turn of each key
  std::vector<std::pair<std::string, std::string>> errors;
  std::set<std::string> running;
  std::set<std::string> held;  // turns of these do not end
  std::size_t most = 0;        // at once
  bool overlap = false;        // of two turns of one key
  int failures = 0;            // turns to come

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
};

inline InformerOptions<int> options(Told& told, int workers = 2) {
  return {.prefix = "n/",
          .decode = parse,
          .workers = workers,
          .reconcile = [&told](const std::string& key, const Now& now) { return told.reconcile(key, now); },
          .on_error = [&told](const std::string& key, const Error& error) { told.error(key, error); }};
}

}  // namespace conclave::testing
