#include "mvcc/mvcc.h"

#include <gtest/gtest.h>

#include "mvcc/member_test.h"

namespace mvcc {
namespace {

using Strings = std::vector<std::string>;

std::string value_of(const Result<KeyValuePtr>& kv) {
  if (!kv) return kv.error().message;
  return *kv == nullptr ? "(absent)" : (*kv)->value;
}

TEST(Mvcc, EmptyStoreIsAtRevisionOne) {
  Member member;
  EXPECT_EQ(member.mvcc().published().revision, 1);
  EXPECT_EQ(member.mvcc().published().compacted, -1);
  EXPECT_EQ(member.mvcc().content_hash(), 0u);
  EXPECT_EQ(member.put("a", "1"), 2);
}

TEST(Mvcc, DeleteThenPutStartsAtVersionOne) {
  Member member;
  member.put("a", "1");
  member.put("a", "2");
  member.erase("a");
  member.put("a", "3");
  const auto kv = member.mvcc().reader()->get("a", 0);
  ASSERT_TRUE(kv && *kv);
  EXPECT_EQ((*kv)->version, 1);
  EXPECT_EQ((*kv)->create_revision, 5);
  EXPECT_EQ(value_of(member.mvcc().reader()->get("a", 3)), "2");
  EXPECT_EQ(value_of(member.mvcc().reader()->get("a", 4)), "(absent)");
}

TEST(Mvcc, OpenTellsLiveKeysWithALease) {
  Member member;
  member.put("b", "", 7);
  member.put("a", "", 9);
  member.put("gone", "", 7);
  member.erase("gone");
  member.put("changed", "", 7);
  member.put("changed", "", 0);
  member.reopen();
  EXPECT_EQ(member.keys_with_lease, (std::vector<std::pair<std::string, int64_t>>{{"a", 9}, {"b", 7}}));
  EXPECT_EQ(member.mvcc().key_count(), 3);
}

TEST(Writer, RefusesMoreWritesThanARevisionHasRoomFor) {
  Member member(0);
  member.put("x1", "");
  member.put("x2", "");
  member.fake().keep_rows = false;
  member.write([&](Writer& writer) {
    for (int64_t i = 0; i < kSubMax; ++i) ASSERT_TRUE(writer.put("k", "", 0, false));
    // One place is left; two keys do not fit, and then neither is gone.
    const auto two = writer.erase("x", "y", nullptr, [](std::string_view, int64_t) { FAIL(); });
    ASSERT_FALSE(two);
    EXPECT_EQ(two.error(), (Error{Code::kInvalidArgument, kErrorTooManyOperations}));
    EXPECT_EQ(writer.writes_in_revision(), kSubMax);
    EXPECT_EQ(writer.count("x", "y", 10), 2);
    EXPECT_EQ(writer.erase("x1", "", nullptr, nullptr).value(), 1);
    const auto put = writer.put("k", "", 0, false);
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error(), (Error{Code::kInvalidArgument, kErrorTooManyOperations}));
    EXPECT_EQ(writer.erase("nothing", "", nullptr, nullptr).value(), 0);
  });
}

TEST(Writer, FailedRowIsRolledBackWithItsBatch) {
  Member member;
  for (const char* key : {"a", "b", "c"}) member.put(key, key);
  const uint64_t hash = member.mvcc().content_hash();
  auto txn = member.begin();
  Writer& writer = member.mvcc().begin(*txn);
  writer.begin_revision();
  member.fake().fail_put_after = 2;
  const auto erased = writer.erase("a", "z", nullptr, nullptr);
  ASSERT_FALSE(erased);
  EXPECT_EQ(erased.error().code, Code::kResourceExhausted);
  member.mvcc().rollback();
  member.fake().fail_put_after = -1;
  EXPECT_EQ(member.mvcc().content_hash(), hash);
  EXPECT_EQ(member.keys_at(0), (Strings{"a=a", "b=b", "c=c"}));
  EXPECT_EQ(member.erase("a", "z"), 5);
  EXPECT_EQ(member.mvcc().key_count(), 0);
  EXPECT_EQ(member.mvcc().content_hash(), 0u);
}

TEST(Writer, RolledBackContentIsNotServedUnderItsReusedRevision) {
  Member member;
  member.fail_commit = true;
  member.put("a", "never");
  member.fail_commit = false;
  EXPECT_EQ(member.mvcc().published().revision, 1);
  EXPECT_EQ(member.keys_at(0), Strings{});
  EXPECT_EQ(member.put("b", "real"), 2);
  EXPECT_EQ(value_of(member.mvcc().reader()->get("b", 0)), "real");
  EXPECT_EQ(value_of(member.mvcc().reader()->get("a", 0)), "(absent)");
}

TEST(Writer, SeesACompactionOfItsOwnBatch) {
  Member member;
  member.put("a", "1");
  member.put("a", "2");
  member.put("a", "3");
  etcdserverpb::RangeRequest request;
  request.set_key("a");
  request.set_revision(2);
  etcdserverpb::RangeResponse response;
  member.fail_commit = true;
  for (int attempt = 0; attempt < 2; ++attempt) {
    member.batch([&](Writer& writer) {
      EXPECT_TRUE(writer.range(request, &response)) << "a rollback forgets it";
      writer.set_compacted(3);
      const Status status = writer.range(request, &response);
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error(), (Error{Code::kOutOfRange, kErrorCompacted}));
    });
    EXPECT_EQ(member.mvcc().published().compacted, attempt == 0 ? -1 : 3);
    member.fail_commit = false;
  }
}

TEST(Writer, RangeSeesItsOwnRevisionOnlyOnceSomethingIsWritten) {
  Member member;
  member.put("a", "1");
  etcdserverpb::RangeRequest request;
  request.set_key("a");
  request.set_revision(3);
  etcdserverpb::RangeResponse response;
  member.write([&](Writer& writer) {
    EXPECT_EQ(writer.range(request, &response).error().message, kErrorFutureRevision);
    EXPECT_EQ(writer.revision(), 2);
    EXPECT_TRUE(writer.put("a", "2", 0, false));
    EXPECT_EQ(writer.revision(), 3);
    ASSERT_TRUE(writer.range(request, &response));
    EXPECT_EQ(response.kvs(0).value(), "2");
  });
}

TEST(Reader, StaysAtItsStepWhileOthersArePublished) {
  for (const uint64_t cache_bytes : {uint64_t{0}, uint64_t{1} << 20}) {
    Member member(cache_bytes);
    member.put("a", "old");
    member.put("gone", "still");
    const auto reader = member.mvcc().reader();
    member.put("a", "new");
    member.put("b", "new");
    member.erase("gone");
    EXPECT_EQ(reader->at().revision, 3);
    EXPECT_EQ(value_of(reader->get("a", 0)), "old");
    EXPECT_EQ(value_of(reader->get("b", 0)), "(absent)");
    EXPECT_EQ(value_of(reader->get("gone", 0)), "still");
    EXPECT_EQ(value_of(reader->get("a", 4)), kErrorFutureRevision);
  }
}

TEST(Reader, CommittedButUnpublishedIsInvisible) {
  Member member(0);
  member.put("a", "old");
  auto txn = member.begin();
  Writer& writer = member.mvcc().begin(*txn);
  writer.begin_revision();
  ASSERT_TRUE(writer.put("a", "new", 0, false));
  writer.end_revision();
  store::Meta meta = member.store().meta();
  meta.revision = 3;
  ASSERT_TRUE(txn->set_meta(meta));
  ASSERT_TRUE(txn->commit());
  const auto reader = member.mvcc().reader();
  EXPECT_EQ(value_of(reader->get("a", 0)), "old");
  ASSERT_TRUE(reader->history(
      1, 100, [](std::string_view) { return true; },
      [](EventBatch batch) {
        EXPECT_EQ(batch.revision, 2);
        return true;
      }));
  member.mvcc().publish({.revision = 3, .compacted = -1});
  EXPECT_EQ(value_of(member.mvcc().reader()->get("a", 0)), "new");
}

// The three places in which a compaction can overtake a reader: rows gone before its view is opened, index forgotten
// before its look-up, and both after its view was opened.
TEST(Reader, MovesOnOrSaysCompactedWhenACompactionOvertakesIt) {
  for (const bool view_first : {false, true}) {
    for (const bool index_forgot : {false, true}) {
      Member member(0);
      member.put("a", "1");
      member.put("b", "1");
      const auto latest = member.mvcc().reader();
      const auto asked = member.mvcc().reader();
      if (view_first) {
        EXPECT_EQ(value_of(latest->get("b", 0)), "1");
        EXPECT_EQ(value_of(asked->get("b", 0)), "1");
      }
      member.put("a", "2");
      member.erase("b");
      member.put("c", "2");
      member.compact_all(6);
      if (index_forgot) member.put("d", "2");
      SCOPED_TRACE(testing::Message() << view_first << index_forgot);

      const std::string old = value_of(asked->get("a", 3));
      EXPECT_TRUE(old == kErrorCompacted || (view_first && !index_forgot && old == "1")) << old;
      const std::string now = value_of(latest->get("a", 0));
      if (now == "1") {
        EXPECT_TRUE(view_first && !index_forgot);
        EXPECT_EQ(latest->at().revision, 3);
      } else {
        EXPECT_EQ(now, "2");
        EXPECT_EQ(latest->at().revision, index_forgot ? 7 : 6);
        EXPECT_EQ(value_of(latest->get("b", 0)), "(absent)");
      }
    }
  }
}

TEST(Reader, RangeThatNeedsNoRowIsOvertakenToo) {
  Member member(0);
  member.put("a", "1");
  member.put("b", "1");
  const auto reader = member.mvcc().reader();
  member.put("a", "2");
  member.erase("b");
  member.put("c", "2");
  member.compact_all(6);
  member.put("d", "2");  // by now the index has forgotten what the reader's step saw
  etcdserverpb::RangeRequest request;
  request.set_key("a");
  request.set_range_end("z");
  request.set_keys_only(true);
  etcdserverpb::RangeResponse response;
  request.set_revision(3);
  EXPECT_EQ(reader->range(request, &response).error(), (Error{Code::kOutOfRange, kErrorCompacted}));
  request.set_revision(0);
  ASSERT_TRUE(reader->range(request, &response));
  EXPECT_EQ(reader->at().revision, 7);
  EXPECT_EQ(response.count(), 3);
  ASSERT_EQ(response.kvs_size(), 3);
  EXPECT_EQ(response.kvs(2).key(), "d");
}

TEST(Reader, HistoryBeginsAtTheCompactedRevision) {
  Member member;
  member.put("a", "1");
  member.erase("a");
  member.put("b", "1");
  member.compact_all(3);
  const auto all = [](std::string_view) { return true; };
  std::vector<int64_t> seen;
  const auto note = [&](EventBatch batch) {
    seen.push_back(batch.revision);
    EXPECT_EQ(batch.events.at(0).is_delete, batch.revision == 3);
    return true;
  };
  const auto reader = member.mvcc().reader();
  EXPECT_EQ(reader->history(2, 9, all, note).error(), (Error{Code::kOutOfRange, kErrorCompacted}));
  ASSERT_TRUE(reader->history(3, 9, all, note));
  EXPECT_EQ(seen, (std::vector<int64_t>{3, 4}));
}

TEST(Reader, RowMissingForNoReasonIsDataLoss) {
  Member member(0);
  for (const char* key : {"a", "b", "c"}) member.put(key, key);
  member.fake().lose_row(row_id({3, 0}));
  const auto kv = member.mvcc().reader()->get("b", 0);
  ASSERT_FALSE(kv);
  EXPECT_EQ(kv.error().code, Code::kDataLoss);
  EXPECT_EQ(member.keys_at(0).size(), 1u) << "the text of the error";
  EXPECT_EQ(value_of(member.mvcc().reader()->get("c", 0)), "c");
}

TEST(Reader, WhatWasWrittenOrReadIsServedWithoutTheStore) {
  Member member;
  member.put("a", "1");
  member.put("a", "2");
  member.fake().rows_read = 0;
  EXPECT_EQ(value_of(member.mvcc().reader()->get("a", 0)), "2");
  EXPECT_EQ(member.fake().rows_read, 0);
  member.reopen();
  member.fake().rows_read = 0;
  EXPECT_EQ(value_of(member.mvcc().reader()->get("a", 0)), "2");
  EXPECT_EQ(member.fake().rows_read, 1);
  EXPECT_EQ(value_of(member.mvcc().reader()->get("a", 0)), "2");
  EXPECT_EQ(member.fake().rows_read, 1);
}

TEST(Writer, ReplacedValuesLeaveTheCacheToOthers) {
  Member member;
  member.put("once", "1");
  EXPECT_EQ(value_of(member.mvcc().reader()->get("once", 0)), "1");
  member.fake().keep_rows = false;
  for (int i = 0; i < 200; ++i) {
    member.batch([](Writer& writer) {
      for (int n = 0; n < 100; ++n) {  // in all some 4 times what the cache holds
        writer.begin_revision();
        EXPECT_TRUE(writer.put("again", std::string(100, 'v'), 0, false));
        writer.end_revision();
      }
    });
  }
  member.fake().rows_read = 0;
  EXPECT_EQ(value_of(member.mvcc().reader()->get("once", 0)), "1");
  EXPECT_EQ(member.fake().rows_read, 0);
}

TEST(ContentHash, IsPinned) {
  // A change of these breaks the comparison with members and files of the same format version.
  EXPECT_EQ(content_hash_of({}), 12560555734480086537u);
  EXPECT_EQ(content_hash_of({.key = "key",
                             .value = "a value of more than sixteen bytes",
                             .create_revision = 2,
                             .mod_revision = 5,
                             .version = 3,
                             .lease = -7}),
            5409531235061040266u);
}

TEST(ContentHash, IsTheSumOverTheLatestKeysHoweverItCameAbout) {
  Member one;
  Member other(0);
  for (Member* member : {&one, &other}) {
    member->put("a", "1", 5);
    member->put("b", "1");
    member->put("a", "2", 6);
    if (member == &other) {
      member->reopen();  // the hashes of what is replaced now must be read from the store
      member->compact_all(3);
    }
    member->put("a", "3");
    member->erase("b");
    member->put("c", "1");
  }
  uint64_t sum = 0;
  for (const char* key : {"a", "c"}) sum += content_hash_of(**one.mvcc().reader()->get(key, 0));
  EXPECT_EQ(one.mvcc().content_hash(), sum);
  EXPECT_EQ(other.mvcc().content_hash(), sum);
  other.reopen();
  EXPECT_EQ(other.mvcc().content_hash(), sum);
}

}  // namespace
}  // namespace mvcc
