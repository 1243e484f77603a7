#include "conclave_c/watch.h"

#include "binding.h"
#include "conclave/watch.h"
#include "handles.h"

using namespace conclave::c;
using conclave::fail;
using conclave::Status;

struct conclave_watch {
  conclave::Watch watch;
};

// The events and what points into them. It does not move: the views would stay behind.
struct conclave_watch_batch {
  explicit conclave_watch_batch(conclave::WatchBatch of) : batch(std::move(of)) {
    if (batch.gap)
      gap = {number(batch.gap->after), number(batch.gap->resume), borrow(std::string_view(batch.gap->reason))};
    kvs.reserve(2 * batch.events.size());
    for (const conclave::Event& event : batch.events) {
      conclave_event view{static_cast<conclave_event_type>(event.type), event.created(), keep(event.kv), nullptr};
      if (event.previous) view.previous = keep(*event.previous);
      events.push_back(view);
    }
  }
  conclave_watch_batch(const conclave_watch_batch&) = delete;
  conclave_watch_batch& operator=(const conclave_watch_batch&) = delete;

  const conclave_key_value* keep(const conclave::KeyValue& kv) {
    kvs.push_back(borrow(kv));
    return &kvs.back();
  }

  const conclave::WatchBatch batch;
  conclave_gap gap{};
  std::vector<conclave_key_value> kvs;  // never grows beyond what was reserved
  std::vector<conclave_event> events;
};

static_assert(static_cast<int>(conclave::EventType::kDelete) == CONCLAVE_EVENT_DELETE);

conclave_code conclave_watch_open(conclave_client* client, const conclave_watch_options* options,
                                  conclave_watch** watch, conclave_error* error) {
  if (watch != nullptr) *watch = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"client", client}, {"options", options}, {"watch", watch}}); !given) return given;
    auto read = options_of<conclave_watch_options>(options, CONCLAVE_WATCH_OPTIONS_INIT, "conclave_watch_options");
    if (!read) return fail(std::move(read.error()));
    auto opened = conclave::Watch::open(client->client, {.key = text(read->key),
                                                         .prefix = read->prefix != 0,
                                                         .range_end = text(read->range_end),
                                                         .from = conclave::Revision{read->from},
                                                         .prev_kv = read->prev_kv != 0,
                                                         .puts = read->no_puts == 0,
                                                         .deletes = read->no_deletes == 0});
    if (!opened) return fail(std::move(opened.error()));
    *watch = new conclave_watch{std::move(*opened)};
    return {};
  });
}

conclave_code conclave_watch_wait_ready(conclave_watch* watch, int64_t timeout_ms, conclave_error* error) {
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"watch", watch}}); !given) return given;
    return watch->watch.wait_ready(call_of(timeout_ms));
  });
}

conclave_code conclave_watch_next(conclave_watch* watch, int64_t timeout_ms, conclave_stop* stop,
                                  conclave_watch_batch** batch, conclave_error* error) {
  if (batch != nullptr) *batch = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"watch", watch}, {"batch", batch}}); !given) return given;
    auto next = watch->watch.next(call_of(timeout_ms, stop));
    if (!next) return fail(std::move(next.error()));
    *batch = new conclave_watch_batch(std::move(*next));
    return {};
  });
}

void conclave_watch_close(conclave_watch* watch) {
  if (watch != nullptr) watch->watch.close();
}
void conclave_watch_free(conclave_watch* watch) { delete watch; }

int64_t conclave_watch_batch_revision(const conclave_watch_batch* batch) {
  return batch != nullptr ? number(batch->batch.revision) : 0;
}
const conclave_gap* conclave_watch_batch_gap(const conclave_watch_batch* batch) {
  return batch != nullptr && batch->batch.gap ? &batch->gap : nullptr;
}
size_t conclave_watch_batch_size(const conclave_watch_batch* batch) {
  return batch != nullptr ? batch->events.size() : 0;
}
const conclave_event* conclave_watch_batch_at(const conclave_watch_batch* batch, size_t index) {
  return batch != nullptr && index < batch->events.size() ? &batch->events[index] : nullptr;
}
void conclave_watch_batch_free(conclave_watch_batch* batch) { delete batch; }
