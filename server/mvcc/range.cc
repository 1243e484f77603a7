#include "mvcc/range.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mvcc/mvcc.h"

namespace mvcc {
namespace {

using etcdserverpb::RangeRequest;
using etcdserverpb::RangeResponse;

// A key of the range. Its bytes are kept (in Collected::keys) only where the answer is made without its row.
struct Item {
  Found found;
  size_t key_at = 0;
  size_t key_size = 0;
};

struct Collected {
  std::vector<Item> items;
  std::string keys;
  int64_t count = 0;  // of all keys, whatever the limit
  std::string_view key(const Item& item) const { return std::string_view(keys).substr(item.key_at, item.key_size); }
};

bool has_filters(const RangeRequest& request) {
  return request.min_mod_revision() != 0 || request.max_mod_revision() != 0 || request.min_create_revision() != 0 ||
         request.max_create_revision() != 0;
}

// etcd's IsDefaultOrdering: no order at all counts as one, so that with a target other than the key the limit cuts
// first and the rest is sorted after (quirk 17).
bool limit_cuts_first(const RangeRequest& request) {
  const bool in_key_order =
      request.sort_order() == RangeRequest::NONE ||
      (request.sort_target() == RangeRequest::KEY && request.sort_order() == RangeRequest::ASCEND);
  return in_key_order && !has_filters(request);
}

// `keep_max` < 0: all. False: the revision is forgotten.
bool collect(const KeyIndex& index, int64_t revision, const RangeRequest& request, int64_t keep_max, bool keep_keys,
             Collected* out) {
  const Interval interval = Interval::of(request.key(), request.range_end());
  const auto visit = [&](std::string_view key, const Found& found) {
    ++out->count;
    if (keep_max >= 0 && static_cast<int64_t>(out->items.size()) >= keep_max) return;
    Item item{.found = found};
    if (keep_keys) {
      item.key_at = out->keys.size();
      item.key_size = key.size();
      out->keys += key;
    }
    out->items.push_back(item);
  };
  if (interval.single) {
    Found found;
    if (!index.find_at(interval.from, revision, &found)) return false;
    if (found.id != 0) visit(interval.from, found);
    return true;
  }
  std::string resume;
  for (bool done = false; !done;) {
    if (!index.walk(interval, revision, &resume, &done, visit)) return false;
  }
  return true;
}

// Of rows that are not their key's newest the index knows no more than the id.
Result<bool> complete_heads(const Source& source, int64_t revision, std::vector<Item>* items) {
  std::vector<std::pair<store::RowId, size_t>> missing;
  for (size_t i = 0; i < items->size(); ++i) {
    Found& found = (*items)[i].found;
    if (found.newest) continue;
    if (const KeyValuePtr kv = source.cache.get(found.id)) {
      found = {found.id, false, kv->create_revision, kv->version, kv->lease};
    } else {
      missing.emplace_back(found.id, i);
    }
  }
  if (missing.empty()) return true;
  std::sort(missing.begin(), missing.end());
  std::vector<store::RowId> ids;
  ids.reserve(missing.size());
  for (const auto& [id, i] : missing) ids.push_back(id);
  return source.rows.load(revision, ids, true, [&](size_t i, const store::RowView& row) {
    (*items)[missing[i].second].found = {row.id, false, row.create_revision, row.version, row.lease};
  });
}

void filter(const RangeRequest& request, std::vector<Item>* items) {
  std::erase_if(*items, [&](const Item& item) {
    const int64_t mod = revision_of(item.found.id).main;
    const int64_t create = item.found.create_revision;
    return (request.max_mod_revision() != 0 && mod > request.max_mod_revision()) ||
           (request.min_mod_revision() != 0 && mod < request.min_mod_revision()) ||
           (request.max_create_revision() != 0 && create > request.max_create_revision()) ||
           (request.min_create_revision() != 0 && create < request.min_create_revision());
  });
}

template <class Iterator, class Field>
void sort_by(Iterator begin, Iterator end, bool descending, Field field) {
  std::stable_sort(
      begin, end, [&](const auto& a, const auto& b) { return descending ? field(b) < field(a) : field(a) < field(b); });
}

// All targets that need no value.
void sort_items(const RangeRequest& request, std::vector<Item>* items) {
  const bool descending = request.sort_order() == RangeRequest::DESCEND;
  switch (request.sort_target()) {
    case RangeRequest::KEY:
      if (descending) std::reverse(items->begin(), items->end());
      break;
    case RangeRequest::VERSION:
      sort_by(items->begin(), items->end(), descending, [](const Item& item) { return item.found.version; });
      break;
    case RangeRequest::CREATE:
      sort_by(items->begin(), items->end(), descending, [](const Item& item) { return item.found.create_revision; });
      break;
    case RangeRequest::MOD:
      sort_by(items->begin(), items->end(), descending, [](const Item& i) { return revision_of(i.found.id).main; });
      break;
    default:
      break;
  }
}

void fill_keys(const Collected& collected, RangeResponse* response) {
  response->mutable_kvs()->Reserve(static_cast<int>(collected.items.size()));
  for (const Item& item : collected.items) {
    const std::string_view key = collected.key(item);
    mvccpb::KeyValue* kv = response->add_kvs();
    kv->set_key(key.data(), key.size());
    kv->set_create_revision(item.found.create_revision);
    kv->set_mod_revision(revision_of(item.found.id).main);
    kv->set_version(item.found.version);
    kv->set_lease(item.found.lease);
  }
}

void fill_row(const store::RowView& row, mvccpb::KeyValue* to) {
  to->set_key(row.key.data(), row.key.size());
  to->set_value(row.value.data(), row.value.size());
  to->set_create_revision(row.create_revision);
  to->set_mod_revision(revision_of(row.id).main);
  to->set_version(row.version);
  to->set_lease(row.lease);
}

// From the cache what is there, then the others by ascending row id, which reads the store's pages in order.
Result<bool> fill_values(const Source& source, int64_t revision, const std::vector<Item>& items,
                         RangeResponse* response) {
  std::vector<std::pair<store::RowId, uint32_t>> missing;
  response->mutable_kvs()->Reserve(static_cast<int>(items.size()));
  for (size_t i = 0; i < items.size(); ++i) {
    mvccpb::KeyValue* to = response->add_kvs();
    if (const KeyValuePtr kv = source.cache.get(items[i].found.id)) {
      fill(*kv, to);
    } else {
      missing.emplace_back(items[i].found.id, static_cast<uint32_t>(i));
    }
  }
  if (missing.empty()) return true;
  std::sort(missing.begin(), missing.end());
  std::vector<store::RowId> ids;
  ids.reserve(missing.size());
  for (const auto& [id, i] : missing) ids.push_back(id);
  return source.rows.load(revision, ids, false, [&](size_t i, const store::RowView& row) {
    const uint32_t place = missing[i].second;
    fill_row(row, response->mutable_kvs(static_cast<int>(place)));
    if (items[place].found.newest) source.cache.put(row.id, make_key_value(row), items.size() == 1);
  });
}

void cut(int64_t limit, RangeResponse* response) {
  if (limit <= 0 || response->kvs_size() <= limit) return;
  response->mutable_kvs()->DeleteSubrange(static_cast<int>(limit), response->kvs_size() - static_cast<int>(limit));
}

}  // namespace

KeyValuePtr make_key_value(const store::RowView& row) {
  auto kv = std::make_shared<KeyValue>();
  kv->key = row.key;
  kv->value = row.value;
  kv->create_revision = row.create_revision;
  kv->mod_revision = revision_of(row.id).main;
  kv->version = row.version;
  kv->lease = row.lease;
  return kv;
}

void fill(const KeyValue& from, mvccpb::KeyValue* to) {
  to->set_key(from.key.data(), from.key.size());
  to->set_value(from.value.data(), from.value.size());
  to->set_create_revision(from.create_revision);
  to->set_mod_revision(from.mod_revision);
  to->set_version(from.version);
  to->set_lease(from.lease);
}

Result<bool> load_value(const Source& source, int64_t revision, const Found& found, KeyValuePtr* kv) {
  *kv = source.cache.get(found.id);
  if (*kv != nullptr) return true;
  TRY_ASSIGN(const bool there, source.rows.load(revision, {&found.id, 1}, false,
                                                [&](size_t, const store::RowView& row) { *kv = make_key_value(row); }));
  if (there && found.newest) source.cache.put(found.id, *kv, true);
  return there;
}

Result<bool> execute_range(const Source& source, int64_t revision, const RangeRequest& request,
                           RangeResponse* response) {
  if (!RangeRequest::SortOrder_IsValid(request.sort_order()) ||
      !RangeRequest::SortTarget_IsValid(request.sort_target())) {
    return fail(Code::kInvalidArgument, kErrorSortOption);
  }
  const int64_t limit = request.limit();
  const bool by_value = request.sort_target() == RangeRequest::VALUE;
  const bool answer_from_index = request.keys_only() && !by_value;

  // One more than the limit where that is enough to know whether there is more.
  int64_t keep_max = -1;
  if (request.count_only()) {
    keep_max = 0;
  } else if (limit > 0 && limit_cuts_first(request)) {
    keep_max = limit < INT64_MAX ? limit + 1 : limit;
  }
  Collected collected;
  if (!collect(source.index, revision, request, keep_max, answer_from_index, &collected)) return false;
  response->set_count(collected.count);
  if (request.count_only()) return true;

  std::vector<Item>& items = collected.items;
  if (has_filters(request) || answer_from_index || request.sort_target() == RangeRequest::VERSION ||
      request.sort_target() == RangeRequest::CREATE) {
    TRY_ASSIGN(const bool there, complete_heads(source, revision, &items));
    if (!there) return false;
  }
  filter(request, &items);
  sort_items(request, &items);
  response->set_more(limit > 0 && static_cast<int64_t>(items.size()) > limit);
  if (response->more() && !by_value) items.resize(static_cast<size_t>(limit));

  if (answer_from_index) {
    fill_keys(collected, response);
    return true;
  }
  TRY_ASSIGN(const bool there, fill_values(source, revision, items, response));
  if (!there) return false;
  if (by_value) {
    sort_by(response->mutable_kvs()->pointer_begin(), response->mutable_kvs()->pointer_end(),
            request.sort_order() == RangeRequest::DESCEND,
            [](const mvccpb::KeyValue* kv) { return std::string_view(kv->value()); });
    cut(limit, response);
    if (request.keys_only()) {
      for (mvccpb::KeyValue& kv : *response->mutable_kvs()) kv.clear_value();
    }
  }
  return true;
}

}  // namespace mvcc
