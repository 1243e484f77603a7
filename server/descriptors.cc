#include "descriptors.h"

#include <sys/resource.h>

#include <algorithm>

#include "http/limits.h"

namespace {

constexpr size_t kForFiles = 80;          // log, store with its readers, snapshots, standard streams, listening sockets
constexpr size_t kForPeers = 130;         // members, both ways and in all lanes, and strangers: peer/limits.h
constexpr size_t kOfIoThread = 6;         // two servers have that many
constexpr size_t kPeerPortRequests = 32;  // at least
constexpr size_t kPeerPortShare = 16;     // of the limit is for them
constexpr size_t kPeerPortMost = 4'096;
constexpr size_t kClientsMin = 32;

}  // namespace

Result<Descriptors> share_descriptors(size_t limit, size_t io_threads) {
  const size_t own = kForFiles + kForPeers + kOfIoThread * io_threads;
  const size_t needed = own + kPeerPortRequests + kClientsMin;
  if (limit < needed) {
    return fail(Code::kResourceExhausted,
                "the limit of open files is " + std::to_string(limit) + ", but at least " + std::to_string(needed) +
                    " are needed, and one more for each connection of a client. Raise it: \"ulimit -n 65536\" in the "
                    "shell that starts conclave, LimitNOFILE=65536 in its systemd unit, or --ulimit nofile=65536 for "
                    "its container");
  }
  Descriptors shares{.limit = limit};
  const size_t peer_port = std::clamp(limit / kPeerPortShare, kPeerPortRequests, kPeerPortMost);
  shares.requests_of_peer_port_max = std::min(peer_port, limit - own - kClientsMin);
  shares.clients_max = std::min(limit - own - shares.requests_of_peer_port_max, http::Limits().connections_max);
  return shares;
}

Result<Descriptors> own_descriptors(const config::Options& options) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return share_descriptors(1024, options.io_threads);  // cannot happen
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return share_descriptors(static_cast<size_t>(limit.rlim_cur), options.io_threads);
}
