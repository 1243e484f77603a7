// Which key is due. A key that is being worked on is never given out, and what changed meanwhile is queued once, for
// when it is done. Knows no clock, no thread and no lock: its owner has them.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "clock.h"

namespace conclave::inline v1::internal {

class WorkQueue {
 public:
  // As soon as possible, whatever it was waiting for; once, however often it is added before it is taken.
  void add(const std::string& key);
  // The key whose turn it is; it is running until done().
  std::optional<std::string> take(TimePoint now);
  // `again`: when it is due next if it is not added before; kNever: not by itself.
  void done(const std::string& key, TimePoint again = kNever);

  TimePoint next_due() const;  // of those that wait for their time; kNever: there are none
  std::size_t ready() const { return ready_.size(); }
  std::size_t size() const { return keys_.size(); }  // queued, waiting and running

 private:
  struct State {
    bool queued = false;  // in ready_, or will be when it is done
    bool running = false;
    TimePoint due = kNever;
  };

  std::map<std::string, State> keys_;
  std::deque<std::string> ready_;
  std::set<std::pair<TimePoint, std::string>> waiting_;
};

}  // namespace conclave::inline v1::internal
