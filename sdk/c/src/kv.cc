#include "conclave_c/kv.h"

#include <memory>

#include "binding.h"
#include "handles.h"

using namespace conclave::c;
using conclave::fail;
using conclave::LeaseId;
using conclave::Revision;
using conclave::Status;

namespace {

static_assert(static_cast<int>(conclave::SortOrder::kDescend) == CONCLAVE_SORT_DESCEND);
static_assert(static_cast<int>(conclave::SortTarget::kValue) == CONCLAVE_SORT_BY_VALUE);

// Hands out an answer, or its error. `place` may be NULL.
template <class Answer>
Status hand_out(conclave::Result<Answer> answer, conclave_kv_result** place) {
  if (!answer) return fail(std::move(answer.error()));
  if (place != nullptr) *place = result_of(std::move(*answer)).release();
  return {};
}

conclave::Result<conclave::RangeOptions> range_from(const conclave_range_options* given) {
  auto read = options_of<conclave_range_options>(given, CONCLAVE_RANGE_OPTIONS_INIT, "conclave_range_options");
  if (!read) return fail(std::move(read.error()));
  auto order = enum_of(read->order, conclave::SortOrder::kDescend, "order");
  if (!order) return fail(std::move(order.error()));
  auto sort_by = enum_of(read->sort_by, conclave::SortTarget::kValue, "sort_by");
  if (!sort_by) return fail(std::move(sort_by.error()));
  return conclave::RangeOptions{.key = text(read->key),
                                .prefix = read->prefix != 0,
                                .range_end = text(read->range_end),
                                .limit = read->limit,
                                .revision = Revision{read->revision},
                                .order = *order,
                                .sort_by = *sort_by,
                                .serializable = read->serializable != 0,
                                .keys_only = read->keys_only != 0,
                                .count_only = read->count_only != 0,
                                .call = call_of(read->timeout_ms, read->stop)};
}

}  // namespace

namespace conclave::c {

std::unique_ptr<conclave_kv_result> result_of(RangeResult found) {
  return std::make_unique<conclave_kv_result>(std::move(found.kvs), found.revision, found.count, found.more);
}

std::unique_ptr<conclave_kv_result> result_of(PutResult stored) {
  std::vector<KeyValue> before;
  if (stored.previous) before.push_back(std::move(*stored.previous));
  const auto count = static_cast<std::int64_t>(before.size());
  return std::make_unique<conclave_kv_result>(std::move(before), stored.revision, count, false);
}

std::unique_ptr<conclave_kv_result> result_of(DeleteResult gone) {
  return std::make_unique<conclave_kv_result>(std::move(gone.previous), gone.revision, gone.deleted, false);
}

}  // namespace conclave::c

conclave_code conclave_get(conclave_client* client, conclave_str key, const conclave_get_options* options,
                           conclave_kv_result** result, conclave_error* error) {
  if (result != nullptr) *result = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"client", client}, {"result", result}}); !given) return given;
    auto read = options_of<conclave_get_options>(options, CONCLAVE_GET_OPTIONS_INIT, "conclave_get_options");
    if (!read) return fail(std::move(read.error()));
    return hand_out(client->client.range({.key = text(key),
                                          .revision = Revision{read->revision},
                                          .serializable = read->serializable != 0,
                                          .call = call_of(read->timeout_ms, read->stop)}),
                    result);
  });
}

conclave_code conclave_range(conclave_client* client, const conclave_range_options* options,
                             conclave_kv_result** result, conclave_error* error) {
  if (result != nullptr) *result = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"client", client}, {"options", options}, {"result", result}}); !given) return given;
    auto range = range_from(options);
    if (!range) return fail(std::move(range.error()));
    return hand_out(client->client.range(std::move(*range)), result);
  });
}

conclave_code conclave_put(conclave_client* client, conclave_str key, conclave_str value,
                           const conclave_put_options* options, conclave_kv_result** result, conclave_error* error) {
  if (result != nullptr) *result = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"client", client}}); !given) return given;
    auto read = options_of<conclave_put_options>(options, CONCLAVE_PUT_OPTIONS_INIT, "conclave_put_options");
    if (!read) return fail(std::move(read.error()));
    return hand_out(client->client.put(view(key), view(value),
                                       {.lease = LeaseId{read->lease},
                                        .prev_kv = read->prev_kv != 0,
                                        .ignore_value = read->ignore_value != 0,
                                        .ignore_lease = read->ignore_lease != 0,
                                        .call = call_of(read->timeout_ms, read->stop)}),
                    result);
  });
}

conclave_code conclave_delete(conclave_client* client, conclave_str key, const conclave_delete_options* options,
                              conclave_kv_result** result, conclave_error* error) {
  if (result != nullptr) *result = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"client", client}}); !given) return given;
    auto read = options_of<conclave_delete_options>(options, CONCLAVE_DELETE_OPTIONS_INIT, "conclave_delete_options");
    if (!read) return fail(std::move(read.error()));
    return hand_out(client->client.del(view(key), {.prefix = read->prefix != 0,
                                                   .range_end = text(read->range_end),
                                                   .prev_kv = read->prev_kv != 0,
                                                   .call = call_of(read->timeout_ms, read->stop)}),
                    result);
  });
}

int64_t conclave_kv_result_revision(const conclave_kv_result* result) {
  return result != nullptr ? number(result->revision) : 0;
}
int64_t conclave_kv_result_count(const conclave_kv_result* result) { return result != nullptr ? result->count : 0; }
int conclave_kv_result_more(const conclave_kv_result* result) { return result != nullptr && result->more; }
size_t conclave_kv_result_size(const conclave_kv_result* result) {
  return result != nullptr ? result->views.size() : 0;
}
const conclave_key_value* conclave_kv_result_at(const conclave_kv_result* result, size_t index) {
  return result != nullptr && index < result->views.size() ? &result->views[index] : nullptr;
}
void conclave_kv_result_free(conclave_kv_result* result) { delete result; }
