// A lease kept alive: the life of a program, as the cluster sees it.
//
// A session is lost at *sending time of the last acknowledged keepalive + granted TTL*, on a clock that also runs while
// the machine sleeps, or at once when the server says so. Lost is final: open a new one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "conclave/call.h"
#include "conclave/client.h"
#include "conclave/result.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

enum class SessionState : std::uint8_t {
  kLive,
  kSuspect,  // two thirds of the TTL passed without an answer; it may still recover
  kLost,     // final: expired, revoked, closed or destroyed
};

struct SessionOptions {
  std::chrono::seconds ttl{10};  // 1 s to 1 day; the server may grant more
  // On a callback thread, one at a time. Not for what must stop at once: that is lost().
  std::function<void(SessionState, const std::string& why)> on_state = nullptr;
  CallOptions call = {};  // of open
};

class [[nodiscard]] Session {
 public:
  static Result<Session> open(const Client& client, SessionOptions options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();  // ends the session and its locks; the lease is revoked in the background

  std::stop_token lost() const;  // fires on a thread of its own
  bool held() const;             // reads the clock: exact even when no thread has run
  SessionState state() const;
  LeaseId lease() const;
  std::chrono::seconds ttl() const;  // as granted

  Status close(CallOptions call = {});  // revokes, waits, and tells
  void orphan();  // stops the keepalives and leaves the keys: they go when the lease expires. lost() fires then

 private:
  friend struct internal::Access;
  class Impl;
  explicit Session(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace conclave
