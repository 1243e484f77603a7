#include "list_watch.h"

#include <optional>
#include <utility>

#include "codec.h"

namespace conclave::inline v1::internal {

namespace {
constexpr std::chrono::seconds kWatchAgain{2};  // after the server refused the watch
}

ListWatch::ListWatch(std::shared_ptr<Core> core, std::string prefix, Hooks hooks)
    : core_(std::move(core)), prefix_(std::move(prefix)), hooks_(std::move(hooks)) {}

void ListWatch::start() { list(); }

void ListWatch::end() {
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
  watch->end({.code = Code::kFailedPrecondition, .message = "it is not needed any more"});
}

void ListWatch::list() {
  auto body = encode_range({.key = prefix_, .prefix = true}, core_->keys());
  if (!body) return listed(fail(std::move(body.error())));
  Request request{.path = path::kRange,
                  .body = body->dump(),
                  .effect = Effect::kNone,
                  .deadline = after(core_->call_timeout()),
                  .attempt_max = core_->call_timeout() / 2,
                  .budgeted = false};
  auto call = core_->start(std::move(request), [weak = weak_from_this()](Result<Reply> reply) {
    if (const auto self = weak.lock()) self->listed(std::move(reply));
  });
  std::scoped_lock lock(mutex_);
  if (!ended_ && listing_) call_ = std::move(call);
}

void ListWatch::list_later(std::chrono::milliseconds delay) {
  core_->loop().at(after(delay), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->list();
  });
}

void ListWatch::listed(Result<Reply> reply) {
  std::shared_ptr<WatchCore> fresh;
  {
    std::scoped_lock lock(mutex_);
    call_ = nullptr;
    if (ended_) return;
    if (!reply) {
      hooks_.on_trouble(reply.error());
      return list_later(backoff_.next());
    }
    backoff_.reset();
    const RangeResult found = decode_range(reply->json, core_->keys());
    at_ = number(found.revision);
    listing_ = false;
    hooks_.on_list(found);
    if (!watch_) {
      watch_ =
          std::make_shared<WatchCore>(core_, WatchOptions{.key = prefix_, .prefix = true, .from = Revision{at_ + 1}});
      fresh = watch_;
      fresh->set_listener([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->follow();
      });
    }
  }
  if (fresh) fresh->start();
  follow();
}

void ListWatch::follow() {
  bool again = false;
  {
    std::scoped_lock lock(mutex_);
    while (!ended_ && !listing_ && watch_) {
      const auto batch = watch_->try_next();
      if (!batch) {
        if (const auto why = watch_->ended()) {
          hooks_.on_trouble(*why);
          watch_ = nullptr;
          listing_ = true;
          list_later(kWatchAgain);
        }
        break;
      }
      if (batch->gap) {
        core_->log(LogLevel::kWarning, prefix_ + ": " + batch->gap->reason + "; reading it again");
        listing_ = true;
        again = true;
      } else if (number(batch->revision) > at_) {
        at_ = number(batch->revision);
        hooks_.on_batch(*batch);
      }
    }
  }
  if (again) list();
}

}  // namespace conclave::inline v1::internal
