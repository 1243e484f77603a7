// What Mutex and Election share: one name for one session, and the way to its key.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "conclave/call.h"
#include "conclave/result.h"
#include "hold.h"
#include "session_core.h"

namespace conclave::inline v1::internal {

class Claim {
 public:
  Claim(std::shared_ptr<SessionCore> session, std::string name, HoldKind kind);

  // Waits its turn, first among the threads of the session, then among the sessions. `queued` runs in the caller's
  // thread once the key is there.
  Result<std::unique_ptr<Hold>> wait(std::string value, const CallOptions& call,
                                     const std::function<void()>& queued = nullptr) const;
  // Null: somebody holds or awaits it.
  Result<std::unique_ptr<Hold>> try_now(const CallOptions& call) const;

  SessionCore& session() const { return *session_; }
  LockName name() const { return {name_, session_->lease()}; }

 private:
  Error ended(const CallOptions& call) const;
  Error waited(Error error, const CallOptions& call) const;

  const std::shared_ptr<SessionCore> session_;
  const std::string name_;
  const HoldKind kind_;
};

}  // namespace conclave::inline v1::internal
