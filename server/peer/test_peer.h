// Members with nothing but their network, a proxy between them that can stop forwarding, and plain sockets for
// strangers.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/thread.h"
#include "peer/hello.h"
#include "peer/network.h"

namespace peer {

using Lane = Network::Lane;
inline constexpr std::array<Lane, Network::kLanes> kAllLanes = {Lane::kControl, Lane::kAppend, Lane::kForward,
                                                                Lane::kSnapshot};
inline constexpr uint64_t kCluster = 0xc1;

// False: not within ten seconds.
bool eventually(const std::function<bool()>& done);

class Recorder final : public Network::Receiver {
 public:
  struct Got {
    uint64_t from;
    Lane lane;
    Bytes frame;
  };
  void on_frame(uint64_t from, Lane lane, Bytes frame) override;
  void on_unreachable(uint64_t peer) override;
  void on_removed() override;
  void on_other_folder() override;
  void describe_cluster(std::function<void(Bytes)> answer) override { describe(std::move(answer)); }

  // Run on the network's thread; to be set before anything comes. `hook` at each frame, after it was noted.
  std::function<void()> hook;
  std::function<void(std::function<void(Bytes)>)> describe = [](const auto& answer) { answer("who we are"); };

  std::vector<Bytes> frames(uint64_t from, Lane lane);
  size_t count(uint64_t from, Lane lane);
  int unreachable(uint64_t peer);
  int removed();
  int other_folder();
  int calls();  // of any kind

 private:
  Mutex mutex_;
  std::vector<Got> got_ GUARDED_BY(mutex_);
  std::vector<uint64_t> unreachable_ GUARDED_BY(mutex_);
  int removed_ GUARDED_BY(mutex_) = 0;
  int other_folder_ GUARDED_BY(mutex_) = 0;
};

// One member on a free port of 127.0.0.1, the same one after a restart.
class Node {
 public:
  using Change = std::function<void(Options&)>;
  // Started, without peers.
  explicit Node(uint64_t id, const Change& change = {});

  uint64_t id() const { return id_; }
  const std::string& url() const { return url_; }
  Network& network() { return *network_; }
  Recorder& got() { return *recorder_; }
  void stop() { network_->stop(); }
  void restart();  // with an empty Recorder and no peers
  void know(const std::vector<Network::Peer>& peers, std::vector<uint64_t> removed = {}) {
    network_->set_peers(peers, std::move(removed));
  }
  Network::Peer as_peer() const { return {.id = id_, .urls = {url_}}; }
  // Tries until the connection is there and the frame fits.
  bool deliver(uint64_t to, Lane lane, const Bytes& frame);
  std::string metrics() const { return registry_->text(); }
  bool has_metric(const std::string& line) const { return metrics().find(line) != std::string::npos; }

 private:
  void make(std::unique_ptr<Listener> listener);

  const uint64_t id_;
  const Change change_;
  std::string url_;
  std::unique_ptr<metrics::Registry> registry_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Network> network_;  // ends before what it uses
};

// Forwards connections to `target`, both ways. Knows the lane of each by its hello.
class Proxy {
 public:
  explicit Proxy(const std::string& target);
  ~Proxy();
  const std::string& url() const { return url_; }
  // Connections stay open, but nothing passes any more: neither bytes nor their end.
  void freeze(std::set<Lane> lanes = {kAllLanes.begin(), kAllLanes.end()});
  void thaw() { freeze({}); }
  int connections();  // ever

 private:
  struct Pair;
  void run();
  void pass(Pair& pair, int direction);

  const std::string target_;
  std::string url_;
  int socket_ = -1;
  Mutex mutex_;
  bool stop_ GUARDED_BY(mutex_) = false;
  std::set<Lane> frozen_ GUARDED_BY(mutex_);
  int connections_ GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<Pair>> pairs_;  // the thread's
  std::thread thread_;
};

// A blocking socket of somebody who may not know the protocol.
class Stranger {
 public:
  explicit Stranger(const std::string& url);
  ~Stranger();
  Stranger(Stranger&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  void say(std::string_view bytes);  // what the other side does not take is lost
  void finish();                     // no more to say
  Bytes hear(size_t bytes);          // fewer: closed, or ten seconds have passed
  bool closed();                     // the other side has hung up
  std::optional<Answer> answer();

 private:
  int socket_;
};

}  // namespace peer
