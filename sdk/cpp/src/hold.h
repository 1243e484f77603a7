// One key of a lock, from its creation to its certain removal: the part of Mutex and Lock that talks to the server.
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

// A place in the queue of a name. It holds the session's ticket for that name and gives it back when the key is gone
// for certain, or the session is over.
class Hold {
 public:
  Hold(std::shared_ptr<SessionCore> session, LockName name, LocalQueue::Ticket ticket);
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

  const std::shared_ptr<SessionCore> session_;
  const LockName name_;
  const LocalQueue::Ticket ticket_;
  bool sent_ = false;          // the key may exist
  bool alone_ = false;         // no older key existed when it was created
  bool removed_ = false;       // for certain
  std::int64_t revision_ = 0;  // 0: not known
};

}  // namespace conclave::inline v1::internal
