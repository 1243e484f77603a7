// Accepts connections and keeps them: a bounded number of those that have not said who they are, and one for each lane
// of each peer. Network thread only.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "peer/inbound.h"

namespace peer {

class Door {
 public:
  explicit Door(Core& core) : core_(core) {}

  void open(const std::vector<int>& sockets);  // owns them from here on
  void tick(TimePoint now);
  void expel();  // those who are no peers any more
  void close();

  // By a connection: its hello was accepted. An older one of the same peer and lane is closed: the sender has given it
  // up, or it would not have made this one.
  void let_in(Inbound& inbound);
  void forget(Inbound& inbound);
  bool has(uint64_t peer) const;  // some connection of it

 private:
  struct Acceptor {
    Acceptor(boost::asio::io_context& io, int number) : socket(io, number), pause(io) {}
    boost::asio::posix::stream_descriptor socket;
    boost::asio::steady_timer pause;
  };

  void wait(Acceptor& acceptor);
  void accept(Acceptor& acceptor);
  std::vector<std::shared_ptr<Inbound>> all() const;

  Core& core_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::deque<std::shared_ptr<Inbound>> unknown_;  // oldest first
  std::map<std::pair<uint64_t, Network::Lane>, std::shared_ptr<Inbound>> known_;
};

}  // namespace peer
