// base/network.h over TCP. The sender dials: one connection for each peer, lane and direction; the other side only
// reads, but for its answer to the hello and for pongs. One thread carries all of it. docs/format-peer.md has the
// bytes.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/network.h"
#include "base/result.h"
#include "metrics/registry.h"

namespace peer {

// Bound sockets. Connections wait in their backlog until a network serves them. Bind early: an address that is taken
// is the most common mistake, and the data folder is not touched by it.
class Listener {
 public:
  // "http://host:port"; port 0 takes a free one. kUnavailable: taken; kInvalidArgument or kUnimplemented: the URL.
  static Result<std::unique_ptr<Listener>> bind(const std::vector<std::string>& urls);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // As bound, with real ports, in the order given.
  const std::vector<std::string>& urls() const { return urls_; }
  // The caller owns them from here on.
  std::vector<int> release() { return std::exchange(sockets_, {}); }

 private:
  Listener() = default;
  std::vector<int> sockets_;
  std::vector<std::string> urls_;
};

// An empty lane takes any frame up to frame_bytes_max, whatever the other two say.
struct LaneLimits {
  size_t frame_bytes_max = Network::kFrameBytesMax;
  size_t queue_bytes_max = Network::kFrameBytesMax;  // not yet in the kernel's hands
  size_t queue_frames_max = 4096;
};

struct Options {
  uint64_t cluster_id = 0;
  uint64_t member_id = 0;
  uint64_t folder_id = 0;
  std::vector<std::string> own_urls = {};  // told to peers that may not have heard of them yet
  std::vector<std::string> listen_urls = {};
  std::unique_ptr<Listener> listener = nullptr;      // bound already; else start() binds `listen_urls`
  std::chrono::milliseconds election_timeout{1000};  // after such a silence a peer's connections are made anew
  std::chrono::milliseconds hello_timeout{3000};     // for a stranger to say who it is
  std::array<LaneLimits, Network::kLanes> lanes = {
      LaneLimits{.frame_bytes_max = 1 << 20, .queue_bytes_max = 4 << 20},  // control
      LaneLimits{},                                                        // append
      LaneLimits{.queue_frames_max = 16384},                               // forward
      LaneLimits{.queue_frames_max = 64},                                  // snapshot
  };
  // Gets accepted sockets (nonblocking, close-on-exec) on which no member speaks but a tool its HTTP; nothing was read
  // from them. Called on the network's thread. None: such a tool is answered 404 with one line.
  std::function<void(int socket)> take_http = nullptr;
};

// `metrics` outlives the network.
std::unique_ptr<Network> make_network(Options options, metrics::Registry& metrics);

// Blocking, for one who has no identity yet: asks a member at one of `urls` who the cluster is (its
// describe_cluster()); about `timeout` for each URL. kUnavailable: none of them can tell.
Result<Bytes> ask_cluster(const std::vector<std::string>& urls,
                          std::chrono::milliseconds timeout = std::chrono::seconds(5));

}  // namespace peer
