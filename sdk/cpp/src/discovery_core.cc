#include "discovery_core.h"

#include <algorithm>
#include <utility>

#include "cache_file.h"
#include "record.h"

namespace conclave::inline v1::internal {

namespace {

constexpr std::size_t kLoggedMax = 1000;       // unreadable keys that are told of
constexpr std::chrono::seconds kSaveEvery{1};  // a list that changes all the time is not written all the time

constexpr const char* kKind = "conclave-instances";

Json encode_copy(const std::string& service, const InstanceList& list) {
  Json records = Json::array();
  for (const Instance& instance : list.instances) records.push(encode_record(instance));
  return Json::object()
      .set("service", service)
      .set("revision", number(list.revision))
      .set("records", std::move(records));
}

Result<InstanceList> read_copy(const std::string& path, const std::string& service) {
  const auto copy = read_cache_file(path, kKind);
  if (!copy) return fail(copy.error());
  if ((*copy)["service"].text() != service)
    return fail(Code::kInvalidArgument, path + ": a copy of " + (*copy)["service"].text());
  InstanceList list;
  list.revision = Revision{(*copy)["revision"].integer()};
  list.source = ViewSource::kDisk;
  for (const Json& record : (*copy)["records"].items()) {
    auto instance = decode_record(record.text());
    if (!instance) return fail(Code::kDataLoss, path + ": " + instance.error().message);
    list.instances.push_back(std::move(*instance));
  }
  return list;
}

}  // namespace

DiscoveryCore::DiscoveryCore(std::shared_ptr<Core> core, DiscoveryOptions options)
    : core_(std::move(core)),
      options_(std::move(options)),
      prefix_(service_prefix(options_.service)),
      picker_(std::make_shared<Picker>(options_.balancer)),
      callbacks_(core_->callback_queue("discovery of " + options_.service)),
      disk_(core_->callback_queue("copy of " + options_.service)) {}

void DiscoveryCore::start() {
  const auto weak = weak_from_this();
  list_watch_ = std::make_shared<ListWatch>(core_, prefix_,
                                            ListWatch::Hooks{.on_list =
                                                                 [weak](const RangeResult& all) {
                                                                   if (const auto self = weak.lock())
                                                                     self->on_list(all);
                                                                 },
                                                             .on_batch =
                                                                 [weak](const WatchBatch& batch) {
                                                                   if (const auto self = weak.lock())
                                                                     self->on_batch(batch);
                                                                 },
                                                             .on_trouble =
                                                                 [weak](const Error& error) {
                                                                   const auto self = weak.lock();
                                                                   if (!self) return;
                                                                   std::scoped_lock lock(self->mutex_);
                                                                   self->trouble_ = error.message;
                                                                 }});
  list_watch_->start();
  if (options_.cache_file.empty()) return;
  core_->loop().at(after(core_->call_timeout() / 2), [weak] {
    const auto self = weak.lock();
    if (!self || self->snapshot()->source != ViewSource::kNone) return;
    self->disk_->post([weak] {
      if (const auto inner = weak.lock()) inner->load();
    });
  });
}

void DiscoveryCore::close(Error why) {
  list_watch_->end();
  std::scoped_lock lock(mutex_);
  if (!closed_) closed_ = std::move(why);
  wake_.notify_all();
}

void DiscoveryCore::end_callbacks() {
  callbacks_->close();
  disk_->close();
}

void DiscoveryCore::read(const KeyValue& kv) {
  auto instance = decode_record(kv.key, kv.value);
  if (instance) {
    unreadable_.erase(kv.key);
    instances_.insert_or_assign(kv.key, std::move(*instance));
    return;
  }
  instances_.erase(kv.key);
  unreadable_.insert(kv.key);
  if (logged_.size() < kLoggedMax && logged_.insert(kv.key).second)
    core_->log(LogLevel::kWarning, kv.key + ": cannot be read and is left out: " + instance.error().message);
}

void DiscoveryCore::on_list(const RangeResult& all) {
  Lock lock(mutex_);
  instances_.clear();
  unreadable_.clear();
  for (const KeyValue& kv : all.kvs) read(kv);
  publish(lock, all.revision, ViewSource::kServer);
}

void DiscoveryCore::on_batch(const WatchBatch& batch) {
  Lock lock(mutex_);
  for (const Event& event : batch.events) {
    if (event.type == EventType::kPut) {
      read(event.kv);
    } else {
      instances_.erase(event.kv.key);
      unreadable_.erase(event.kv.key);
    }
  }
  publish(lock, batch.revision, ViewSource::kServer);
}

void DiscoveryCore::publish(Lock&, Revision revision, ViewSource source) {
  auto list = std::make_shared<InstanceList>();
  list->instances.reserve(instances_.size());
  for (const auto& [key, instance] : instances_) list->instances.push_back(instance);
  list->unreadable = unreadable_.size();
  list->revision = revision;
  list->source = source;
  list_ = std::move(list);
  picker_->update(list_);
  wake_.notify_all();
  if (options_.on_change && !telling_) {
    telling_ = true;
    callbacks_->post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->tell();
    });
  }
  if (source == ViewSource::kServer && !options_.cache_file.empty()) save_soon();
}

void DiscoveryCore::tell() {
  std::shared_ptr<const InstanceList> now;
  {
    std::scoped_lock lock(mutex_);
    telling_ = false;  // first: what is published from here on is told again
    now = list_;
  }
  options_.on_change(now);
}

void DiscoveryCore::save_soon() {
  if (saving_) return;
  saving_ = true;
  core_->loop().at(std::max(BootClock::now(), saved_at_ + kSaveEvery), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->disk_->post([weak] {
      if (const auto inner = weak.lock()) inner->save();
    });
  });
}

void DiscoveryCore::save() {
  std::shared_ptr<const InstanceList> now;
  {
    std::scoped_lock lock(mutex_);
    saving_ = false;
    saved_at_ = BootClock::now();
    now = list_;
  }
  if (auto saved = write_cache_file(options_.cache_file, kKind, encode_copy(options_.service, *now)); !saved)
    core_->log(LogLevel::kWarning, "no copy of the instances on disk: " + saved.error().message);
}

// In the caller's or a callback thread; does nothing once there is a list.
void DiscoveryCore::load() {
  auto copy = read_copy(options_.cache_file, options_.service);
  Lock lock(mutex_);
  if (list_->source != ViewSource::kNone) return;
  if (!copy) {
    copy_trouble_ = "; the copy on disk: " + copy.error().message;
    return;
  }
  instances_.clear();
  for (Instance& instance : copy->instances) {
    std::string key = record_key(instance);
    instances_.insert_or_assign(std::move(key), std::move(instance));
  }
  publish(lock, copy->revision, ViewSource::kDisk);
}

Status DiscoveryCore::wait_ready(const CallOptions& call) {
  const auto ready = [this] { return list_->source != ViewSource::kNone || closed_.has_value(); };
  const TimePoint until = deadline_of(call, std::nullopt);
  const TimePoint half = after(call.timeout.value_or(core_->call_timeout()) / 2);
  Lock lock(mutex_);
  if (!options_.cache_file.empty()) {
    wake_.wait_until(lock, call.stop, std::min(until, half), ready);
    if (!ready() && !call.stop.stop_requested()) {
      lock.unlock();
      load();
      lock.lock();
    }
  }
  if (until == kNever) {
    wake_.wait(lock, call.stop, ready);
  } else {
    wake_.wait_until(lock, call.stop, until, ready);
  }
  if (list_->source != ViewSource::kNone) return {};
  if (closed_) return fail(*closed_);
  if (call.stop.stop_requested()) return fail(Code::kCancelled, "stopped by the caller");
  return fail(Code::kDeadlineExceeded, options_.service + ": no list yet: " +
                                           (trouble_.empty() ? "no member has answered" : trouble_) + copy_trouble_);
}

std::shared_ptr<const InstanceList> DiscoveryCore::snapshot() const {
  std::scoped_lock lock(mutex_);
  return list_;
}

Result<Picker::Choice> DiscoveryCore::pick(const PickOptions& options) {
  auto choice = picker_->pick(options.exclude, BootClock::now());
  if (choice) return std::move(*choice);
  const auto now = snapshot();
  if (now->source == ViewSource::kNone)
    return fail(Code::kUnavailable, options_.service + ": nobody to call: there is no list yet");
  return fail(Code::kUnavailable, options_.service + ": nobody to call: of " + std::to_string(now->instances.size()) +
                                      " instances each is critical, draining, of weight 0 or excluded");
}

}  // namespace conclave::inline v1::internal
