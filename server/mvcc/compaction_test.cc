#include <gtest/gtest.h>

#include "mvcc/member_test.h"

namespace mvcc {
namespace {

// "2a" is a row of revision 2, "4-" a tombstone; ordered by id.
std::string rows(Member& member) {
  std::string text;
  for (const store::Row& row : member.rows()) {
    text += std::to_string(revision_of(row.id).main) + (row.version == 0 ? "-" : row.key) + " ";
  }
  return text;
}

TEST(Compaction, KeepsTheNewestLiveRowAndTheCompactedRevision) {
  Member member;
  member.put("a", "");  // 2
  member.put("b", "");  // 3
  member.put("a", "");  // 4
  member.erase("b");    // 5
  member.put("c", "");  // 6
  member.erase("c");    // 7
  member.put("a", "");  // 8
  member.compact_all(7);
  EXPECT_EQ(rows(member), "4a 7- 8a ");
  member.compact_all(8);
  EXPECT_EQ(rows(member), "8a ");
  member.reopen();
  EXPECT_EQ(member.keys_at(8), (std::vector<std::string>{"a="}));
  EXPECT_EQ(member.put("c", ""), 9);
  EXPECT_EQ((*member.mvcc().reader()->get("c", 0))->version, 1);
}

TEST(Compaction, KeepsEveryRowOfTheCompactedRevision) {
  Member member;
  member.put("a", "0");
  member.write([](Writer& writer) {
    EXPECT_TRUE(writer.put("a", "1", 0, false));
    EXPECT_TRUE(writer.erase("a", "", nullptr, nullptr));
    EXPECT_TRUE(writer.put("a", "2", 0, false));
  });
  member.compact_all(3);
  EXPECT_EQ(rows(member), "3a 3- 3a ");
  EXPECT_EQ(member.keys_at(3), (std::vector<std::string>{"a=2"}));
  member.put("b", "");
  member.compact_all(4);
  EXPECT_EQ(rows(member), "3a 4b ");
}

TEST(Compaction, DropsAtMostRowsMaxInAStep) {
  Member member;
  for (int i = 0; i < 30; ++i) member.put("hot", std::to_string(i));
  for (int i = 0; i < 20; ++i) member.put("k" + std::to_string(i), "");
  for (int i = 0; i < 20; ++i) member.put("k" + std::to_string(i), "");
  const auto before = static_cast<int64_t>(member.rows().size());
  member.publish_compaction(member.mvcc().published().revision);
  int64_t left = before;
  for (bool done = false; !done;) {
    done = member.compact_step(7).value();
    const auto now = static_cast<int64_t>(member.rows().size());
    EXPECT_LE(left - now, 7);
    left = now;
  }
  EXPECT_EQ(left, before - 29 - 20);
  EXPECT_EQ(member.compact_step(7), true) << "nothing to do: done";
}

TEST(Compaction, TakesAKeyWithALongHistoryInSlices) {
  Options options;
  options.compaction_noted_rows_max = 700;
  options.compaction_heap_rows_max = 1500;
  Member member(options, StoreKind::kFake);
  member.batch([](Writer& writer) {
    for (int i = 0; i < 5000; ++i) {
      writer.begin_revision();
      EXPECT_TRUE(writer.put("hot", "", 0, false));
      writer.end_revision();
    }
  });
  member.erase("hot");
  member.put("last", "");
  EXPECT_GE(member.compact_all(5003, 400), 5001 / 400);
  EXPECT_EQ(rows(member), "5003last ");
  EXPECT_EQ(member.put("hot", ""), 5004);
}

TEST(Compaction, ACrashBetweenSlicesNeverBringsAKeyBack) {
  for (int slices = 0; slices < 6; ++slices) {
    Member member;
    member.put("a", "1");
    member.put("a", "2");
    member.put("a", "3");
    member.erase("a");
    member.put("b", "");
    member.publish_compaction(6);
    for (int i = 0; i < slices; ++i) member.compact_step(1);
    member.reopen();
    EXPECT_EQ(member.keys_at(0), (std::vector<std::string>{"b="})) << slices;
    while (member.compact_step(1) != true) {
    }
    EXPECT_EQ(rows(member), "6b ");
  }
}

TEST(Compaction, AFailedCommitLosesNothingAndComesAgain) {
  Member member(0);
  for (int i = 0; i < 6; ++i) member.put("a", std::to_string(i));
  member.publish_compaction(7);
  member.fail_commit = true;
  EXPECT_EQ(member.compact_step(2), std::nullopt);
  EXPECT_EQ(rows(member), "2a 3a 4a 5a 6a 7a ");
  member.fail_commit = false;
  while (member.compact_step(2) != true) {
  }
  EXPECT_EQ(rows(member), "7a ");
}

TEST(Compaction, APassUnderWayEndsBeforeTheNextTarget) {
  Member member;
  for (int i = 0; i < 9; ++i) member.put("a", "");  // 2..10
  for (int i = 0; i < 9; ++i) member.put("z", "");  // 11..19
  member.publish_compaction(10);
  EXPECT_EQ(member.compact_step(4), false);
  member.publish_compaction(19);
  EXPECT_EQ(member.compact_step(100), false) << "10 is finished, 19 is not begun";
  EXPECT_EQ(rows(member), "10a 11z 12z 13z 14z 15z 16z 17z 18z 19z ");
  EXPECT_EQ(member.compact_step(100), true);
  EXPECT_EQ(rows(member), "10a 19z ");
}

TEST(Compaction, SharesATransactionWithABatch) {
  Member member;
  member.put("a", "1");
  member.put("a", "2");
  member.erase("a");
  member.put("b", "1");
  member.publish_compaction(5);
  // The key is written anew in the very transaction that drops it.
  member.batch([&](Writer& writer) {
    writer.begin_revision();
    EXPECT_TRUE(writer.put("a", "3", 0, false));
    writer.end_revision();
  });
  auto txn = member.begin();
  Writer& writer = member.mvcc().begin(*txn);
  EXPECT_EQ(member.mvcc().compact_step(*txn, 100).value(), true);
  writer.begin_revision();
  EXPECT_TRUE(writer.put("a", "4", 0, false));
  writer.end_revision();
  store::Meta meta = member.store().meta();
  meta.revision = writer.revision();
  meta.content_hash = member.mvcc().content_hash();
  ASSERT_TRUE(txn->set_meta(meta));
  ASSERT_TRUE(txn->commit());
  member.mvcc().publish({.revision = meta.revision, .compacted = 5});
  EXPECT_EQ(rows(member), "5b 6a 7a ");
  EXPECT_EQ(member.keys_at(6), (std::vector<std::string>{"a=3", "b=1"}));
  EXPECT_EQ(member.keys_at(0), (std::vector<std::string>{"a=4", "b=1"}));
}

}  // namespace
}  // namespace mvcc
