// Removing a lock's key while nobody waits for it.
#pragma once

#include <memory>

#include "conclave/txn.h"
#include "local_queue.h"
#include "session_core.h"

namespace conclave::inline v1::internal {

struct LockName;

// Repeats `txn` until it is certain or the session is over, then gives the ticket back. `twice`: the creation of the
// key was never confirmed, so it may still arrive after the first removal.
void remove_in_background(const std::shared_ptr<SessionCore>& session, const LockName& name, LocalQueue::Ticket ticket,
                          const Txn& txn, bool twice);

}  // namespace conclave::inline v1::internal
