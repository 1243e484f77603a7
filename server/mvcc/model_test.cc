// Random work against a model that keeps everything and thinks as simply as can be: each key's versions in a list.
// Puts, deletes of keys and ranges, several revisions in a batch and several writes in a revision, reads at every
// revision that is left, failing commits, compaction in slices with failing commits and restarts between them.
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "mvcc/key_index.h"
#include "mvcc/member_test.h"

namespace mvcc {
namespace {

using etcdserverpb::RangeRequest;
using etcdserverpb::RangeResponse;

struct Version {
  Revision at;
  bool deleted = false;
  KeyValue kv;
};

struct Model {
  std::map<std::string, std::vector<Version>> keys;
  int64_t revision = 1;
  int64_t compacted = -1;

  const KeyValue* get(const std::string& key, int64_t at) const {
    const auto found = keys.find(key);
    if (found == keys.end()) return nullptr;
    const Version* last = nullptr;
    for (const Version& version : found->second) {
      if (version.at.main <= at) last = &version;
    }
    return last != nullptr && !last->deleted ? &last->kv : nullptr;
  }
  std::vector<const KeyValue*> list(const std::string& key, const std::string& end, int64_t at) const {
    std::vector<const KeyValue*> out;
    for (const auto& [name, versions] : keys) {
      if (!Interval::of(key, end).reaches(name) || name < key) continue;
      if (const KeyValue* kv = get(name, at)) out.push_back(kv);
    }
    return out;
  }
  void put(const std::string& key, const std::string& value, int64_t lease, Revision at) {
    const KeyValue* before = get(key, at.main);
    keys[key].push_back(
        {at,
         false,
         {key, value, before ? before->create_revision : at.main, at.main, before ? before->version + 1 : 1, lease}});
  }
  void erase(const std::string& key, Revision at) { keys[key].push_back({at, true, {key, "", 0, at.main, 0, 0}}); }

  uint64_t hash() const {
    uint64_t sum = 0;
    for (const KeyValue* kv : list("", std::string(1, '\0'), revision)) sum += content_hash_of(*kv);
    return sum;
  }
  // Ids of the rows that a finished compaction at `compacted` leaves.
  std::set<store::RowId> rows_left(int64_t at) const {
    std::set<store::RowId> out;
    for (const auto& [key, versions] : keys) {
      const Version* visible = nullptr;
      for (const Version& version : versions) {
        if (version.at.main <= at) visible = &version;
      }
      for (const Version& version : versions) {
        if (version.at.main >= at || (&version == visible && !version.deleted)) out.insert(row_id(version.at));
      }
    }
    return out;
  }

  // etcd's steps one after the other, literally.
  std::string range(const RangeRequest& request, RangeResponse* response) const {
    if (request.revision() > revision) return kErrorFutureRevision;
    const int64_t at = request.revision() > 0 ? request.revision() : revision;
    if (at < compacted) return kErrorCompacted;
    std::vector<const KeyValue*> kvs = list(request.key(), request.range_end(), at);
    response->set_count(static_cast<int64_t>(kvs.size()));
    if (request.count_only()) return "";
    const bool filters = request.min_mod_revision() || request.max_mod_revision() || request.min_create_revision() ||
                         request.max_create_revision();
    const bool default_order =
        request.sort_order() == RangeRequest::NONE ||
        (request.sort_target() == RangeRequest::KEY && request.sort_order() == RangeRequest::ASCEND);
    const auto limit = static_cast<size_t>(std::max<int64_t>(request.limit(), 0));
    if (default_order && !filters && limit > 0 && kvs.size() > limit + 1) kvs.resize(limit + 1);
    if (request.max_mod_revision())
      std::erase_if(kvs, [&](auto* kv) { return kv->mod_revision > request.max_mod_revision(); });
    if (request.min_mod_revision())
      std::erase_if(kvs, [&](auto* kv) { return kv->mod_revision < request.min_mod_revision(); });
    if (request.max_create_revision())
      std::erase_if(kvs, [&](auto* kv) { return kv->create_revision > request.max_create_revision(); });
    if (request.min_create_revision())
      std::erase_if(kvs, [&](auto* kv) { return kv->create_revision < request.min_create_revision(); });
    const auto less = [&](const KeyValue* a, const KeyValue* b) {
      if (request.sort_order() == RangeRequest::DESCEND) std::swap(a, b);
      switch (request.sort_target()) {
        case RangeRequest::VERSION:
          return a->version < b->version;
        case RangeRequest::CREATE:
          return a->create_revision < b->create_revision;
        case RangeRequest::MOD:
          return a->mod_revision < b->mod_revision;
        case RangeRequest::VALUE:
          return a->value < b->value;
        default:
          return a->key < b->key;
      }
    };
    std::stable_sort(kvs.begin(), kvs.end(), less);
    if (limit > 0 && kvs.size() > limit) {
      kvs.resize(limit);
      response->set_more(true);
    }
    for (const KeyValue* kv : kvs) {
      auto* to = response->add_kvs();
      to->set_key(kv->key);
      if (!request.keys_only()) to->set_value(kv->value);
      to->set_create_revision(kv->create_revision);
      to->set_mod_revision(kv->mod_revision);
      to->set_version(kv->version);
      to->set_lease(kv->lease);
    }
    return "";
  }
};

bool same(const KeyValuePtr& kv, const KeyValue* model) {
  if (kv == nullptr || model == nullptr) return (kv == nullptr) == (model == nullptr);
  return kv->key == model->key && kv->value == model->value && kv->create_revision == model->create_revision &&
         kv->mod_revision == model->mod_revision && kv->version == model->version && kv->lease == model->lease;
}

class RandomWork : public testing::TestWithParam<std::tuple<StoreKind, uint64_t>> {
 protected:
  RandomWork() : random_(seed()), member_(random_options(), std::get<0>(GetParam())) {}

  static uint64_t seed() { return std::get<1>(GetParam()); }

  int64_t below(int64_t end) { return std::uniform_int_distribution<int64_t>(0, end - 1)(random_); }
  bool one_in(int64_t n) { return below(n) == 0; }
  Options random_options() {
    constexpr uint64_t kCaches[] = {0, 16 * 1024, 1 << 20};
    Options options;
    options.cache_bytes = kCaches[below(3)];
    if (one_in(2)) {
      options.compaction_visited_keys_max = static_cast<int>(1 + below(8));
      options.compaction_noted_rows_max = static_cast<size_t>(1 + below(8));
      options.compaction_heap_rows_max = static_cast<size_t>(1 + below(12));
    }
    return options;
  }
  std::string key() {
    static const std::string kKeys[] = {"a", "aa", "ab",   "b",        "b/1", "b/2", "b/3", "c", std::string("c\0", 2),
                                        "d", "e",  "\xff", "\xff\xff", "k1",  "k2",  "k3"};
    return kKeys[below(std::size(kKeys))];
  }
  std::string end_of(const std::string& from) {
    if (one_in(3)) return "";
    if (one_in(4)) return std::string(1, '\0');
    if (one_in(3)) return range_end_of_prefix(from);
    return key();
  }
  std::string value() { return std::string(static_cast<size_t>(below(40)), static_cast<char>('a' + below(26))); }

  RangeRequest request(int64_t revision) {
    RangeRequest r;
    r.set_key(one_in(3) ? std::string(1, '\0') : key());
    r.set_range_end(r.key() == std::string(1, '\0') ? r.key() : end_of(r.key()));
    if (!one_in(3)) r.set_revision(below(revision + 2));
    if (one_in(2)) r.set_limit(below(6) - 1);
    if (one_in(2)) r.set_sort_order(static_cast<RangeRequest::SortOrder>(below(3)));
    if (one_in(2)) r.set_sort_target(static_cast<RangeRequest::SortTarget>(below(5)));
    r.set_keys_only(one_in(4));
    r.set_count_only(one_in(6));
    if (one_in(6)) r.set_min_mod_revision(below(revision + 1));
    if (one_in(6)) r.set_max_mod_revision(below(revision + 1));
    if (one_in(6)) r.set_min_create_revision(below(revision + 1));
    if (one_in(6)) r.set_max_create_revision(below(revision + 1));
    return r;
  }
  template <class View>
  void check_range(View& view, const Model& model) {
    const RangeRequest r = request(model.revision);
    RangeResponse expected;
    RangeResponse actual;
    const std::string error = model.range(r, &expected);
    const Status status = view.range(r, &actual);
    ASSERT_EQ(status ? "" : status.error().message, error) << r.DebugString();
    if (!status) return;
    std::string difference;
    google::protobuf::util::MessageDifferencer differ;
    differ.ReportDifferencesToString(&difference);
    ASSERT_TRUE(differ.Compare(expected, actual)) << r.DebugString() << difference;
  }

  void write_once(Writer& writer, Model& model, int64_t main) {
    const Revision at{main, writer.writes_in_revision()};
    const std::string k = key();
    const KeyValue* before = model.get(k, main);
    if (!one_in(3)) {
      const std::string v = value();
      const int64_t lease = below(3);
      const bool want = one_in(2);
      const auto previous = writer.put(k, v, lease, want);
      ASSERT_TRUE(previous);
      ASSERT_TRUE(same(*previous, want ? before : nullptr));
      model.put(k, v, lease, at);
    } else {
      const std::string end = end_of(k);
      const std::vector<const KeyValue*> gone = model.list(k, end, main);
      std::vector<KeyValuePtr> previous;
      std::vector<std::pair<std::string, int64_t>> told;
      const auto erased = writer.erase(k, end, &previous,
                                       [&](std::string_view name, int64_t lease) { told.emplace_back(name, lease); });
      ASSERT_TRUE(erased);
      ASSERT_EQ(*erased, static_cast<int64_t>(gone.size()));
      ASSERT_EQ(previous.size(), gone.size());
      ASSERT_EQ(told.size(), gone.size());
      std::vector<std::string> names;
      for (size_t i = 0; i < gone.size(); ++i) {
        ASSERT_TRUE(same(previous[i], gone[i]));
        ASSERT_EQ(told[i], std::pair(gone[i]->key, gone[i]->lease));
        names.push_back(gone[i]->key);
      }
      for (size_t i = 0; i < names.size(); ++i) model.erase(names[i], {main, at.sub + static_cast<int64_t>(i)});
    }
  }

  void check_staged(Writer& writer, const Model& model) {
    check_range(writer, model);
    const std::string k = key();
    const auto kv = writer.get(k);
    ASSERT_TRUE(kv);
    ASSERT_TRUE(same(*kv, model.get(k, model.revision)));
    const std::string end = end_of(k);
    const auto list = model.list(k, end, model.revision);
    ASSERT_EQ(writer.count(k, end, 100), static_cast<int64_t>(list.size()));
    ASSERT_EQ(writer.count(k, end, 1), std::min<int64_t>(2, static_cast<int64_t>(list.size())));
    size_t i = 0;
    writer.heads(k, end, [&](const Writer::Head& head) {
      EXPECT_LT(i, list.size());
      const KeyValue& kv = *list[i++];
      EXPECT_EQ(head.key, kv.key);
      EXPECT_EQ(head.create_revision, kv.create_revision);
      EXPECT_EQ(head.mod_revision, kv.mod_revision);
      EXPECT_EQ(head.version, kv.version);
      EXPECT_EQ(head.lease, kv.lease);
      return true;
    });
    ASSERT_EQ(i, list.size());
    ASSERT_EQ(member_.mvcc().content_hash(), model.hash());
  }

  void check_events(const EventBatch& batch, const Model& model, int64_t main) {
    ASSERT_EQ(batch.revision, main);
    std::map<int64_t, const Version*> expected;
    for (const auto& [key, versions] : model.keys) {
      for (const Version& version : versions) {
        if (version.at.main == main) expected[version.at.sub] = &version;
      }
    }
    ASSERT_EQ(batch.events.size(), expected.size());
    for (size_t i = 0; i < batch.events.size(); ++i) {
      const Version& version = *expected[static_cast<int64_t>(i)];
      ASSERT_EQ(batch.events[i].is_delete, version.deleted);
      ASSERT_TRUE(same(batch.events[i].kv, &version.kv));
    }
  }

  void batch() {
    Model model = model_;
    member_.fail_commit = one_in(8);
    const int64_t revisions = below(4);
    const auto bystander = member_.mvcc().reader();
    const bool committed = member_.batch([&](Writer& writer) {
      for (int64_t i = 0; i < revisions; ++i) {
        const int64_t main = model.revision + 1;
        writer.begin_revision();
        for (int64_t writes = below(5); writes > 0; --writes) {
          ASSERT_NO_FATAL_FAILURE(write_once(writer, model, main));
          if (writer.writes_in_revision() > 0) model.revision = main;
          ASSERT_EQ(writer.revision(), model.revision);
          ASSERT_NO_FATAL_FAILURE(check_staged(writer, model));
        }
        const EventBatch events = writer.end_revision();
        if (model.revision == main) {
          ASSERT_NO_FATAL_FAILURE(check_events(events, model, main));
        } else {
          ASSERT_TRUE(events.events.empty());
          ASSERT_EQ(events.revision, model.revision);
        }
      }
      // What is staged is not there for readers.
      ASSERT_NO_FATAL_FAILURE(check_range(*bystander, model_));
    });
    ASSERT_EQ(committed, !member_.fail_commit);
    member_.fail_commit = false;
    if (committed) model_ = model;
    ASSERT_EQ(member_.mvcc().content_hash(), model_.hash());
    ASSERT_EQ(member_.mvcc().key_count(),
              static_cast<int64_t>(model_.list("", std::string(1, '\0'), model_.revision).size()));
  }

  void compact() {
    if (finished_ && one_in(3) && model_.compacted < model_.revision) {
      const int64_t at = std::max<int64_t>(0, model_.compacted + 1) +
                         below(model_.revision - std::max<int64_t>(0, model_.compacted + 1) + 1);
      member_.publish_compaction(at);
      model_.compacted = at;
      finished_ = false;
    }
    member_.fail_commit = one_in(5);
    if (const auto done = member_.compact_step(static_cast<int>(1 + below(6)))) {
      if (*done && !finished_) {
        std::set<store::RowId> rows;
        for (const store::Row& row : member_.rows()) rows.insert(row.id);
        ASSERT_EQ(rows, model_.rows_left(model_.compacted));
      }
      finished_ = finished_ || *done;
    }
    member_.fail_commit = false;
  }

  void check_history() {
    const int64_t from = below(model_.revision + 2);
    const int64_t to = below(model_.revision + 2);
    const int64_t stop_after = below(6);
    std::vector<EventBatch> batches;
    const auto wanted = [](std::string_view key) { return key != "b"; };
    const Status status = member_.mvcc().reader()->history(from, to, wanted, [&](EventBatch batch) {
      batches.push_back(std::move(batch));
      return static_cast<int64_t>(batches.size()) != stop_after;
    });
    if (std::max<int64_t>(from, 1) < model_.compacted) {
      ASSERT_FALSE(status);
      ASSERT_EQ(status.error(), (Error{Code::kOutOfRange, kErrorCompacted}));
      return;
    }
    ASSERT_TRUE(status);
    std::map<Revision, const Version*> expected;
    for (const auto& [key, versions] : model_.keys) {
      for (const Version& version : versions) {
        if (key != "b" && version.at.main >= from && version.at.main <= to) expected[version.at] = &version;
      }
    }
    auto next = expected.begin();
    for (const EventBatch& batch : batches) {
      for (const Event& event : batch.events) {
        ASSERT_NE(next, expected.end());
        ASSERT_EQ(next->first.main, batch.revision);
        ASSERT_EQ(event.is_delete, next->second->deleted);
        ASSERT_TRUE(same(event.kv, &next->second->kv));
        ++next;
      }
    }
    if (static_cast<int64_t>(batches.size()) != stop_after) {
      ASSERT_EQ(next, expected.end());
    }
  }

  void reopen() {
    member_.reopen(random_options());
    ASSERT_EQ(member_.mvcc().published().revision, model_.revision);
    ASSERT_EQ(member_.mvcc().published().compacted, model_.compacted);
    std::vector<std::pair<std::string, int64_t>> leased;
    for (const KeyValue* kv : model_.list("", std::string(1, '\0'), model_.revision)) {
      if (kv->lease != 0) leased.emplace_back(kv->key, kv->lease);
    }
    ASSERT_EQ(member_.keys_with_lease, leased);
  }

  std::mt19937_64 random_;
  Member member_;
  Model model_;
  bool finished_ = true;  // the last compaction
};

TEST_P(RandomWork, MatchesTheModel) {
  for (int step = 0; step < 250; ++step) {
    SCOPED_TRACE("seed " + std::to_string(seed()) + " step " + std::to_string(step));
    ASSERT_NO_FATAL_FAILURE(batch());
    ASSERT_NO_FATAL_FAILURE(compact());
    if (one_in(25)) {
      ASSERT_NO_FATAL_FAILURE(reopen());
    }
    const auto reader = member_.mvcc().reader();
    for (int i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(check_range(*reader, model_));
    const std::string k = key();
    const int64_t at = below(model_.revision + 1);
    const auto kv = reader->get(k, at);
    if (at > 0 && at < model_.compacted) {
      ASSERT_FALSE(kv);
      ASSERT_EQ(kv.error().message, kErrorCompacted);
    } else {
      ASSERT_TRUE(kv);
      ASSERT_TRUE(same(*kv, model_.get(k, at > 0 ? at : model_.revision)));
    }
    ASSERT_NO_FATAL_FAILURE(check_history());
  }
  // At every revision that is left.
  for (int64_t at = std::max<int64_t>(1, model_.compacted); at <= model_.revision; ++at) {
    std::vector<std::string> expected;
    for (const KeyValue* kv : model_.list("", std::string(1, '\0'), at)) expected.push_back(kv->key + "=" + kv->value);
    ASSERT_EQ(member_.keys_at(at), expected) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Fake, RandomWork,
                         testing::Combine(testing::Values(StoreKind::kFake), testing::Range<uint64_t>(1, 41)));
INSTANTIATE_TEST_SUITE_P(Real, RandomWork,
                         testing::Combine(testing::Values(StoreKind::kReal), testing::Range<uint64_t>(101, 121)));

}  // namespace
}  // namespace mvcc
