#include "removal.h"

#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "codec.h"
#include "hold.h"

namespace conclave::inline v1::internal {

namespace {

constexpr std::chrono::seconds kSecondPass{1};

class Removal : public std::enable_shared_from_this<Removal> {
 public:
  Removal(std::shared_ptr<SessionCore> session, std::string name, LocalQueue::Ticket ticket, std::string body,
          bool twice)
      : session_(std::move(session)),
        name_(std::move(name)),
        ticket_(ticket),
        body_(std::move(body)),
        twice_(twice),
        busy_(session_->core().busy()) {}

  ~Removal() { session_->queue().leave(name_, ticket_); }

  void start() {
    if (session_->lost().stop_requested()) return;  // the key goes with the lease
    auto call = session_->core().start({.path = path::kTxn,
                                        .body = body_,
                                        .effect = Effect::kIdempotent,
                                        .attempt_max = session_->core().call_timeout(),
                                        .budgeted = false,
                                        .background = true},
                                       [self = shared_from_this()](const Result<Reply>& reply) { self->done(reply); });
    // Weak: the call keeps this object, and the callback must not keep the call.
    std::scoped_lock lock(mutex_);
    on_lost_.emplace(session_->lost(), Cancel{call});
  }

 private:
  struct Cancel {
    std::weak_ptr<Call> call;
    void operator()() const {
      if (const auto running = call.lock()) running->cancel(Code::kCancelled, "the session is over");
    }
  };

  void done(const Result<Reply>& reply) {
    if (!twice_ || !reply) return;
    twice_ = false;
    session_->core().loop().at(after(kSecondPass), [self = shared_from_this()] {
      {
        std::scoped_lock lock(self->mutex_);
        self->on_lost_.reset();
      }
      self->start();
    });
  }

  const std::shared_ptr<SessionCore> session_;
  const std::string name_;
  const LocalQueue::Ticket ticket_;
  const std::string body_;
  bool twice_;
  const std::shared_ptr<void> busy_;
  std::mutex mutex_;  // guards on_lost_
  std::optional<std::stop_callback<Cancel>> on_lost_;
};

}  // namespace

void remove_in_background(const std::shared_ptr<SessionCore>& session, const LockName& name, LocalQueue::Ticket ticket,
                          const Txn& txn, bool twice) {
  auto body = encode_txn(txn, session->core().keys());
  std::make_shared<Removal>(session, name.name, ticket, body ? body->dump() : std::string(), twice)->start();
}

}  // namespace conclave::inline v1::internal
