// A client's watch in a scenario (scenario.h), which notes what it is told.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/records.h"
#include "watch/hub.h"

namespace sim {

class Scenario;

// One watch of one client. It stays with its member until that goes down or the test leads it elsewhere, where it goes
// on behind what it has heard.
class WatchClient {
 public:
  struct What {
    std::string key = std::string(1, '\0');  // with `end`: all keys
    std::string end = std::string(1, '\0');
    int64_t from = 1;
    bool progress_notify = false;
  };
  WatchClient(Scenario& scenario, const What& what);

  void connect(size_t node);
  // As one more watcher of a stream that another client has open.
  void join(WatchClient& other);
  void disconnect();
  bool is_connected() const { return stream_ != nullptr; }
  std::optional<size_t> node() const { return stream_ ? std::optional(node_) : std::nullopt; }
  void ask_progress() { stream_->progress(); }
  void read(size_t responses_max = SIZE_MAX);

  int64_t next() const { return next_; }
  int64_t progress() const { return progress_; }  // the last that it was told
  bool has_heard(int64_t revision) const { return next_ > revision; }
  const history::WatchRecord& record() const { return record_; }
  const std::string& cancelled() const { return cancelled_; }  // why, if not for a compaction

 private:
  void create();
  void leave();
  void hear(const etcdserverpb::WatchResponse& response);

  Scenario& scenario_;
  const What what_;
  history::WatchRecord record_;
  std::shared_ptr<watch::Stream> stream_;
  bool owns_stream_ = true;
  WatchClient* host_ = nullptr;            // who reads the stream
  std::vector<WatchClient*> guests_ = {};  // by watch id - 1; null: it has left
  size_t node_ = 0;
  int64_t next_;
  int64_t progress_ = 0;
  std::string cancelled_;
};

}  // namespace sim
