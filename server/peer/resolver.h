// Host names to addresses without blocking the network's thread, and without making anybody wait for a slow name server
// at the end: getaddrinfo cannot be cancelled, so each runs on a detached thread that may outlive the resolver. (asio's
// own resolver has one thread for all names and joins it.)
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/thread.h"
#include "peer/address.h"

namespace peer {

// Owned by the thread that runs `io`.
class Resolver {
 public:
  using Endpoints = std::vector<Tcp::endpoint>;
  using Done = std::function<void(const Result<Endpoints>&)>;

  explicit Resolver(boost::asio::io_context& io);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // `done` comes later, on the thread of `io`; never after the destructor. Those who ask for a name that is being
  // resolved share the answer. kResourceExhausted: kResolvesMax names are.
  void resolve(const Address& address, Done done);

 private:
  struct Link {  // what a thread still holds when the resolver is gone
    Mutex mutex;
    Resolver* resolver GUARDED_BY(mutex);
  };
  void deliver(const std::string& key, const Result<Endpoints>& result);

  boost::asio::io_context& io_;
  std::shared_ptr<Link> link_;
  std::map<std::string, std::vector<Done>> waiting_;
};

}  // namespace peer
