// How other threads reach an io thread: a queue with one wake-up when it was empty. It outlives the thread, so whoever
// still holds a Reply or a stream may use it at any time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/thread.h"
#include "http/handler.h"

namespace http {

class Connection;
class Stream;

// A piece of an answer.
struct Part {
  std::shared_ptr<const Encoded> encoded;
  bool last = false;
};

// For one connection or one stream. Unbounded in itself, but each open call has at most one letter and each stream at
// most one: limits.connections_max bounds it. Who answers in parts bounds those that are under way.
struct Letter {
  std::shared_ptr<Connection> connection;
  uint64_t call = 0;
  // An answer, an answer already encoded, a plain one, or a part of one. None: `stream` was woken.
  std::variant<std::monostate, Answer, std::string, std::unique_ptr<PlainResponse>, Part> content;
  std::shared_ptr<Stream> stream;
};

class Inbox {
 public:
  // `wake` is called on the thread that finds the inbox empty.
  explicit Inbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void put(Letter letter) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!open_) return;
    letters_.push_back(std::move(letter));
    if (letters_.size() == 1) wake_();  // under the lock: close() must not overtake it
  }
  // Swaps the letters into `to`, which must be empty.
  void take(std::vector<Letter>& to) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    letters_.swap(to);
  }
  // From here on letters are dropped.
  void close() EXCLUDES(mutex_) {
    std::vector<Letter> dropped;
    MutexLock lock(mutex_);
    open_ = false;
    letters_.swap(dropped);
  }

 private:
  Mutex mutex_;
  bool open_ GUARDED_BY(mutex_) = true;
  std::vector<Letter> letters_ GUARDED_BY(mutex_);
  std::function<void()> wake_;
};

}  // namespace http
