#include "informer_core.h"

#include <exception>
#include <utility>

#include "thread.h"

namespace conclave::inline v1::internal {

InformerCore::InformerCore(std::shared_ptr<Core> core, InformerHooks hooks)
    : core_(std::move(core)),
      hooks_(std::move(hooks)),
      callbacks_(core_->callback_queue("informer of " + hooks_.prefix)) {}

void InformerCore::start() {
  const auto weak = weak_from_this();
  ListWatch::Hooks hooks;
  hooks.on_list = [weak](const RangeResult& all) {
    if (const auto self = weak.lock()) self->on_list(all);
  };
  hooks.on_batch = [weak](const WatchBatch& batch) {
    if (const auto self = weak.lock()) self->on_batch(batch);
  };
  hooks.on_trouble = [weak](const Error& error) {
    const auto self = weak.lock();
    if (!self) return;
    const std::scoped_lock lock(self->mutex_);
    self->trouble_ = to_string(error);
  };
  list_watch_ = std::make_shared<ListWatch>(core_, hooks_.prefix, std::move(hooks));
  for (int i = 0; i < hooks_.workers; ++i) {
    workers_.push_back(
        start_thread("conclave-work" + std::to_string(i), [self = shared_from_this()] { self->work(); }));
  }
  list_watch_->start();
}

void InformerCore::close(Error why) {
  list_watch_->end();
  const std::scoped_lock lock(mutex_);
  if (!closed_) closed_ = std::move(why);
  if (resync_timer_ != 0) core_->loop().cancel(std::exchange(resync_timer_, 0));
  work_came_.notify_all();
  ready_.notify_all();
}

void InformerCore::join() {
  callbacks_->close();
  for (std::thread& worker : workers_) join_or_detach(worker);
}

void InformerCore::on_list(const RangeResult& all) {
  Lock lock(mutex_);
  const bool waiting = news_.has_value();
  news_ = InformerNews{.whole = true, .changed = {}, .revision = all.revision};
  for (const KeyValue& kv : all.kvs) news_->changed.emplace(kv.key, kv);
  if (!waiting) came(lock);
}

void InformerCore::on_batch(const WatchBatch& batch) {
  Lock lock(mutex_);
  const bool waiting = news_.has_value();
  if (!waiting) news_.emplace();
  for (const Event& event : batch.events) {
    auto& now = news_->changed[event.kv.key];
    if (event.type == EventType::kPut) {
      now = event.kv;
    } else {
      now.reset();
    }
  }
  news_->revision = batch.revision;
  if (!waiting) came(lock);
}

void InformerCore::came(Lock&) {
  if (closed_) return;
  const bool posted = callbacks_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->take_in();
  });
  if (posted) return;
  // So many errors wait to be told: news_ keeps what came, and the loop tries again.
  core_->loop().at(after(std::chrono::milliseconds(100)), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    Lock lock(self->mutex_);
    self->came(lock);
  });
}

void InformerCore::take_in() {
  InformerNews news;
  {
    const std::scoped_lock lock(mutex_);
    if (!news_) return;
    news = std::move(*news_);
    news_.reset();
  }
  std::vector<Decoded> decoded;
  decoded.reserve(news.changed.size());
  for (auto& [key, kv] : news.changed) {
    Decoded& one = decoded.emplace_back(Decoded{.key = key, .object = std::nullopt});
    if (kv) one.object = decode(*kv);
  }
  publish(news, std::move(decoded));
}

// The user's code: an exception means no.
Result<InformerCore::Object> InformerCore::decode(const KeyValue& kv) {
  try {
    return hooks_.decode(kv);
  } catch (const std::exception& e) {
    return threw(Code::kInvalidArgument, kv.key, std::string("decode threw: ") + e.what());
  } catch (...) {
    return threw(Code::kInvalidArgument, kv.key, "decode threw");
  }
}

tl::unexpected<Error> InformerCore::threw(Code code, const std::string& key, const std::string& what) {
  if (hooks_.on_error) core_->log(LogLevel::kWarning, key + ": " + what);  // else tell() does
  return fail(code, what);
}

void InformerCore::publish(const InformerNews& news, std::vector<Decoded> decoded) {
  std::vector<std::pair<std::string, Error>> refusals;
  std::map<std::string, Object, std::less<>> before;  // the user's values end when the mutex is free
  std::vector<Object> dropped;
  std::shared_ptr<const InformerState> snapshot;
  {
    const std::scoped_lock lock(mutex_);
    if (closed_) return;
    if (news.whole) {
      before.swap(state_.objects);
      for (const auto& [key, object] : before) queue_.add(key);
      for (const std::string& key : refused_) queue_.add(key);
      refused_.clear();
    }
    for (Decoded& one : decoded) {
      queue_.add(one.key);
      refused_.erase(one.key);
      if (one.object && *one.object) {
        Object& place = state_.objects[one.key];
        place.swap(**one.object);  // the old one goes with `decoded`
        continue;
      }
      if (const auto found = state_.objects.find(one.key); found != state_.objects.end()) {
        dropped.push_back(std::move(found->second));
        state_.objects.erase(found);
      }
      if (!one.object) continue;
      refused_.insert(one.key);
      refusals.emplace_back(one.key, std::move(one.object->error()));
    }
    state_.refused = refused_.size();
    state_.revision = news.revision;
    snapshot.swap(snapshot_);
    if (!state_.ready) {
      state_.ready = true;
      resync_later();
    }
    work_came_.notify_all();
    ready_.notify_all();
  }
  for (const auto& [key, error] : refusals) tell(key, error);
}

// With the mutex held.
void InformerCore::resync_later() {
  if (hooks_.resync <= std::chrono::milliseconds::zero()) return;
  resync_timer_ = core_->loop().at(after(hooks_.resync), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    const std::scoped_lock lock(self->mutex_);
    if (self->closed_) return;
    for (const auto& [key, object] : self->state_.objects) self->queue_.add(key);
    self->work_came_.notify_all();
    self->resync_later();
  });
}

void InformerCore::tell(const std::string& key, const Error& error) {
  if (!hooks_.on_error) return core_->log(LogLevel::kWarning, key + ": " + to_string(error));
  const bool posted = callbacks_->post([weak = weak_from_this(), key, error] {
    if (const auto self = weak.lock()) self->hooks_.on_error(key, error);
  });
  if (!posted) core_->log(LogLevel::kWarning, key + ": not told to on_error, which is too slow: " + to_string(error));
}

void InformerCore::work() {
  Lock lock(mutex_);
  while (!closed_) {
    if (const auto key = queue_.take(BootClock::now())) {
      settle(lock, *key);
      continue;
    }
    if (const TimePoint due = queue_.next_due(); due == kNever) {
      work_came_.wait(lock);
    } else {
      work_came_.wait_until(lock, due);
    }
  }
}

// One turn of a key that was taken; unlocked while the user's code runs.
void InformerCore::settle(Lock& lock, const std::string& key) {
  if (refused_.contains(key)) {
    backoffs_.erase(key);
    return queue_.done(key);
  }
  const auto found = state_.objects.find(key);
  std::optional<Result<Requeue>> result;
  {
    const Object now = found == state_.objects.end() ? nullptr : found->second;
    lock.unlock();
    result = reconcile(key, now);
  }  // what the user's value owns ends without the mutex
  if (!*result) tell(key, result->error());
  lock.lock();
  TimePoint again = kNever;
  if (!*result) {
    again = after(backoffs_.try_emplace(key, hooks_.retry_max).first->second.next());
  } else {
    backoffs_.erase(key);
    if (const auto delay = (*result)->delay()) again = after(*delay);
  }
  queue_.done(key, again);
  work_came_.notify_one();  // it may be due before what the others wait for
}

// The user's code: an exception means again.
Result<Requeue> InformerCore::reconcile(const std::string& key, const Object& now) {
  try {
    return hooks_.reconcile(key, now);
  } catch (const std::exception& e) {
    return threw(Code::kUnknown, key, std::string("reconcile threw: ") + e.what());
  } catch (...) {
    return threw(Code::kUnknown, key, "reconcile threw");
  }
}

Status InformerCore::wait_ready(const CallOptions& call) {
  const auto over = [this] { return state_.ready || closed_.has_value(); };
  const TimePoint until = deadline_of(call, std::nullopt);
  Lock lock(mutex_);
  if (until == kNever) {
    ready_.wait(lock, call.stop, over);
  } else {
    ready_.wait_until(lock, call.stop, until, over);
  }
  if (state_.ready) return {};
  if (closed_) return fail(*closed_);
  if (call.stop.stop_requested()) return fail(Code::kCancelled, "stopped by the caller");
  return fail(Code::kDeadlineExceeded,
              hooks_.prefix + ": not read yet" + (trouble_.empty() ? std::string() : ": " + trouble_));
}

std::shared_ptr<const InformerState> InformerCore::snapshot() {
  const std::scoped_lock lock(mutex_);
  if (!snapshot_) snapshot_ = std::make_shared<const InformerState>(state_);
  return snapshot_;
}

std::shared_ptr<const void> InformerCore::get(std::string_view key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = state_.objects.find(key);
  return found == state_.objects.end() ? nullptr : found->second;
}

}  // namespace conclave::inline v1::internal
