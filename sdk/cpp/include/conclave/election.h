// One leader at a time among the sessions that campaign under one name. Fair: elected in the order of arrival. Same
// keys as etcd's Go client (`concurrency.Election`): `<name>/<lease in hex>`, whose value is what was proclaimed.
//
//   Election election{session, "elections/scheduler"};
//   auto mine = election.campaign("10.0.0.7:8080", {.stop = stop});
//   if (!mine) return fail(mine.error());
//   ... mine->lost() fires, mine->held() turns false, when it is over ...
//   return mine->resign();
//
// For those who drive it themselves; candidate.h does all of it, for ever. To know who leads, without taking part:
// leader_view.h. A leadership is a promise about time, as a lock is: pass token() to what you protect, or write through
// commit(), to be safe against your own pauses too.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "conclave/call.h"
#include "conclave/result.h"
#include "conclave/session.h"
#include "conclave/txn.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

struct Leader {
  std::string value = {};  // what it proclaimed; any bytes
  std::string key = {};    // without the client's key_prefix
  Token token{};           // of its term: rises from leader to leader
  LeaseId lease{};         // of its session
  friend bool operator==(const Leader&, const Leader&) = default;
};

// A term of office: from Election::campaign until resigned, destroyed (resigns in the background), or lost.
class [[nodiscard]] Leadership {
 public:
  Leadership(Leadership&&) noexcept;
  Leadership& operator=(Leadership&&) noexcept;
  ~Leadership();

  Token token() const;             // create revision of the key; stays readable
  const std::string& key() const;  // without the client's key_prefix
  // Fires when the session is lost, or as soon as the server tells that somebody removed the key; on a thread of its
  // own. Not by resign().
  std::stop_token lost() const;
  bool held() const;  // neither lost nor resigned; reads the session's clock

  // Puts another value into the leader's key, which all views see; the term stays the same. kAborted, nothing happened:
  // no longer the leader. Not confirmed in time: kMayHaveHappened, and it never undoes a later one. One at a time.
  Status proclaim(std::string value, CallOptions call = {});

  // Runs `txn` only if this term still lasts, in one step on the server; `succeeded` speaks of the user's compares
  // only. The term is over: kAborted, nothing happened.
  Result<TxnResult> commit(const Txn& txn, CallOptions call = {}) const;

  // Deletes the key of this very term, so that the next one leads. kAborted (nothing happened) if it was lost before,
  // so that one who never looked learns it too. Goes on in the background if `call` ends first.
  Status resign(CallOptions call = {});

 private:
  friend struct internal::Access;
  class Impl;
  explicit Leadership(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Election {
 public:
  Election(const Session& session, std::string name);
  Election(Session&&, std::string) = delete;  // a temporary session would end at once

  // Waits until it is elected, without limit unless `call` sets one; ends early with kAborted when the session is lost,
  // or its key was removed. A wait that ends removes its key, in the background. Threads of one session queue too,
  // first come first served; not re-entrant. kFailedPrecondition: another program uses a name below this one (`a` and
  // `a/b`). A Mutex of the same name takes part in the same queue.
  Result<Leadership> campaign(std::string value, CallOptions call = {}) const;

  // Who leads now, as the cluster sees it (a linearizable read); nothing: nobody. kFailedPrecondition as above.
  Result<std::optional<Leader>> leader(CallOptions call = {}) const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace conclave
