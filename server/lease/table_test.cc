#include "lease/table.h"

#include <gtest/gtest.h>

#include <random>

namespace lease {
namespace {

TEST(Table, GrantsOnceAndChecksAsEtcd) {
  Table table;
  EXPECT_TRUE(table.grant(7, 10));
  EXPECT_EQ(table.grant(7, 20).error(), (Error{Code::kFailedPrecondition, "etcdserver: lease already exists"}));
  EXPECT_EQ(table.grant(7, kTtlMaxSeconds + 1).error(), (Error{Code::kOutOfRange, "etcdserver: too large lease TTL"}));
  EXPECT_EQ(table.grant(0, 10).error(), (Error{Code::kNotFound, "etcdserver: requested lease not found"}));
  EXPECT_TRUE(table.grant(-5, kTtlMaxSeconds));
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.find(7)->ttl, 10);
  EXPECT_EQ(table.find(7)->remaining, 0);
  EXPECT_FALSE(table.find(8));
}

TEST(Table, ListsByIdAndKeysInOrder) {
  Table table;
  for (int64_t id : {9, -3, 4}) ASSERT_TRUE(table.grant(id, 60));
  for (const char* key : {"b", "c", "a", "b"}) table.attach(4, key);
  std::vector<int64_t> ids;
  for (const Info& info : table.list()) ids.push_back(info.id);
  EXPECT_EQ(ids, (std::vector<int64_t>{-3, 4, 9}));
  EXPECT_EQ(table.keys(4), (std::vector<Bytes>{"a", "b", "c"}));
  EXPECT_EQ(table.key_count(4), 3u);
  EXPECT_TRUE(table.holds(4, "b"));
  table.detach(4, "b");
  EXPECT_FALSE(table.holds(4, "b"));
  table.detach(4, "not there");
  table.detach(12345, "no lease");
  EXPECT_EQ(table.keys(4), (std::vector<Bytes>{"a", "c"}));
  EXPECT_TRUE(table.keys(9).empty());
  EXPECT_EQ(table.key_count(12345), 0u);
}

TEST(Table, RevokeAnswersTheKeysSorted) {
  Table table;
  ASSERT_TRUE(table.grant(1, 60));
  for (const char* key : {"z", "", "m"}) table.attach(1, key);
  auto keys = table.revoke(1);
  ASSERT_TRUE(keys);
  EXPECT_EQ(*keys, (std::vector<Bytes>{"", "m", "z"}));
  EXPECT_EQ(table.revoke(1).error().message, kErrorNotFound);
  EXPECT_EQ(table.checkpoint(1, 5).error().code, Code::kNotFound);
}

TEST(Table, LoadForgetsWhatWasThere) {
  Table table;
  ASSERT_TRUE(table.grant(1, 60));
  table.load({{.id = 2, .ttl = 30, .remaining = 7}});
  EXPECT_FALSE(table.find(1));
  EXPECT_EQ(table.find(2)->remaining, 7);
  table.attach(2, "k");
  table.commit();
  table.undo();
  EXPECT_EQ(table.keys(2), (std::vector<Bytes>{"k"}));
}

TEST(TableDeath, AttachNeedsTheLease) {
  Table table;
  EXPECT_DEATH(table.attach(3, "k"), "does not exist: 3");
}

std::string describe(const Table& table) {
  std::string text;
  for (const Info& info : table.list()) {
    text += std::to_string(info.id) + "/" + std::to_string(info.ttl) + "/" + std::to_string(info.remaining);
    for (const Bytes& key : table.keys(info.id)) text += " " + key;
    text += "\n";
  }
  return text;
}

TEST(Table, UndoRestoresTheLastCommit) {
  std::mt19937 random(42);
  auto pick = [&random](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  Table table;
  std::string committed = describe(table);
  for (int round = 0; round < 500; ++round) {
    for (int step = pick(12); step > 0; --step) {
      int64_t id = 1 + pick(5);
      std::string key(1, static_cast<char>('a' + pick(4)));
      switch (pick(5)) {
        case 0:
          (void)table.grant(id, 10 + pick(90));
          break;
        case 1:
          if (pick(3) == 0) (void)table.revoke(id);
          break;
        case 2:
          (void)table.checkpoint(id, pick(10));
          break;
        case 3:
          if (table.find(id)) table.attach(id, key);
          break;
        default:
          table.detach(id, key);
      }
    }
    if (pick(2) == 0) {
      table.commit();
      committed = describe(table);
    } else {
      table.undo();
      ASSERT_EQ(describe(table), committed) << "round " << round;
    }
  }
  EXPECT_NE(committed, "");
}

}  // namespace
}  // namespace lease
