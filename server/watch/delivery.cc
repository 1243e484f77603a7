#include "watch/delivery.h"

#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace watch {
namespace {

// About what the fields of a response beside its events take, and the frame of one event.
constexpr size_t kHeadBytes = 64;
constexpr size_t kEventFrameBytes = 6;

void copy(const mvcc::KeyValue& from, mvccpb::KeyValue* to) {
  to->set_key(from.key);
  to->set_value(from.value);
  to->set_create_revision(from.create_revision);
  to->set_mod_revision(from.mod_revision);
  to->set_version(from.version);
  to->set_lease(from.lease);
}

}  // namespace

void Delivery::add(const mvcc::Event& event) {
  if (events.empty()) first = event.kv->mod_revision;
  CHECK(event.kv->mod_revision >= last, event.kv->mod_revision, last);
  last = event.kv->mod_revision;
  bytes += event_bytes(event);
  (event.is_delete ? has_delete : has_put) = true;
  events.push_back(event);
}

std::shared_ptr<Delivery> Delivery::from(int64_t revision) const {
  auto part = std::make_shared<Delivery>();
  for (const auto& event : events) {
    if (event.kv->mod_revision >= revision) part->add(event);
  }
  return part;
}

// Collects events of one revision after the other and cuts them into responses.
struct ResponseBuilder::Cutter {
  using Message = etcdserverpb::WatchResponse;
  const ResponseBuilder& builder;
  const Shape& shape;
  const bool shared;
  std::vector<ResponsePtr> done;

  struct Sized {
    std::unique_ptr<mvccpb::Event> event;
    size_t bytes;
  };
  std::vector<Sized> revision_events;  // of the revision that is being collected
  size_t revision_bytes = 0;
  int64_t revision = 0;
  std::vector<Sized> open;  // earlier revisions of the response that is being filled
  size_t open_bytes = kHeadBytes;
  int64_t open_revision = 0;

  void add(std::unique_ptr<mvccpb::Event> event, int64_t event_revision) {
    if (event_revision != revision) end_revision();
    revision = event_revision;
    size_t bytes = event->ByteSizeLong() + kEventFrameBytes;
    revision_bytes += bytes;
    revision_events.push_back({std::move(event), bytes});
  }

  void end_revision() {
    if (revision_events.empty()) return;
    if (!open.empty() && open_bytes + revision_bytes >= builder.response_bytes_) end_response();
    open_bytes += std::exchange(revision_bytes, 0);
    open_revision = revision;
    if (open.empty()) {
      open.swap(revision_events);
    } else {
      for (auto& sized : revision_events) open.push_back(std::move(sized));
    }
    revision_events.clear();
  }

  void end_response() {
    if (open.empty()) return;
    // As etcd's sendFragments: a part has as many events as stay below the limit, and at least one; all but the last
    // part say that more follows.
    bool cut = shape.fragment && open.size() > 1 && open_bytes >= builder.response_bytes_;
    std::shared_ptr<Response> part;
    size_t part_bytes = 0;
    for (auto& sized : open) {
      bool full = cut && part != nullptr && part_bytes + sized.bytes >= builder.response_bytes_;
      if (full) {
        part->message.set_fragment(true);
        done.push_back(std::exchange(part, nullptr));
      }
      if (part == nullptr) {
        part = std::make_shared<Response>();
        part->shared = shared;
        builder.head(&part->message, open_revision, shape.id);
        part_bytes = kHeadBytes;
      }
      part_bytes += sized.bytes;
      part->message.mutable_events()->AddAllocated(sized.event.release());
    }
    done.push_back(std::move(part));
    open.clear();
    open_bytes = kHeadBytes;
  }
};

std::vector<ResponsePtr> ResponseBuilder::build(Delivery& delivery, const Shape& shape) const {
  // One taker, or the first of several that are being given it right now: then it is built twice, which costs time
  // only.
  if (delivery.takers.load(std::memory_order_relaxed) <= 1) return make(delivery, shape, false);
  MutexLock lock(delivery.built_mutex);
  for (const auto& built : delivery.built) {
    if (built.shape == shape) return built.responses;
  }
  bool keep = delivery.built.size() < kBuiltMax;
  auto responses = make(delivery, shape, keep);
  if (keep) delivery.built.push_back({shape, responses});
  return responses;
}

std::vector<ResponsePtr> ResponseBuilder::make(const Delivery& delivery, const Shape& shape, bool shared) const {
  Cutter cutter{.builder = *this, .shape = shape, .shared = shared, .done = {}, .revision_events = {}, .open = {}};
  std::unique_ptr<mvcc::Reader> reader;
  for (const auto& from : delivery.events) {
    if (from.is_delete ? shape.no_delete : shape.no_put) continue;
    auto event = std::make_unique<mvccpb::Event>();
    const mvcc::KeyValue& kv = *from.kv;
    if (from.is_delete) {
      event->set_type(mvccpb::Event::DELETE);
      event->mutable_kv()->set_key(kv.key);
      event->mutable_kv()->set_mod_revision(kv.mod_revision);
    } else {
      copy(kv, event->mutable_kv());
    }
    bool created = !from.is_delete && kv.create_revision == kv.mod_revision;
    if (shape.prev_kv && !created) {
      if (reader == nullptr) reader = mvcc_.reader();
      add_previous(*reader, kv, event.get());
    }
    cutter.add(std::move(event), kv.mod_revision);
  }
  cutter.end_revision();
  cutter.end_response();
  return std::move(cutter.done);
}

void ResponseBuilder::add_previous(mvcc::Reader& reader, const mvcc::KeyValue& kv, mvccpb::Event* event) const {
  auto previous = reader.get(kv.key, kv.mod_revision - 1);
  if (!previous) {
    // Compacted in the meantime: the event goes out without it, as etcd's.
    if (previous.error().code != Code::kOutOfRange) {
      log_error("the value before an event cannot be read", {{"error", previous.error().message}});
    }
    return;
  }
  if (*previous != nullptr) copy(**previous, event->mutable_prev_kv());
}

void ResponseBuilder::head(etcdserverpb::WatchResponse* message, int64_t revision, int64_t watch_id) const {
  if (fill_) fill_(message->mutable_header());
  message->mutable_header()->set_revision(revision);
  message->set_watch_id(watch_id);
}

}  // namespace watch
