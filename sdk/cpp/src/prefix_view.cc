#include "prefix_view.h"

#include <utility>

#include "codec.h"

namespace conclave::inline v1::internal {

PrefixView::PrefixView(std::shared_ptr<Core> core, std::string prefix)
    : core_(std::move(core)), prefix_(std::move(prefix)) {}

void PrefixView::start(std::function<void()> on_news) {
  on_news_ = std::move(on_news);
  list();
}

void PrefixView::end() {
  std::shared_ptr<Call> call;
  std::shared_ptr<WatchCore> watch;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    call = std::exchange(call_, nullptr);
    watch = std::exchange(watch_, nullptr);
  }
  if (watch) {
    watch->set_listener(nullptr);
    watch->end(Core::closed_error());
  }
  if (call) call->cancel(Code::kCancelled, "the view is closed");
}

std::optional<PrefixView::State> PrefixView::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

std::optional<Error> PrefixView::last_error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void PrefixView::list() {
  auto body = encode_range({.key = prefix_, .prefix = true}, core_->keys());
  if (!body) {
    const std::lock_guard lock(mutex_);
    error_ = body.error();
    return;
  }
  auto call = core_->start({.path = path::kRange, .body = body->dump(), .deadline = after(core_->call_timeout())},
                           [weak = weak_from_this()](Result<Reply> reply) {
                             // Not on this thread: the call may end inside start().
                             if (const auto self = weak.lock()) {
                               self->core_->loop().post([weak, reply = std::move(reply)]() mutable {
                                 if (const auto view = weak.lock()) view->on_list(std::move(reply));
                               });
                             }
                           });
  const std::lock_guard lock(mutex_);
  if (!ended_) call_ = std::move(call);
}

void PrefixView::on_list(Result<Reply> reply) {
  std::shared_ptr<WatchCore> watch;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    call_ = nullptr;
    if (reply) {
      RangeResult range = decode_range(reply->json, core_->keys());
      State state{.values = {}, .revision = range.revision};
      for (KeyValue& kv : range.kvs) state.values.emplace(kv.key.substr(prefix_.size()), std::move(kv.value));
      state_ = std::move(state);
      error_.reset();
      backoff_.reset();
      watch_ = watch = std::make_shared<WatchCore>(
          core_, WatchOptions{.key = prefix_, .prefix = true, .from = Revision{number(range.revision) + 1}});
    } else {
      error_ = reply.error();
    }
  }
  if (!watch) {
    if (!core_->closed()) list_later();
    return;
  }
  watch->set_listener([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->core_->loop().post([weak] {
        if (const auto view = weak.lock()) view->drain();
      });
    }
  });
  watch->start();
  on_news_();
}

void PrefixView::list_later() {
  core_->loop().at(BootClock::now() + backoff_.next(), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->list();
  });
}

void PrefixView::drain() {
  bool news = false;
  std::shared_ptr<WatchCore> lost;
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || !watch_) return;
    while (auto batch = watch_->try_next()) {
      if (batch->gap) {
        lost = std::exchange(watch_, nullptr);
        break;
      }
      for (Event& event : batch->events) {
        const std::string name = event.kv.key.substr(prefix_.size());
        if (event.type == EventType::kDelete) {
          state_->values.erase(name);
        } else {
          state_->values.insert_or_assign(name, std::move(event.kv.value));
        }
      }
      state_->revision = batch->revision;
      news = true;
    }
    if (watch_ && watch_->ended()) lost = std::exchange(watch_, nullptr);
  }
  if (lost) {
    lost->set_listener(nullptr);
    lost->end(Core::closed_error());
    if (!core_->closed()) list_later();
  }
  if (news) on_news_();
}

}  // namespace conclave::inline v1::internal
