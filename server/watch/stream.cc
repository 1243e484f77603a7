#include "watch/stream.h"

#include <utility>

#include "base/check.h"
#include "watch/hub_impl.h"

namespace watch {
namespace {

// An idle stream keeps no more room than this for its queue.
constexpr size_t kIdleItemsMax = 16;

}  // namespace

StreamImpl::StreamImpl(HubImpl& hub, uint64_t serial, std::function<void()> wake) : hub_(hub), wake_(std::move(wake)) {
  notes.serial = serial;
}

void StreamImpl::create(const etcdserverpb::WatchCreateRequest& request) { hub_.create(*this, request); }

void StreamImpl::cancel(int64_t watch_id) { hub_.cancel(*this, watch_id); }

void StreamImpl::progress() { hub_.progress(*this); }

ResponsePtr StreamImpl::take() {
  if (next_part_ < parts_.size()) {
    auto part = std::move(parts_[next_part_++]);
    if (next_part_ == parts_.size()) {
      parts_.clear();
      next_part_ = 0;
    }
    return part;
  }
  Item item;
  Shape shape;
  bool unblock = false;
  {
    MutexLock lock(mutex_);
    if (head_ == items_.size()) {
      armed_ = true;
      return nullptr;
    }
    size_t before = buffered_bytes_;
    item = pop();
    if (item.watcher != nullptr) shape = item.watcher->shape;
    if (any_waiting_ && low()) {
      // Each of the three kinds of a full buffer has its own moment: the stream runs dry, falls to half, or this
      // watcher does. So a reader of many small responses does not start a scan with each of them.
      size_t half = hub_.options().stream_buffer_bytes / 2;
      bool fell_to_half = before > half && buffered_bytes_ <= half;
      bool watcher_has_room = item.watcher != nullptr && item.watcher->waiting &&
                              item.watcher->buffered_bytes <= hub_.options().watcher_buffer_bytes / 2;
      unblock = head_ == items_.size() || fell_to_half || watcher_has_room;
      if (unblock) any_waiting_ = false;
    }
  }
  if (unblock) hub_.unblock(*this);
  if (item.answer != nullptr) return std::move(item.answer);
  auto responses = hub_.builder().build(*item.delivery, shape);
  CHECK(!responses.empty(), shape.id);
  if (responses.size() > 1) {
    parts_ = std::move(responses);
    next_part_ = 1;
    return std::move(parts_.front());
  }
  return std::move(responses.front());
}

// Whether a scan for a watcher of this stream is worth it again.
bool StreamImpl::low() const {
  if (head_ == items_.size()) return true;
  const Options& options = hub_.options();
  return buffered_bytes_ <= options.stream_buffer_bytes / 2 &&
         hub_.buffered_bytes().load(std::memory_order_relaxed) <= options.process_buffer_bytes / 8 * 7;
}

StreamImpl::Item StreamImpl::pop() {
  Item item = std::move(items_[head_++]);
  if (item.watcher != nullptr) {
    size_t bytes = item.delivery->bytes;
    item.watcher->queued--;
    item.watcher->buffered_bytes -= bytes;
    buffered_bytes_ -= bytes;
    hub_.buffered_bytes().fetch_sub(bytes, std::memory_order_relaxed);
  } else {
    answers_--;
  }
  if (head_ == items_.size()) {
    head_ = 0;
    items_.clear();
    if (items_.capacity() > kIdleItemsMax) std::vector<Item>().swap(items_);
  } else if (head_ >= 64 && head_ * 2 >= items_.size()) {
    items_.erase(items_.begin(), items_.begin() + static_cast<ptrdiff_t>(head_));
    head_ = 0;
  }
  return item;
}

bool StreamImpl::crowded() const {
  MutexLock lock(mutex_);
  return answers_ >= kAnswersPerStreamMax;
}

void StreamImpl::wake_when_armed(Effects& effects) {
  if (!armed_) return;
  armed_ = false;
  // Null while the stream is being destroyed on another thread, which waits for the hub's mutex in close().
  if (auto self = weak_from_this().lock()) effects.wake.push_back(std::move(self));
}

bool StreamImpl::push(Watcher& watcher, const DeliveryPtr& delivery, Effects& effects) {
  const Options& options = hub_.options();
  size_t bytes = delivery->bytes;
  MutexLock lock(mutex_);
  bool watcher_full = watcher.buffered_bytes > 0 && watcher.buffered_bytes + bytes > options.watcher_buffer_bytes;
  bool stream_full = buffered_bytes_ > 0 &&
                     (buffered_bytes_ + bytes > options.stream_buffer_bytes ||
                      hub_.buffered_bytes().load(std::memory_order_relaxed) + bytes > options.process_buffer_bytes);
  if (watcher_full || stream_full) {
    // In the same critical section as the refusal: the pop that makes room will see it.
    watcher.waiting = true;
    any_waiting_ = true;
    return false;
  }
  delivery->takers.fetch_add(1, std::memory_order_relaxed);
  items_.push_back({&watcher, delivery, nullptr});
  watcher.queued++;
  watcher.buffered_bytes += bytes;
  buffered_bytes_ += bytes;
  hub_.buffered_bytes().fetch_add(bytes, std::memory_order_relaxed);
  wake_when_armed(effects);
  return true;
}

void StreamImpl::push_answer(ResponsePtr answer, Effects& effects) {
  MutexLock lock(mutex_);
  items_.push_back({nullptr, nullptr, std::move(answer)});
  answers_++;
  wake_when_armed(effects);
}

bool StreamImpl::drop(Watcher& watcher) {
  MutexLock lock(mutex_);
  if (watcher.queued == 0) return false;
  auto is_progress = [&](const Item& item) {
    if (item.answer == nullptr) return false;
    const auto& message = item.answer->message;
    return !message.created() && !message.canceled() &&
           (message.watch_id() == kNoWatchId || message.watch_id() == watcher.shape.id);
  };
  bool dropped = false;
  bool again = false;
  std::vector<Item> kept;
  for (size_t i = head_; i < items_.size(); i++) {
    if (items_[i].watcher == &watcher) {
      size_t bytes = items_[i].delivery->bytes;
      buffered_bytes_ -= bytes;
      hub_.buffered_bytes().fetch_sub(bytes, std::memory_order_relaxed);
      dropped = true;
    } else if (dropped && is_progress(items_[i])) {
      answers_--;
      again = again || items_[i].answer->message.watch_id() == kNoWatchId;
    } else {
      kept.push_back(std::move(items_[i]));
    }
  }
  items_ = std::move(kept);
  head_ = 0;
  watcher.queued = 0;
  watcher.buffered_bytes = 0;
  return again;
}

void StreamImpl::drop_all() {
  MutexLock lock(mutex_);
  for (; head_ < items_.size(); head_++) {
    if (items_[head_].watcher == nullptr) continue;
    items_[head_].watcher->queued = 0;
    items_[head_].watcher->buffered_bytes = 0;
  }
  hub_.buffered_bytes().fetch_sub(buffered_bytes_, std::memory_order_relaxed);
  std::vector<Item>().swap(items_);
  head_ = answers_ = buffered_bytes_ = 0;
}

bool StreamImpl::may_resume(Watcher& watcher) {
  MutexLock lock(mutex_);
  bool room = watcher.buffered_bytes <= hub_.options().watcher_buffer_bytes / 2;
  watcher.waiting = !room;
  if (!room) any_waiting_ = true;
  return room;
}

void StreamImpl::call_wake() {
  MutexLock lock(wake_mutex_);
  if (wake_) wake_();
}

void StreamImpl::close() {
  if (std::exchange(closed_, true)) return;
  {
    MutexLock lock(wake_mutex_);
    wake_ = nullptr;
  }
  hub_.close(*this);
  parts_.clear();
  next_part_ = 0;
}

}  // namespace watch
