// A service of etcd's messages that answers the way a test wants it to. Test code only.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "api/rpc.pb.h"
#include "http/server.h"
#include "http/test_client.h"

namespace http::test {

// What happened to the streams, for tests to wait for.
class Journal {
 public:
  void note(std::string entry) {
    std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
    changed_.notify_all();
  }
  // False: not within ten seconds.
  bool wait_for(const std::string& entry, int times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10),
                             [&] { return std::count(entries_.begin(), entries_.end(), entry) >= times; });
  }
  int count(const std::string& entry) {
    std::lock_guard lock(mutex_);
    return static_cast<int>(std::count(entries_.begin(), entries_.end(), entry));
  }
  std::vector<std::string> entries() {
    std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> entries_;
};

// POST /v3/kv/put answers {"header":{"revision":n}} at once, /v3/kv/range with the key as the only pair,
// /v3/kv/deleterange from another thread, /v3/kv/compaction never (the reply is dropped), /v3/kv/txn is kept for the
// test. /v3/lease/keepalive echoes ids and ends with the body. /v3/watch sends what the test publishes.
class Service {
 public:
  Service();
  ~Service();

  Router router;
  Journal journal;

  // The calls of /v3/kv/txn that wait.
  UnaryCall take_txn();
  size_t txns_waiting();

  // To every watch, from the calling thread, encoded once for each wire.
  void publish(const etcdserverpb::WatchResponse& response);
  void finish_watches(Status status);

 private:
  class Watch;
  class KeepAlive;

  void add_unary();
  void add_streams();
  void add_plain();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<UnaryCall> txns_;
  std::vector<std::shared_ptr<struct WatchQueue>> watches_;
  std::vector<std::thread> threads_;
  int64_t revision_ = 0;
};

}  // namespace http::test
