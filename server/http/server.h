// The client port: listening sockets, io threads, limits, orderly end. Start order: fill the Router, construct,
// listen(), start(); then stop(). All from one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/handler.h"
#include "http/limits.h"

namespace http {

struct ServerOptions {
  size_t io_threads = 1;
  Limits limits = {};
  BatchHooks hooks = {};
};

class Server {
 public:
  // `router` must outlive the server and not change any more.
  Server(const Router& router, ServerOptions options);
  ~Server();  // stop() with no patience, if it was not called

  // Binds every URL: http://host:port, http://[::1]:port, unix://path, unixs is refused as https is (TLS is not there
  // yet). Port 0 takes a free one. An error names the URL; then nothing is bound. Connections wait in the backlog until
  // start().
  Status listen(const std::vector<std::string>& urls);
  // The bound URLs in the order given, port 0 replaced by the real one.
  std::vector<std::string> urls() const;
  void start();
  // A connection that somebody else accepted (nonblocking, close-on-exec, TCP); nothing was read from it. Any thread,
  // after start(); after stop() it is closed.
  void adopt(int socket);

  // Stops accepting, cancels open streams (they end with etcd's Unavailable message), lets calls in flight finish
  // until `patience` is over, closes the rest, joins the threads. Handlers must stay usable until it returns; Replies
  // and ServerStreams may be used after it, to no effect.
  void stop(std::chrono::milliseconds patience);

  struct Counters {
    uint64_t connections_accepted = 0;
    uint64_t connections_refused = 0;  // over limits.connections_max
    uint64_t connections_open = 0;
    uint64_t streams_open = 0;
    uint64_t requests = 0;
    uint64_t requests_refused = 0;  // over limits.requests_bytes_max
    uint64_t requests_bytes = 0;    // kept of requests that are not answered yet
    uint64_t bytes_received = 0;
    uint64_t bytes_sent = 0;
  };
  Counters counters() const;  // any thread

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace http
