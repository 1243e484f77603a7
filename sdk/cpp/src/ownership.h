// How a leader learns early that its term is over: the session is lost, or somebody removed the key (an operator, or
// whoever revoked the lease). The removal is told by a watch, long before a keepalive would find out.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "hold.h"
#include "session_core.h"
#include "watch_core.h"

namespace conclave::inline v1::internal {

class Ownership : public std::enable_shared_from_this<Ownership> {
 public:
  explicit Ownership(const Hold& hold);

  void start();
  void end();  // what happens to the key from here on is the owner's doing

  bool held() const { return !gone_ && !ended_ && session_->held(); }
  std::stop_token lost() const { return lost_.get_token(); }
  std::string why() const;  // it was lost

 private:
  struct Fire {
    std::stop_source lost;
    void operator()() {
      std::stop_source kept = lost;  // a stop callback of the user's may destroy all this
      kept.request_stop();
    }
  };

  void follow();
  void look();
  void gone();

  const std::shared_ptr<SessionCore> session_;
  const std::string key_;
  const std::int64_t revision_;  // at which the key was created
  std::stop_source lost_;
  std::atomic<bool> gone_{false};   // written under the mutex
  std::atomic<bool> ended_{false};  // so is this
  std::optional<std::stop_callback<Fire>> on_session_lost_;

  std::mutex mutex_;
  std::shared_ptr<WatchCore> watch_;
  std::shared_ptr<Call> call_;
};

}  // namespace conclave::inline v1::internal
