// The instances of one service, kept up to date in memory, and a choice among them.
//
// It opens whatever the state of the cluster, and goes on through restarts and changes of member: an instance that
// registers, changes or expires is seen as soon as the server tells. Nobody to ask is no error of a list that is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conclave/call.h"
#include "conclave/client.h"
#include "conclave/registry.h"
#include "conclave/result.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

struct Instance {
  std::string id = {};
  std::string service = {};
  std::string address = {};
  std::uint16_t port = 0;
  std::string version = {};
  std::string zone = {};
  int weight = 100;
  std::map<std::string, std::string> metadata = {};
  Health health = {};
  bool draining = false;
  std::string start = {};
  std::int64_t started_ms = 0;
  std::string host_port() const;  // "10.0.0.7:8080", "[fd00::7]:8080"
  bool usable() const { return health.level != HealthLevel::kCritical && !draining && weight > 0; }
};

enum class ViewSource : std::uint8_t { kNone, kServer, kDisk };

// Immutable, of one revision.
struct InstanceList {
  std::vector<Instance> instances = {};  // by id
  std::size_t unreadable = 0;            // records left out because they cannot be read; each was logged once
  Revision revision{};
  ViewSource source = ViewSource::kNone;
};

// Each heeds the weights: an instance of weight 200 gets twice as much as one of 100.
enum class Balancer : std::uint8_t {
  kRoundRobin,
  kLeastPending,  // the one with the fewest picks in use for its weight
  kRandom,
};

struct PickOptions {
  std::vector<std::string> exclude = {};  // ids
};

// An instance in use. Counts as pending until destroyed.
class [[nodiscard]] Pick {
 public:
  Pick(Pick&&) noexcept;
  Pick& operator=(Pick&&) noexcept;
  ~Pick();
  const Instance& instance() const;
  // The call did not work; at most once effective. Three in a row keep the instance out for 10 s, never more than half
  // of the list at once. A Pick destroyed without it was a success.
  void failed();

 private:
  friend class Discovery;
  class Impl;
  explicit Pick(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct DiscoveryOptions {
  std::string service = {};
  Balancer balancer = Balancer::kRoundRobin;
  // The last list from the server, kept on disk (a folder that exists), for a start without any member: used when none
  // has answered within half of wait_ready's timeout (or of the client's call_timeout); `source` says so. That it
  // cannot be written is only logged (ClientOptions::log).
  std::string cache_file = {};
  // On a callback thread; conflated: a slow one sees the newest. snapshot() is at least as new inside it.
  std::function<void(const std::shared_ptr<const InstanceList>& now)> on_change = nullptr;
};

class [[nodiscard]] Discovery {
 public:
  static Result<Discovery> open(const Client& client, DiscoveryOptions options);
  Discovery(Discovery&&) noexcept;
  Discovery& operator=(Discovery&&) noexcept;
  ~Discovery();

  // Until there is a list, from the server or from disk; without a timeout for as long as it takes.
  Status wait_ready(CallOptions call = {}) const;
  std::shared_ptr<const InstanceList> snapshot() const;  // never null
  Result<Pick> pick(PickOptions options = {}) const;     // in memory, never blocks; kUnavailable: nobody to call

 private:
  class Impl;
  explicit Discovery(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace conclave
