// Leases: never over before the time that was promised, over within a stated bound after it, and once revoked never
// alive again.
#pragma once

#include <string>
#include <vector>

#include "history/history.h"

namespace history {

struct LeaseCall {
  enum class Kind : uint8_t { kGrant, kKeepAlive, kRevoke };
  Kind kind = Kind::kKeepAlive;
  int64_t lease = 0;  // granted once in a history
  uint64_t client = 0;
  Time call{};
  Time returned = kNever;
  Outcome outcome = Outcome::kUnknown;
  int64_t ttl_seconds = 0;  // of the answer to a grant or keepalive; 0: there is no such lease
};

// A look at a key with a lease that nothing but the lease's end deletes, once its put was acknowledged.
struct LeaseSighting {
  int64_t lease = 0;
  std::string key;
  Time call{};  // it was so at some time between these
  Time returned{};
  bool there = false;
};

struct LeaseRules {
  Time late_max{};        // how much later than its time a lease may end
  Time unknown_within{};  // a request without an answer may still have happened so long after its call
};

Verdict check_leases(const std::vector<LeaseCall>& calls, const std::vector<LeaseSighting>& sightings,
                     const LeaseRules& rules);

std::string describe(const LeaseCall& call);

}  // namespace history
