// One key of a lock or an election, from its creation to its certain removal: the part of Mutex and Election that talks
// to the server.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "conclave/txn.h"
#include "session_core.h"

namespace conclave::inline v1::internal {

// The keys of one name for one session: as etcd's Go client makes them.
struct LockName {
  std::string name;   // byte for byte as the user gave it
  std::string range;  // <name>/
  std::string key;    // <name>/<lease in hex>

  LockName(std::string name, LeaseId lease);
};

enum class HoldKind : std::uint8_t { kLock, kLeadership };  // for the messages only: on the server they are the same

// kFailedPrecondition if `key`, which is in the range, belongs to a name below.
Status check_not_below(const LockName& name, const std::string& key);

// A place in the queue of a name. It holds the session's ticket for that name and gives it back when the key is gone
// for certain, or the session is over.
class Hold {
 public:
  Hold(std::shared_ptr<SessionCore> session, LockName name, LocalQueue::Ticket ticket, HoldKind kind,
       std::string value);
  ~Hold();  // removes the key in the background
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  // Creates the key, at the end of the queue; then waits until no older one is left. Both end by `deadline` and `stop`
  // (which includes the loss of the session).
  Status enqueue(TimePoint deadline, const std::stop_token& stop);
  Status wait_turn(TimePoint deadline, const std::stop_token& stop);
  // Creates the key only if nobody has one. False: somebody has.
  Result<bool> enqueue_if_alone(TimePoint deadline, const std::stop_token& stop);

  Result<TxnResult> commit(const Txn& txn, const CallOptions& call) const;
  Status proclaim(const std::string& value, const CallOptions& call);
  Status remove(const CallOptions& call);

  SessionCore& session() const { return *session_; }
  const std::string& key() const { return name_.key; }
  std::int64_t revision() const { return revision_; }  // at which the key was created

 private:
  Result<TxnResult> run(const Txn& txn, TimePoint deadline, const std::stop_token& stop);
  Status created(const TxnResult& result);
  Result<std::optional<KeyValue>> predecessor(TimePoint deadline, const std::stop_token& stop, Revision& at);
  Status wait_for_removal(const std::string& key, Revision from, TimePoint deadline, const std::stop_token& stop);
  Txn removal() const;
  Status lost_error() const;
  Status aborted(const char* what) const;  // "the lock " or "the leadership ", and this

  const std::shared_ptr<SessionCore> session_;
  const LockName name_;
  const LocalQueue::Ticket ticket_;
  const HoldKind kind_;
  const std::string value_;    // of the key when it is created
  bool sent_ = false;          // the key may exist
  bool alone_ = false;         // no older key existed when it was created
  bool removed_ = false;       // for certain
  std::int64_t revision_ = 0;  // 0: not known
  std::int64_t mod_ = 0;       // of the key as last seen
};

}  // namespace conclave::inline v1::internal
