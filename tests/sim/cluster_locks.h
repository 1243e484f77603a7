// Clients that contend for locks by the recipe of etcd's client/v3/concurrency/mutex.go: a key with a lease under the
// lock's prefix, held by the one with the lowest create revision. They are honest about time: who has not heard from
// its lease for the TTL since it last sent a renewal does not hold the lock any more.
#pragma once

#include <string>
#include <vector>

#include "history/record_file.h"
#include "sim/cluster.h"

namespace sim {

class LockClients {
 public:
  static constexpr size_t kClients = 4;
  static constexpr int64_t kTtlSeconds = 4;

  LockClients(Cluster& cluster, history::Record& record) : cluster_(cluster), record_(record), clients_(kClients) {}

  void act();
  // Members that go down may have been asked something: their answer does not come.
  void member_down(size_t node);
  // Nobody wants a lock any more; what is held is given up.
  void stop() { stopped_ = true; }
  // The holds so far, for check_locks().
  void finish();
  uint64_t holds() const { return record_.holds.size(); }

 private:
  enum class At : uint8_t { kNothing, kGranting, kEntering, kWaiting, kHolding, kLeaving };
  struct Client {
    At at = At::kNothing;
    bool busy = false;
    size_t node = 0;       // that was asked
    uint64_t request = 0;  // answers to earlier ones do not count
    int64_t lease = 0;
    int64_t token = 0;  // create revision of its key
    std::chrono::nanoseconds alive_until{};
    std::chrono::nanoseconds renewal_sent{};
    uint64_t hold = 0;  // place in the record + 1; 0: none
  };

  std::string key_of(const Client& client) const { return "lock/a/" + std::to_string(client.lease); }
  std::chrono::nanoseconds now() { return cluster_.clock.monotonic(); }
  bool is_lost(const Client& client) { return client.lease != 0 && now() >= client.alive_until; }
  size_t begin(const Client& client, history::LeaseCall::Kind kind);
  void end(size_t call, history::Outcome outcome, int64_t ttl);
  uint64_t ask(size_t place, size_t node);
  Client* answered(size_t place, uint64_t request);
  void start_over(Client& client);
  void grant(size_t place, size_t node);
  void renew(size_t place, size_t node);
  void enter(size_t place, size_t node);
  void look(size_t place, size_t node);
  void use(size_t place, size_t node);
  void leave(size_t place, size_t node);

  Cluster& cluster_;
  history::Record& record_;
  std::vector<Client> clients_;
  struct Use {
    int64_t revision = 0;
    uint64_t client = 0;
    int64_t token = 0;
  };
  std::vector<Use> uses_;
  uint64_t next_request_ = 1;
  int64_t next_lease_ = 1'000'000;
  bool stopped_ = false;
};

}  // namespace sim
