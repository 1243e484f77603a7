// The instances of one service, kept up to date in memory, and a choice among them.
#pragma once

#include <chrono>
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
  Revision revision{};
  ViewSource source = ViewSource::kNone;
};

enum class Balancer : std::uint8_t { kRoundRobin, kLeastPending, kRandom };

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
  void failed();  // three in a row keep the instance out for 10 s, never more than half of the list

 private:
  friend struct internal::Access;
  class Impl;
  explicit Pick(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct DiscoveryOptions {
  std::string service = {};
  Balancer balancer = Balancer::kRoundRobin;
  std::string cache_file = {};  // the last good list, for a start without any member
  std::function<void(const std::shared_ptr<const InstanceList>& now)> on_change = nullptr;  // on a callback thread
};

class [[nodiscard]] Discovery {
 public:
  static Result<Discovery> open(const Client& client, DiscoveryOptions options);
  Discovery(Discovery&&) noexcept;
  Discovery& operator=(Discovery&&) noexcept;
  ~Discovery();

  Status wait_ready(CallOptions call = {}) const;        // a list from the server, or the last good one from disk
  std::shared_ptr<const InstanceList> snapshot() const;  // never null
  Result<Pick> pick(PickOptions options = {}) const;     // in memory, never blocks; kUnavailable: nobody to call

 private:
  friend struct internal::Access;
  class Impl;
  explicit Discovery(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace conclave
