#include "peer/resolver.h"

#include <netdb.h>

#include <boost/asio/post.hpp>
#include <cstring>
#include <system_error>
#include <thread>

#include "peer/limits.h"

namespace peer {
namespace {

Result<Resolver::Endpoints> look_up(const Address& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found); error != 0) {
    return fail(Code::kUnavailable, "the name " + address.host + " does not resolve: " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  Resolver::Endpoints endpoints;
  for (const addrinfo* info = found; info != nullptr && endpoints.size() < kEndpointsMax; info = info->ai_next) {
    Tcp::endpoint endpoint;
    if (info->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), info->ai_addr, info->ai_addrlen);
    endpoint.resize(info->ai_addrlen);
    endpoints.push_back(endpoint);
  }
  return endpoints;
}

}  // namespace

Resolver::Resolver(boost::asio::io_context& io) : io_(io), link_(std::make_shared<Link>()) {
  MutexLock lock(link_->mutex);
  link_->resolver = this;
}

Resolver::~Resolver() {
  MutexLock lock(link_->mutex);
  link_->resolver = nullptr;
}

void Resolver::resolve(const Address& address, Done done) {
  const std::string key = address.host + " " + address.port;
  if (const auto found = waiting_.find(key); found != waiting_.end()) {
    found->second.push_back(std::move(done));
    return;
  }
  waiting_[key].push_back(std::move(done));
  const auto answer = [link = link_, key](Result<Endpoints> result) {
    MutexLock lock(link->mutex);
    if (link->resolver == nullptr) return;
    // The resolver lives until `io` runs no more, so what is posted finds it alive or is never run.
    boost::asio::post(link->resolver->io_,
                      [resolver = link->resolver, key, result = std::move(result)] { resolver->deliver(key, result); });
  };
  if (waiting_.size() > kResolvesMax) {
    answer(fail(Code::kResourceExhausted, "too many names are being resolved"));
    return;
  }
  try {
    std::thread([address, answer] {
      begin_thread("peer-resolve");
      answer(look_up(address));
    }).detach();
  } catch (const std::system_error& error) {
    answer(fail(Code::kResourceExhausted, std::string("no thread to resolve a name: ") + error.what()));
  }
}

void Resolver::deliver(const std::string& key, const Result<Endpoints>& result) {
  const auto node = waiting_.extract(key);
  if (node.empty()) return;
  for (const Done& done : node.mapped()) done(result);
}

}  // namespace peer
