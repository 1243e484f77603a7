#include "ownership.h"

#include <utility>

#include "codec.h"

namespace conclave::inline v1::internal {

Ownership::Ownership(const Hold& hold)
    : session_(hold.session().shared_from_this()), key_(hold.key()), revision_(hold.revision()) {}

void Ownership::start() {
  on_session_lost_.emplace(session_->lost(), Fire{lost_});
  watch_ = std::make_shared<WatchCore>(session_->core().shared_from_this(),
                                       WatchOptions{.key = key_, .from = Revision{revision_ + 1}, .puts = false});
  watch_->set_listener([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->follow();
  });
  watch_->start();
}

void Ownership::end() {
  std::shared_ptr<WatchCore> watch;
  std::shared_ptr<Call> call;
  {
    std::scoped_lock lock(mutex_);
    ended_ = true;
    watch = std::move(watch_);
    call = std::move(call_);
  }
  if (call) call->cancel(Code::kCancelled, "it is not needed any more");
  if (!watch) return;
  watch->set_listener(nullptr);
  watch->end({.code = Code::kFailedPrecondition, .message = "the term is over"});
}

std::string Ownership::why() const { return gone_ ? "its key was removed" : "the session is lost: " + session_->why(); }

void Ownership::follow() {
  bool removed = false;
  bool unknown = false;
  {
    std::scoped_lock lock(mutex_);
    if (ended_ || !watch_) return;
    while (const auto batch = watch_->try_next()) {
      unknown = unknown || batch->gap.has_value();
      removed = removed || !batch->events.empty();  // puts are not watched
    }
    if (const auto why = watch_->ended()) {
      session_->core().log(LogLevel::kWarning, key_ + ": not watched: " + to_string(*why));
      watch_ = nullptr;
    }
  }
  if (removed) return gone();
  if (unknown) look();
}

// The history has a gap, and the removal may be in it.
void Ownership::look() {
  auto body = encode_range({.key = key_, .keys_only = true}, session_->core().keys());
  if (!body) return;
  auto call =
      session_->core().start({.path = path::kRange,
                              .body = body->dump(),
                              .effect = Effect::kNone,
                              .attempt_max = session_->core().call_timeout() / 2,
                              .budgeted = false},
                             [weak = weak_from_this()](Result<Reply> reply) {
                               const auto self = weak.lock();
                               if (!self || !reply) return;
                               const auto found = decode_range(reply->json, self->session_->core().keys());
                               if (found.kvs.empty() || number(found.kvs.front().create_revision) != self->revision_)
                                 self->gone();
                             });
  std::scoped_lock lock(mutex_);
  if (!ended_) call_ = std::move(call);
}

void Ownership::gone() {
  {
    std::scoped_lock lock(mutex_);
    if (ended_ || gone_) return;
    gone_ = true;
  }
  session_->check_now();  // most likely its lease is gone
  session_->core().firing().fire(lost_);
}

}  // namespace conclave::inline v1::internal
