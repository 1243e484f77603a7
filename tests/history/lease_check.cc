#include "history/lease_check.h"

#include <algorithm>

namespace history {
namespace {

Time seconds(int64_t count) { return std::chrono::seconds(count); }

std::string describe(const LeaseSighting& sighting) {
  return history::describe(sighting.call) + " .. " + history::describe(sighting.returned) + " key " + sighting.key +
         " of lease " + std::to_string(sighting.lease) + (sighting.there ? " is there" : " is gone");
}

bool positive(const LeaseCall& call) {
  return call.kind != LeaseCall::Kind::kRevoke && call.outcome == Outcome::kOk && call.ttl_seconds > 0;
}

class Lease {
 public:
  void add(const LeaseCall& call) {
    calls_.push_back(&call);
    if (positive(call)) ttl_ = std::max(ttl_, call.ttl_seconds);
  }
  void add(const LeaseSighting& sighting) { sightings_.push_back(&sighting); }

  Verdict check(const LeaseRules& rules) const {
    const LeaseCall* revoke = nullptr;        // the first that may have happened
    const LeaseCall* revoked = nullptr;       // the first that did
    const LeaseCall* promise = nullptr;       // that reaches furthest
    const LeaseCall* last_renewal = nullptr;  // that can have happened latest
    for (const LeaseCall* call : calls_) {
      if (call->kind == LeaseCall::Kind::kRevoke) {
        if (call->outcome == Outcome::kFailed) continue;
        if (revoke == nullptr || call->call < revoke->call) revoke = call;
        const bool is_done = call->outcome == Outcome::kOk;
        if (is_done && (revoked == nullptr || call->returned < revoked->returned)) revoked = call;
        continue;
      }
      if (positive(*call) && (promise == nullptr || end_of(*call) > end_of(*promise))) promise = call;
      const Time latest = latest_effect(*call, rules);
      if (latest > Time{} && (last_renewal == nullptr || latest > latest_effect(*last_renewal, rules))) {
        last_renewal = call;
      }
    }
    for (const LeaseCall* call : calls_) {
      if (positive(*call) && revoked != nullptr && call->call > revoked->returned) {
        return violation("a lease is alive after its revocation was acknowledged:\n  " + describe(*revoked) + "\n  " +
                         describe(*call) + "\n");
      }
      const bool gone =
          call->kind == LeaseCall::Kind::kKeepAlive && call->outcome == Outcome::kOk && call->ttl_seconds == 0;
      if (gone && too_early(call->returned, promise, revoke)) {
        return violation("a lease ended before its time:\n  " + describe(*promise) + "\n  " + describe(*call) + "\n");
      }
    }
    for (const LeaseSighting* sighting : sightings_) {
      if (!sighting->there && too_early(sighting->returned, promise, revoke)) {
        return violation("a key was deleted before its lease's time was over:\n  " + describe(*promise) + "\n  " +
                         describe(*sighting) + "\n");
      }
      if (sighting->there && revoked != nullptr && sighting->call > revoked->returned) {
        return violation("a key outlived the acknowledged revocation of its lease:\n  " + describe(*revoked) + "\n  " +
                         describe(*sighting) + "\n");
      }
      if (!sighting->there || last_renewal == nullptr || ttl_ == 0) continue;
      if (sighting->call > latest_effect(*last_renewal, rules) + seconds(ttl_) + rules.late_max) {
        return violation("a key outlived its lease by more than " + history::describe(rules.late_max) + " s:\n  " +
                         describe(*last_renewal) + "\n  " + describe(*sighting) + "\n");
      }
    }
    return {};
  }

 private:
  static Time end_of(const LeaseCall& call) { return call.call + seconds(call.ttl_seconds); }
  static bool too_early(Time at, const LeaseCall* promise, const LeaseCall* revoke) {
    if (promise == nullptr || at >= end_of(*promise)) return false;
    return revoke == nullptr || at < revoke->call;
  }
  // When this call can have given the lease its whole time at the latest; 0: it did not.
  static Time latest_effect(const LeaseCall& call, const LeaseRules& rules) {
    if (call.outcome == Outcome::kFailed) return Time{};
    if (call.outcome == Outcome::kUnknown) return call.call + rules.unknown_within;
    return call.ttl_seconds > 0 ? call.returned : Time{};
  }

  std::vector<const LeaseCall*> calls_;
  std::vector<const LeaseSighting*> sightings_;
  int64_t ttl_ = 0;
};

}  // namespace

std::string describe(const LeaseCall& call) {
  std::string text =
      describe(call.call) + " .. " + describe(call.returned) + " client " + std::to_string(call.client) + ": ";
  switch (call.kind) {
    case LeaseCall::Kind::kGrant:
      text += "grant";
      break;
    case LeaseCall::Kind::kKeepAlive:
      text += "keep alive";
      break;
    case LeaseCall::Kind::kRevoke:
      text += "revoke";
      break;
  }
  text += " lease " + std::to_string(call.lease) + " -> ";
  if (call.outcome == Outcome::kFailed) return text + "refused";
  if (call.outcome == Outcome::kUnknown) return text + "unknown";
  if (call.kind == LeaseCall::Kind::kRevoke) return text + "done";
  return text + (call.ttl_seconds > 0 ? "ttl " + std::to_string(call.ttl_seconds) : "no such lease");
}

Verdict check_leases(const std::vector<LeaseCall>& calls, const std::vector<LeaseSighting>& sightings,
                     const LeaseRules& rules) {
  std::map<int64_t, Lease> leases;
  for (const LeaseCall& call : calls) leases[call.lease].add(call);
  for (const LeaseSighting& sighting : sightings) leases[sighting.lease].add(sighting);
  for (const auto& [id, lease] : leases) {
    if (Verdict verdict = lease.check(rules); !verdict.ok()) return verdict;
  }
  return {};
}

}  // namespace history
