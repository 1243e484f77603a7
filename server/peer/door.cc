#include "peer/door.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace peer {

void Door::open(const std::vector<int>& sockets) {
  for (const int socket : sockets) {
    acceptors_.push_back(std::make_unique<Acceptor>(core_.io, socket));
    wait(*acceptors_.back());
  }
}

// An acceptor lives until the last handler is gone: with the network.
void Door::wait(Acceptor& acceptor) {
  acceptor.socket.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                             [this, &acceptor](const boost::system::error_code& error) {
                               if (!error) accept(acceptor);
                             });
}

void Door::accept(Acceptor& acceptor) {
  for (size_t i = 0; i < kUnknownConnectionsMax; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    const int number = ::accept4(acceptor.socket.native_handle(), reinterpret_cast<sockaddr*>(&address), &size,
                                 SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (number >= 0) {
      Tcp::socket socket(core_.io);
      boost::system::error_code error;
      if (socket.assign(address.ss_family == AF_INET6 ? Tcp::v6() : Tcp::v4(), number, error)) {
        ::close(number);
        continue;
      }
      if (unknown_.size() >= kUnknownConnectionsMax) std::shared_ptr<Inbound>(unknown_.front())->close();
      unknown_.push_back(std::make_shared<Inbound>(core_, *this, std::move(socket)));
      unknown_.back()->start();
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log_warn("cannot accept a peer's connection; trying again soon", {{"error", std::strerror(errno)}});
      acceptor.pause.expires_after(kAcceptPause);
      acceptor.pause.async_wait([this, &acceptor](const boost::system::error_code& error) {
        if (!error) wait(acceptor);
      });
      return;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    }  // else that one connection is gone already
  }
  wait(acceptor);
}

void Door::let_in(Inbound& inbound) {
  auto self = inbound.shared_from_this();
  unknown_.erase(std::remove(unknown_.begin(), unknown_.end(), self), unknown_.end());
  const auto before = std::exchange(known_[{inbound.peer(), inbound.lane()}], std::move(self));
  if (before) before->close();
  core_.on_life(inbound.peer());
}

void Door::forget(Inbound& inbound) {
  const auto self = inbound.shared_from_this();
  unknown_.erase(std::remove(unknown_.begin(), unknown_.end(), self), unknown_.end());
  const auto found = known_.find({inbound.peer(), inbound.lane()});
  if (found != known_.end() && found->second == self) known_.erase(found);
}

bool Door::has(uint64_t peer) const {
  const auto first = known_.lower_bound({peer, Network::Lane::kControl});
  return first != known_.end() && first->first.first == peer;
}

std::vector<std::shared_ptr<Inbound>> Door::all() const {
  std::vector<std::shared_ptr<Inbound>> all(unknown_.begin(), unknown_.end());
  for (const auto& [key, inbound] : known_) all.push_back(inbound);
  return all;
}

void Door::tick(TimePoint now) {
  for (const auto& inbound : all()) inbound->tick(now);
}

void Door::expel() {
  for (const auto& inbound : all()) {
    const auto found = known_.find({inbound->peer(), inbound->lane()});
    const bool known = found != known_.end() && found->second == inbound;
    if (known && core_.roster.of(inbound->peer(), inbound->folder()) != Roster::Standing::kPeer) inbound->close();
  }
}

void Door::close() {
  for (const auto& acceptor : acceptors_) {
    boost::system::error_code ignored;
    acceptor->socket.close(ignored);
    acceptor->pause.cancel();
  }
  for (const auto& inbound : all()) inbound->close();
}

}  // namespace peer
