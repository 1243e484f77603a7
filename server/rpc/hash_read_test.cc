#include "rpc/hash_read.h"

#include "rpc/fake_member_test.h"

namespace rpc {
namespace {

struct Hashed {
  uint32_t hash = 0;
  int64_t compacted = 0;
  int64_t revision = 0;
  friend bool operator==(const Hashed&, const Hashed&) = default;
};

Result<Hashed> hash_of(mvcc::Member& data, int64_t revision = 0, int* pieces = nullptr) {
  KvHash hash(revision);
  while (true) {
    if (pieces != nullptr) ++*pieces;
    TRY_ASSIGN(const bool done, hash.next(*data.mvcc().reader()));
    if (done) return Hashed{hash.hash(), hash.compacted(), hash.revision()};
  }
}

// Revisions 2 to 6.
void fill(mvcc::Member& data, const std::string& last = "5") {
  data.put("a", "1");
  data.put("b", "2", 77);
  data.put("a", "3");
  data.erase("b");
  data.put("c", last);
}

TEST(KvHash, IsEqualForEqualContentAndDiffersOtherwise) {
  mvcc::Member one;
  mvcc::Member two;
  fill(one);
  fill(two);
  const auto hashed = hash_of(one);
  ASSERT_TRUE(hashed);
  EXPECT_EQ(hashed->compacted, -1);
  EXPECT_EQ(hashed->revision, 6);
  EXPECT_EQ(*hashed, *hash_of(two));
  for (int64_t revision = 1; revision <= 6; ++revision) {
    EXPECT_EQ(*hash_of(one, revision), *hash_of(two, revision));
    if (revision == 1) continue;
    EXPECT_NE(hash_of(one, revision)->hash, hash_of(one, revision - 1)->hash) << revision;
  }
  mvcc::Member other;
  fill(other, "6");
  EXPECT_NE(hash_of(other)->hash, hashed->hash);
  EXPECT_EQ(hash_of(other, 5)->hash, hash_of(one, 5)->hash) << "they differ from revision 6 on";
  mvcc::Member lease;
  lease.put("a", "1");
  lease.put("b", "2", 78);
  EXPECT_NE(hash_of(lease)->hash, hash_of(one, 3)->hash);
}

TEST(KvHash, SeesWhatWasUndoneLater) {
  mvcc::Member one;
  mvcc::Member two;
  one.put("a", "1");
  two.put("a", "2");
  for (mvcc::Member* data : {&one, &two}) data->erase("a");
  EXPECT_NE(hash_of(one)->hash, hash_of(two)->hash);
  one.publish_compaction(3);
  two.publish_compaction(3);
  EXPECT_EQ(hash_of(one)->hash, hash_of(two)->hash) << "that history is no more";
}

TEST(KvHash, DoesNotDependOnHowFarTheRemovalGot) {
  mvcc::Member removed;
  mvcc::Member only_published;
  fill(removed);
  fill(only_published);
  removed.compact_all(4);
  only_published.publish_compaction(4);
  ASSERT_LT(removed.rows().size(), only_published.rows().size());
  for (const int64_t revision : {0, 4, 5, 6}) {
    const auto hashed = hash_of(removed, revision);
    ASSERT_TRUE(hashed) << revision;
    EXPECT_EQ(*hashed, *hash_of(only_published, revision));
    EXPECT_EQ(hashed->compacted, 4);
  }
  // The same key-values at the compacted revision with other changes after it.
  EXPECT_NE(hash_of(removed, 4)->hash, hash_of(removed, 5)->hash);
}

TEST(KvHash, RefusesRevisionsThatAreNotThere) {
  mvcc::Member data;
  fill(data);
  EXPECT_EQ(hash_of(data, 7).error(),
            (Error{Code::kOutOfRange, "etcdserver: mvcc: required revision is a future revision"}));
  data.compact_all(4);
  EXPECT_EQ(hash_of(data, 3).error(),
            (Error{Code::kOutOfRange, "etcdserver: mvcc: required revision has been compacted"}));
  EXPECT_TRUE(hash_of(data, 4));
  EXPECT_EQ(hash_of(data, -1)->revision, 6) << "as etcd: the latest";
}

TEST(KvHash, AnEmptyStoreHasOne) {
  mvcc::Member one;
  mvcc::Member two;
  ASSERT_TRUE(hash_of(one));
  EXPECT_EQ(*hash_of(one), *hash_of(two));
  EXPECT_EQ(hash_of(one)->revision, 1);
  one.publish_compaction(0);
  EXPECT_EQ(hash_of(one)->compacted, 0);
}

// One revision each, in one batch.
void put_many(mvcc::Member& data, int keys, const std::string& value) {
  data.batch([&](mvcc::Writer& writer) {
    for (int i = 0; i < keys; ++i) {
      writer.begin_revision();
      EXPECT_TRUE(writer.put("key" + std::to_string(i), value, 0, false));
      writer.end_revision();
    }
  });
}

TEST(KvHash, IsMadeInPieces) {
  mvcc::Member data;
  put_many(data, 10'000, "v");
  int pieces = 0;
  const auto history = hash_of(data, 0, &pieces);
  EXPECT_GE(pieces, 3);
  data.publish_compaction(10'001);
  pieces = 0;
  ASSERT_TRUE(hash_of(data, 0, &pieces));
  EXPECT_GE(pieces, 3) << "live ones, too";
  mvcc::Member large;
  put_many(large, 8, std::string(400'000, 'x'));
  pieces = 0;
  ASSERT_TRUE(hash_of(large, 0, &pieces));
  EXPECT_GE(pieces, 3) << "by bytes";
  EXPECT_EQ(history->compacted, -1);
}

TEST(KvHash, BeginsAnewWhenACompactionPasses) {
  mvcc::Member data;
  mvcc::Member calm;
  put_many(data, 10'000, "v");
  put_many(calm, 10'000, "v");
  calm.publish_compaction(9'000);
  KvHash latest(0);
  KvHash asked(500);
  ASSERT_EQ(latest.next(*data.mvcc().reader()).value(), false);
  data.put("more", "1");
  calm.put("more", "1");
  data.compact_all(9'000);
  EXPECT_EQ(asked.next(*data.mvcc().reader()).error().message, mvcc::kErrorCompacted);
  while (true) {
    const auto done = latest.next(*data.mvcc().reader());
    ASSERT_TRUE(done) << done.error().message;
    if (*done) break;
  }
  EXPECT_EQ(latest.compacted(), 9'000);
  EXPECT_EQ(latest.revision(), 10'002);
  EXPECT_EQ(latest.hash(), hash_of(calm)->hash);
}

TEST(KvHash, GivesUpWhenCompactionsPassAllTheTime) {
  mvcc::Member data;
  put_many(data, 9'000, "v");
  put_many(data, 100, "w");
  int64_t compacted = 9'001;
  data.publish_compaction(compacted);
  KvHash hash(0);
  Result<bool> done = false;
  while (done && !*done && compacted < 9'100) {
    done = hash.next(*data.mvcc().reader());
    data.publish_compaction(++compacted);  // what is alive at the one before cannot be read on
  }
  ASSERT_FALSE(done) << compacted;
  EXPECT_EQ(done.error().message, mvcc::kErrorCompacted);
  EXPECT_GE(compacted, 9'001 + KvHash::kRestartsMax);
}

class HashService : public Services {};

TEST_F(HashService, AnswersWithRevisions) {
  fill(member.data);
  etcdserverpb::HashKVRequest request;
  request.set_revision(4);
  EXPECT_EQ(call("/v3/maintenance/hashkv", request)->text,
            "header { cluster_id: 5 member_id: 1 revision: 6 raft_term: 7 } hash: " +
                std::to_string(hash_of(member.data, 4)->hash) + " compact_revision: -1 hash_revision: 4");
  request.set_revision(99);
  EXPECT_EQ(refusal("/v3/maintenance/hashkv", request).message, mvcc::kErrorFutureRevision);
}

TEST_F(HashService, HashCountsLeasesToo) {
  fill(member.data);
  const auto without = call("/v3/maintenance/hash", etcdserverpb::HashRequest())->text;
  ASSERT_TRUE(member.lease_table.grant(5, 60));
  member.lease_table.commit();
  const auto with = call("/v3/maintenance/hash", etcdserverpb::HashRequest())->text;
  EXPECT_NE(with, without);
  EXPECT_EQ(with, call("/v3/maintenance/hash", etcdserverpb::HashRequest())->text);
}

}  // namespace
}  // namespace rpc
