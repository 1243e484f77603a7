// A service's own entry, kept in the cluster as declared state: registered as soon as a member answers, again when its
// lease was lost, with its health. All registrations of one Registry share one lease, which is the registry's own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "conclave/call.h"
#include "conclave/client.h"
#include "conclave/result.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

enum class HealthLevel : std::uint8_t { kPassing, kWarning, kCritical };

struct Health {
  HealthLevel level = HealthLevel::kPassing;
  std::string reason = {};
  static Health passing() { return {}; }
  static Health warning(std::string reason) { return {HealthLevel::kWarning, std::move(reason)}; }
  static Health critical(std::string reason) { return {HealthLevel::kCritical, std::move(reason)}; }
  friend bool operator==(const Health&, const Health&) = default;
};

// Runs `check` every `every` on the registry's own health thread. A level changes after `fall` worse or `rise` better
// answers in a row; the very first answer counts at once, and nothing is registered before it. No check: always
// passing. An exception counts as critical. A check that hangs keeps the registry's other checks waiting, nothing else.
struct HealthCheck {
  std::function<Health()> check = nullptr;
  std::chrono::milliseconds every = std::chrono::seconds(2);
  int fall = 3;
  int rise = 2;
};

enum class RegistrationState : std::uint8_t {
  kRegistering,  // not (or no longer) in the cluster, still trying
  kRegistered,
  kDisplaced,  // a newer instance with the same id took its place; final. It does not fight back
  kDraining,
  kGone,  // removed; final
};

struct ServiceOptions {
  std::string service = {};  // [A-Za-z0-9][A-Za-z0-9._-]{0,127}
  std::string id = {};       // same alphabet; empty: <host>-<pid>-<8 hex digits>
  std::string address = {};  // host or bare IP
  std::uint16_t port = 0;
  std::string version = {};
  std::string zone = {};
  int weight = 100;  // 0 to 65535; 0 is never picked
  std::map<std::string, std::string> metadata = {};
  HealthCheck health = {};
  std::function<void(RegistrationState, const std::string& why)> on_state = nullptr;  // on a callback thread, in order
};

struct DrainOptions {
  std::chrono::milliseconds grace = std::chrono::seconds(10);  // at most this long marked draining, then removed
  std::function<bool()> idle = nullptr;                        // removed earlier once this says true
  CallOptions call = {};                                       // for the calls to the cluster
};

class [[nodiscard]] Registration {
 public:
  Registration(Registration&&) noexcept;
  Registration& operator=(Registration&&) noexcept;
  ~Registration();  // marked draining and removed, in the background; waits for a running check or callback

  const std::string& id() const;
  RegistrationState state() const;
  // Until registered; without a timeout for as long as it takes. kAborted: displaced. kFailedPrecondition: gone.
  Status wait_ready(CallOptions call = {}) const;
  // Marks the instance draining, waits until `idle` (asked every 50 ms) or `grace` is over, removes it. kAborted: it
  // was displaced before. Not confirmed in time: kMayHaveHappened; it is removed in the background, or expires.
  Status drain(DrainOptions options = {});

 private:
  friend class Registry;
  class Impl;
  explicit Registration(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

struct RegistryOptions {
  std::chrono::seconds ttl{10};  // 1 s to 1 day: how long after its end (or a pause) a program is gone from the list
};

class [[nodiscard]] Registry {
 public:
  explicit Registry(const Client& client, RegistryOptions options = {});
  Registry(Registry&&) noexcept;
  Registry& operator=(Registry&&) noexcept;
  ~Registry();  // ends its registrations too

  // Fails only for bad arguments (kInvalidArgument); the cluster may still be down.
  Result<Registration> add(ServiceOptions options);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace conclave
