// Events on their way to watchers of one range: what one publish, or one slice of catch-up, has for them. Shared by
// reference; the response is built by the first reader that takes it and shared by all who would get the very same one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/thread.h"
#include "mvcc/event.h"
#include "watch/hub.h"

namespace watch {

// What makes two watchers' responses differ, events aside.
struct Shape {
  int64_t id = 0;
  bool no_put = false;
  bool no_delete = false;
  bool prev_kv = false;
  bool fragment = false;
  friend bool operator==(const Shape&, const Shape&) = default;
};

// What an event is counted as in buffers.
inline size_t event_bytes(const mvcc::Event& event) { return event.kv->key.size() + event.kv->value.size() + 64; }

struct Delivery {
  // In order of revision; unchanged once it is handed out.
  std::vector<mvcc::Event> events;
  int64_t first = 0;  // revisions
  int64_t last = 0;
  size_t bytes = 0;
  bool has_put = false;
  bool has_delete = false;
  std::atomic<uint32_t> takers{0};  // watchers that were given it

  void add(const mvcc::Event& event);
  bool wanted_by(const Shape& shape) const { return (has_put && !shape.no_put) || (has_delete && !shape.no_delete); }
  // The part from `revision` on.
  std::shared_ptr<Delivery> from(int64_t revision) const;

  // Built responses, for other takers. Held while a response is built, so that it is built once.
  struct Built {
    Shape shape;
    std::vector<ResponsePtr> responses;
  };
  Mutex built_mutex;
  std::vector<Built> built GUARDED_BY(built_mutex);  // kBuiltMax; more shapes of one delivery are built each time
};
using DeliveryPtr = std::shared_ptr<Delivery>;

inline constexpr size_t kBuiltMax = 8;

// Makes responses of deliveries. Any thread.
class ResponseBuilder {
 public:
  ResponseBuilder(mvcc::Mvcc& mvcc, size_t response_bytes) : mvcc_(mvcc), response_bytes_(response_bytes) {}
  void set_header(std::function<void(etcdserverpb::ResponseHeader*)> fill) { fill_ = std::move(fill); }

  // At least one response if delivery.wanted_by(shape). Cut between revisions at response_bytes; inside one only into
  // fragments, for who asked for them.
  std::vector<ResponsePtr> build(Delivery& delivery, const Shape& shape) const;
  // An answer that carries no events: header.revision (none if 0) and watch id; `set` adds the rest.
  template <class Set>
  ResponsePtr answer(int64_t revision, int64_t watch_id, Set&& set) const {
    auto response = std::make_shared<Response>();
    head(&response->message, revision, watch_id);
    set(&response->message);
    return response;
  }

 private:
  struct Cutter;
  void head(etcdserverpb::WatchResponse* message, int64_t revision, int64_t watch_id) const;
  std::vector<ResponsePtr> make(const Delivery& delivery, const Shape& shape, bool shared) const;
  void add_previous(mvcc::Reader& reader, const mvcc::KeyValue& kv, mvccpb::Event* event) const;

  mvcc::Mvcc& mvcc_;
  const size_t response_bytes_;
  std::function<void(etcdserverpb::ResponseHeader*)> fill_;
};

}  // namespace watch
