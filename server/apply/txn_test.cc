// The rules of puts, deletes and transactions, as recorded from etcd 3.6.14 (shared conformance cases kv-put,
// kv-delete, txn, txn-nested and the quirks 9 to 19).
#include "apply/txn.h"

#include <gtest/gtest.h>

#include "apply/machine_test.h"
#include "apply/read_txn.h"
#include "apply/shape.h"

namespace apply {
namespace {

using namespace build;

TEST(Put, AnswersItsRevisionAndThePreviousPair) {
  Machine machine;
  EXPECT_EQ(machine.run(put("a", "1")), "@2");
  EXPECT_EQ(machine.run(with_previous(put("a", "2"))), "@3 before a=1 c2 m2 v1");
  EXPECT_EQ(machine.run(with_previous(put("b", ""))), "@4");
  EXPECT_EQ(machine.read(range("a", "c")), "@4 [a=2 c2 m3 v2, b= c4 m4 v1] of 2");
  EXPECT_EQ(machine.hub.heard, "2:a=1 3:a=2 4:b= ");
  EXPECT_EQ(machine.hub.last_revision, 4);
}

TEST(Put, IgnoreValueKeepsTheValueAndChangesTheLease) {
  Machine machine;
  machine.run(machine.grant(7));
  EXPECT_EQ(machine.run(keep_value("a")), "error 3: etcdserver: key not found");
  machine.run(put("a", "1", 7));
  EXPECT_EQ(machine.run(keep_value("a")), "@3");
  EXPECT_EQ(machine.read(range("a")), "@3 [a=1 c2 m3 v2] of 1");
  EXPECT_EQ(machine.leases->keys(7).size(), 0u);
  machine.run(keep_value("a", 7));
  EXPECT_EQ(machine.read(range("a")), "@4 [a=1 c2 m4 v3 l7] of 1");
  EXPECT_EQ(machine.leases->keys(7), std::vector<Bytes>{"a"});
  PutRequest both = keep_value("a");
  both.set_ignore_lease(true);
  both.set_prev_kv(true);
  EXPECT_EQ(machine.run(both), "@5 before a=1 c2 m4 v3 l7");
  EXPECT_EQ(machine.read(range("a")), "@5 [a=1 c2 m5 v4 l7] of 1");
}

TEST(Put, IgnoreLeaseKeepsTheLease) {
  Machine machine;
  EXPECT_EQ(machine.run(keep_lease("a")), "error 3: etcdserver: key not found");
  machine.run(put("a", "1"));
  EXPECT_EQ(machine.run(keep_lease("a", "2")), "@3") << "no lease is kept as well";
  machine.run(machine.grant(7));
  machine.run(put("a", "3", 7));
  EXPECT_EQ(machine.run(keep_lease("a", "4")), "@5");
  EXPECT_EQ(machine.read(range("a")), "@5 [a=4 c2 m5 v4 l7] of 1");
  EXPECT_EQ(machine.leases->keys(7), std::vector<Bytes>{"a"});
}

TEST(Put, UnknownLeaseWritesNothing) {
  Machine machine;
  EXPECT_EQ(machine.run(put("a", "1", 99)), "error 5: etcdserver: requested lease not found");
  EXPECT_EQ(machine.read(range("a")), "@1 [] of 0");
  PutRequest request = keep_value("a", 99);
  EXPECT_EQ(machine.run(request), "error 5: etcdserver: requested lease not found") << "the lease is checked first";
  EXPECT_EQ(machine.hub.heard, "");
}

TEST(Put, APlainPutDetachesAndAnotherLeaseTakesOver) {
  Machine machine;
  machine.run(machine.grant(7));
  machine.run(machine.grant(8));
  machine.run(put("a", "1", 7));
  machine.run(put("b", "1", 7));
  machine.run(put("b", "2", 7));
  EXPECT_EQ(machine.leases->keys(7), (std::vector<Bytes>{"a", "b"}));
  machine.run(put("a", "2"));
  machine.run(put("b", "3", 8));
  EXPECT_EQ(machine.leases->keys(7), (std::vector<Bytes>{}));
  EXPECT_EQ(machine.leases->keys(8), std::vector<Bytes>{"b"});
  EXPECT_EQ(machine.run(machine.revoke(7)), "@6 revoked");
  EXPECT_EQ(machine.read(range("a", "c")), "@6 [a=2 c2 m5 v2, b=3 c3 m6 v3 l8] of 2");
}

TEST(Put, MalformedOnesInTheLogAreRefused) {
  Machine machine;
  EXPECT_EQ(machine.run(put("")), "error 3: etcdserver: key is not provided");
  PutRequest request = keep_value("a");
  request.set_value("x");
  EXPECT_EQ(machine.run(request), "error 3: etcdserver: value is provided");
  EXPECT_EQ(machine.run(erase("")), "error 3: etcdserver: key is not provided");
  EXPECT_EQ(machine.run(txn({}, {RequestOp()})), "error 3: etcdserver: key not found");
  EXPECT_EQ(machine.run(txn({}, {op(put("a")), op(put("a"))})),
            "error 3: etcdserver: duplicate key given in txn request");
  EXPECT_EQ(machine.read(range("a")), "@1 [] of 0");
}

TEST(Delete, CountsAndGivesThePreviousPairs) {
  Machine machine;
  for (const char* key : {"a", "b", "c", "d"}) machine.run(put(key, key));
  EXPECT_EQ(machine.run(erase("x")), "@5 deleted 0") << "nothing deleted, no revision";
  EXPECT_EQ(machine.run(erase("a")), "@6 deleted 1");
  EXPECT_EQ(machine.run(erase("a")), "@6 deleted 0");
  EXPECT_EQ(machine.run(erase("b", "d", true)), "@7 deleted 2 [b=b c3 m3 v1, c=c c4 m4 v1]");
  EXPECT_EQ(machine.run(put("b", "2")), "@8");
  EXPECT_EQ(machine.read(range("b")), "@8 [b=2 c8 m8 v1] of 1") << "a new life";
  EXPECT_EQ(machine.run(erase("b", kOpenEnd)), "@9 deleted 2");
  EXPECT_EQ(machine.hub.heard, "2:a=a 3:b=b 4:c=c 5:d=d 6:-a 7:-b,-c 8:b=2 9:-b,-d ");
}

TEST(Delete, DetachesFromTheLease) {
  Machine machine;
  machine.run(machine.grant(7));
  machine.run(put("a", "1", 7));
  machine.run(put("b", "1", 7));
  machine.run(erase("a"));
  EXPECT_EQ(machine.leases->keys(7), std::vector<Bytes>{"b"});
  machine.run(put("a", "2"));
  EXPECT_EQ(machine.run(machine.revoke(7)), "@6 revoked");
  EXPECT_EQ(machine.read(range("a", "z")), "@6 [a=2 c5 m5 v1] of 1");
}

TEST(Txn, EmptyOnes) {
  Machine machine;
  EXPECT_EQ(machine.run(txn({}, {})), "@1 yes []");
  EXPECT_EQ(machine.run(txn({version_is("a", Compare::GREATER, 0)}, {op(put("a"))})), "@1 no []");
  EXPECT_EQ(machine.run(txn({}, {op(txn({}, {})), op(txn({version_is("a", Compare::GREATER, 0)}, {op(put("a"))}))})),
            "@1 yes [txn @- yes [], txn @- no []]");
  EXPECT_EQ(machine.hub.heard, "");
}

TEST(Txn, Branches) {
  Machine machine;
  machine.run(put("a", "1"));
  EXPECT_EQ(
      machine.run(txn({value_is("a", Compare::EQUAL, "1")}, {op(put("a", "2")), op(range("a"))}, {op(put("a", "no"))})),
      "@3 yes [put @3, range @3 [a=2 c2 m3 v2] of 1]");
  EXPECT_EQ(machine.run(txn({value_is("a", Compare::EQUAL, "x")}, {op(put("a", "no"))},
                            {op(put("b", "else")), op(erase("a", "", true))})),
            "@4 no [put @4, delete @4 deleted 1 [a=2 c2 m3 v2]]");
  EXPECT_EQ(machine.read(range("a", "z")), "@4 [b=else c4 m4 v1] of 1");
}

struct CompareCase {
  Compare compare;
  bool holds;
};

TEST(Txn, Compares) {
  Machine machine;
  machine.run(machine.grant(50));
  machine.run(put("a", "mm"));      // 2
  machine.run(put("a", "mm", 50));  // 3: created 2, modified 3, version 2
  auto wrong_operand = value_is("a", Compare::EQUAL, "x");
  wrong_operand.set_target(Compare::MOD);
  auto wrong_value = version_is("a", Compare::GREATER, 2);
  wrong_value.set_target(Compare::VALUE);
  auto odd_target = version_is("a", Compare::EQUAL, 5);
  odd_target.set_target(static_cast<Compare::CompareTarget>(99));
  auto odd_result = version_is("a", static_cast<Compare::CompareResult>(99), 5);
  Compare bare;
  bare.set_key("a");
  Compare bare_missing;
  bare_missing.set_key("no");
  using C = Compare;
  const std::vector<CompareCase> cases = {
      {version_is("a", C::EQUAL, 1), false},
      {version_is("a", C::EQUAL, 2), true},
      {version_is("a", C::GREATER, 1), true},
      {version_is("a", C::GREATER, 2), false},
      {version_is("a", C::LESS, 2), false},
      {version_is("a", C::LESS, 3), true},
      {version_is("a", C::NOT_EQUAL, 2), false},
      {version_is("a", C::NOT_EQUAL, 3), true},
      {create_is("a", C::EQUAL, 2), true},
      {create_is("a", C::GREATER, 1), true},
      {create_is("a", C::LESS, 2), false},
      {create_is("a", C::NOT_EQUAL, 3), true},
      {mod_is("a", C::EQUAL, 3), true},
      {mod_is("a", C::EQUAL, 2), false},
      {mod_is("a", C::GREATER, 3), false},
      {mod_is("a", C::LESS, 4), true},
      {lease_is("a", C::EQUAL, 50), true},
      {lease_is("a", C::GREATER, 49), true},
      {lease_is("a", C::LESS, 50), false},
      {lease_is("a", C::NOT_EQUAL, 0), true},
      {value_is("a", C::EQUAL, "mm"), true},
      {value_is("a", C::EQUAL, "m"), false},
      {value_is("a", C::GREATER, "m"), true},
      {value_is("a", C::GREATER, "mm"), false},
      {value_is("a", C::LESS, "mn"), true},
      {value_is("a", C::LESS, "mm"), false},
      {value_is("a", C::NOT_EQUAL, "m"), true},
      {value_is("a", C::GREATER, "\xff"), false},
      // A missing key counts as zero; its value never holds.
      {version_is("no", C::EQUAL, 0), true},
      {create_is("no", C::EQUAL, 0), true},
      {mod_is("no", C::LESS, 1), true},
      {lease_is("no", C::EQUAL, 0), true},
      {value_is("no", C::EQUAL, "x"), false},
      {value_is("no", C::NOT_EQUAL, "x"), false},
      {value_is("no", C::EQUAL, ""), false},
      // Operands of the wrong kind count as zero; what has no name holds as equal, or always.
      {wrong_operand, false},
      {wrong_value, true},
      {odd_target, true},
      {odd_result, true},
      {bare, false},
      {bare_missing, true},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(machine.run(txn({cases[i].compare}, {})), cases[i].holds ? "@3 yes []" : "@3 no []") << "case " << i;
    etcdserverpb::TxnResponse read;
    ASSERT_TRUE(read_txn(*machine.mvcc->reader(), txn({cases[i].compare}, {}), &read));
    EXPECT_EQ(show(read), cases[i].holds ? "@3 yes []" : "@3 no []") << "read only, case " << i;
  }
  EXPECT_EQ(machine.run(txn({mod_is("a", C::EQUAL, 3), version_is("a", C::EQUAL, 9)}, {})), "@3 no []") << "all";
  EXPECT_EQ(machine.run(txn({version_is("a", C::EQUAL, 9), mod_is("a", C::EQUAL, 3)}, {})), "@3 no []") << "all";
}

TEST(Txn, RangeComparesHoldForEveryKey) {
  Machine machine;
  machine.run(machine.grant(50));
  machine.run(put("pa", "v", 50));
  machine.run(put("pb", "v", 50));
  machine.run(put("pc", "w"));
  using C = Compare;
  const std::vector<CompareCase> cases = {
      {value_is("p", C::NOT_EQUAL, "z", "q"), true},
      {value_is("p", C::EQUAL, "v", "q"), false},
      {value_is("pa", C::EQUAL, "v", "pc"), true},
      {value_is("pb", C::EQUAL, "v", kOpenEnd), false},
      {value_is(kOpenEnd, C::LESS, "x", kOpenEnd), true},
      {value_is("x", C::NOT_EQUAL, "z", "z"), false},  // no key at all
      {mod_is("p", C::LESS, 4, "q"), false},
      {mod_is("p", C::LESS, 5, "q"), true},
      {version_is("p", C::EQUAL, 1, "q"), true},
      {version_is("x", C::EQUAL, 0, "z"), true},
      {version_is("q", C::EQUAL, 1, "p"), false},  // an empty range is a missing key
      {lease_is("pa", C::EQUAL, 50, "pc"), true},
      {lease_is("p", C::EQUAL, 50, kOpenEnd), false},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(machine.run(txn({cases[i].compare}, {})), cases[i].holds ? "@4 yes []" : "@4 no []") << "case " << i;
    etcdserverpb::TxnResponse read;
    ASSERT_TRUE(read_txn(*machine.mvcc->reader(), txn({cases[i].compare}, {}), &read));
    EXPECT_EQ(show(read), cases[i].holds ? "@4 yes []" : "@4 no []") << "read only, case " << i;
  }
}

TEST(Txn, OneRevisionForAllWrites) {
  Machine machine;
  machine.run(put("a", "old"));
  EXPECT_EQ(machine.run(
                txn({}, {op(range("a")), op(put("a", "new")), op(range("a")), op(put("b", "x")), op(range("a", "c"))})),
            "@3 yes [range @2 [a=old c2 m2 v1] of 1, put @3, range @3 [a=new c2 m3 v2] of 1, put @3, "
            "range @3 [a=new c2 m3 v2, b=x c3 m3 v1] of 2]");
  EXPECT_EQ(machine.hub.heard, "2:a=old 3:a=new,b=x ");
  EXPECT_EQ(machine.run(txn({}, {op(erase("a", "c")), op(range("a", "c"))})),
            "@4 yes [delete @4 deleted 2, range @4 [] of 0]");
}

TEST(Txn, ReadingOnlyMovesNothing) {
  Machine machine;
  machine.run(put("a", "1"));
  EXPECT_EQ(machine.run(txn({}, {op(range("a"))})), "@2 yes [range @2 [a=1 c2 m2 v1] of 1]");
  EXPECT_EQ(machine.run(txn({}, {op(erase("zz"))})), "@2 yes [delete @2 deleted 0]");
  EXPECT_EQ(machine.run(txn({}, {op(erase("a")), op(erase("a")), op(erase("a", "z"))})),
            "@3 yes [delete @3 deleted 1, delete @3 deleted 0, delete @3 deleted 0]");
}

TEST(Txn, PreviousPairsAndIgnoredParts) {
  Machine machine;
  machine.run(put("a", "1"));
  machine.run(put("b", "2"));
  EXPECT_EQ(machine.run(txn(
                {}, {op(with_previous(put("a", "9"))), op(erase("b", "", true)), op(with_previous(put("n", "1")))})),
            "@4 yes [put @4 before a=1 c2 m2 v1, delete @4 deleted 1 [b=2 c3 m3 v1], put @4]");
  EXPECT_EQ(machine.run(txn({}, {op(put("c", "1")), op(keep_value("b"))})), "error 3: etcdserver: key not found");
  EXPECT_EQ(machine.run(txn({}, {op(put("c", "1")), op(keep_lease("b"))})), "error 3: etcdserver: key not found");
  EXPECT_EQ(machine.run(txn({}, {op(put("c", "1"))}, {op(keep_lease("b"))})), "@5 yes [put @5]");
  EXPECT_EQ(machine.run(txn({}, {op(put("d", "1")), op(keep_value("a"))})), "@6 yes [put @6, put @6]");
  EXPECT_EQ(machine.read(range("a", "z")), "@6 [a=9 c2 m6 v3, c=1 c5 m5 v1, d=1 c6 m6 v1, n=1 c4 m4 v1] of 4");
}

TEST(Txn, FailsAsAWhole) {
  Machine machine;
  machine.run(put("a", "1"));
  const std::string before = machine.read(range("a", "z"));
  const std::string future = "error 11: etcdserver: mvcc: required revision is a future revision";
  EXPECT_EQ(machine.run(txn({}, {op(put("b")), op(range("a", "", 52))})), future);
  EXPECT_EQ(machine.run(txn({}, {op(put("b")), op(range("a", "", 3))})), future) << "its own new revision, too";
  EXPECT_EQ(machine.run(txn({}, {op(put("b")), op(put("c", "1", 99))})),
            "error 5: etcdserver: requested lease not found");
  EXPECT_EQ(machine.run(txn({}, {op(put("b")), op(txn({}, {op(put("c", "1", 99))}))})),
            "error 5: etcdserver: requested lease not found");
  EXPECT_EQ(machine.run(txn({}, {op(put("b")), op(txn({}, {op(range("a", "", 90))}))})), future);
  EXPECT_EQ(machine.read(range("a", "z")), before);
  EXPECT_EQ(machine.run(txn({}, {op(put("b"))}, {op(range("a", "", 90)), op(put("c", "1", 99))})), "@3 yes [put @3]")
      << "the other branch is not looked at";
}

TEST(Txn, RangesAtOldRevisions) {
  Machine machine;
  machine.run(put("a", "1"));
  machine.run(put("a", "2"));
  EXPECT_EQ(machine.run(txn({}, {op(range("a", "", 2)), op(put("a", "3")), op(range("a", "", 3))})),
            "@4 yes [range @3 [a=1 c2 m2 v1] of 1, put @4, range @4 [a=2 c2 m3 v2] of 1]");
  machine.run(machine.compaction(3));
  const std::string compacted = "error 11: etcdserver: mvcc: required revision has been compacted";
  EXPECT_EQ(machine.run(txn({}, {op(put("b")), op(range("a", "", 2))})), compacted);
  EXPECT_EQ(machine.run(txn({}, {op(range("a", "", -1))})), compacted) << "inside a txn only, as etcd";
  EXPECT_EQ(machine.read(range("a", "", -1)), "@4 [a=3 c2 m4 v3] of 1");
  EXPECT_EQ(machine.run(txn({}, {op(range("a", "", 3))})), "@4 yes [range @4 [a=2 c2 m3 v2] of 1]");
}

TEST(Txn, RangeOptions) {
  Machine machine;
  machine.run(put("a", "3"));
  machine.run(put("b", "2"));
  machine.run(put("c", "1"));
  RangeRequest limited = range("a", "z");
  limited.set_limit(2);
  RangeRequest backward = range("a", "z");
  backward.set_sort_order(RangeRequest::DESCEND);
  backward.set_keys_only(true);
  RangeRequest by_value = range("a", "z");
  by_value.set_sort_target(RangeRequest::VALUE);
  by_value.set_sort_order(RangeRequest::ASCEND);
  by_value.set_limit(1);
  RangeRequest counted = range("a", "z");
  counted.set_count_only(true);
  const TxnRequest request = txn({}, {op(limited), op(backward), op(by_value), op(counted)});
  const std::string expected =
      "@4 yes [range @4 [a=3 c2 m2 v1, b=2 c3 m3 v1] of 3 more, "
      "range @4 [c= c4 m4 v1, b= c3 m3 v1, a= c2 m2 v1] of 3, range @4 [c=1 c4 m4 v1] of 3 more, range @4 [] of 3]";
  EXPECT_EQ(machine.run(request), expected);
  etcdserverpb::TxnResponse read;
  ASSERT_TRUE(read_txn(*machine.mvcc->reader(), request, &read));
  EXPECT_EQ(show(read), expected);
}

TEST(Nested, HeadersAndBranches) {
  Machine machine;
  EXPECT_EQ(machine.run(txn({}, {op(txn({}, {op(put("a", "1"))})), op(range("a"))})),
            "@2 yes [txn @- yes [put @2], range @2 [a=1 c2 m2 v1] of 1]");
  EXPECT_EQ(machine.run(txn({version_is("a", Compare::EQUAL, 1)},
                            {op(txn({version_is("a", Compare::EQUAL, 9)}, {op(put("x"))}, {op(put("y", "1"))})),
                             op(put("z", "1"))})),
            "@3 yes [txn @- no [put @3], put @3]");
  EXPECT_EQ(
      machine.run(txn({}, {op(put("a", "1")),
                           op(txn({}, {op(put("b", "2")), op(txn({}, {op(put("c", "3")), op(range("a", "d"))}))}))})),
      "@4 yes [put @4, txn @- yes [put @4, txn @- yes [put @4, "
      "range @4 [a=1 c2 m4 v2, b=2 c4 m4 v1, c=3 c4 m4 v1] of 3]]]");
}

TEST(Nested, ComparesAreEvaluatedBeforeAnyOperation) {
  Machine machine;
  EXPECT_EQ(machine.run(txn({}, {op(put("a", "1")), op(txn({version_is("a", Compare::EQUAL, 1)},
                                                           {op(put("saw", "yes"))}, {op(put("saw", "no"))}))})),
            "@2 yes [put @2, txn @- no [put @2]]");
  EXPECT_EQ(machine.run(txn({}, {op(erase("a")),
                                 op(txn({version_is("a", Compare::EQUAL, 1)}, {op(range("a"))}, {op(put("gone"))}))})),
            "@3 yes [delete @3 deleted 1, txn @- yes [range @3 [] of 0]]");
  // Siblings and the levels below them keep their own outcome each.
  EXPECT_EQ(machine.run(txn({}, {op(txn({version_is("no", Compare::EQUAL, 1)}, {}, {op(txn({}, {op(put("p"))}))})),
                                 op(txn({version_is("saw", Compare::EQUAL, 1)}, {op(txn({}, {}))})),
                                 op(txn({version_is("saw", Compare::EQUAL, 2)}, {}, {op(put("q"))}))})),
            "@4 yes [txn @- no [txn @- yes [put @4]], txn @- yes [txn @- yes []], txn @- no [put @4]]");
}

TEST(Nested, APutThenALaterDeleteOfTheSameKey) {
  Machine machine;
  machine.run(machine.grant(7));
  EXPECT_EQ(machine.run(txn({}, {op(txn({}, {op(put("a", "1", 7))})), op(txn({}, {op(erase("a", "b"))}))})),
            "@2 yes [txn @- yes [put @2], txn @- yes [delete @2 deleted 1]]");
  EXPECT_EQ(machine.read(range("a")), "@2 [] of 0");
  EXPECT_EQ(machine.leases->keys(7).size(), 0u);
  EXPECT_EQ(machine.hub.heard, "2:a=1,-a ");
  EXPECT_EQ(machine.run(put("a", "2")), "@3");
  EXPECT_EQ(machine.read(range("a")), "@3 [a=2 c3 m3 v1] of 1");
}

TEST(Nested, AsDeepAsTheLogMayHold) {
  Machine machine;
  TxnRequest deep = txn({}, {op(put("a", "1"))});
  for (size_t level = 1; level < kTxnDepthMax; ++level) deep = txn({}, {op(std::move(deep))});
  EXPECT_TRUE(machine.run(deep).starts_with("@2 yes [txn @- yes [txn"));
  EXPECT_EQ(machine.read(range("a")), "@2 [a=1 c2 m2 v1] of 1");
  deep = txn({}, {op(std::move(deep))});
  EXPECT_EQ(machine.run(deep), "error 3: etcdserver: too many operations in txn request");
}

TEST(ReadTxn, AnswersAsThroughTheLog) {
  Machine machine;
  machine.run(machine.grant(5));
  machine.run(put("a", "1", 5));
  machine.run(put("b", "2"));
  machine.run(put("a", "3", 5));
  machine.run(machine.compaction(3));
  const std::vector<TxnRequest> requests = {
      txn({}, {}),
      txn({lease_is("a", Compare::EQUAL, 5)}, {op(range("a"))}, {op(range("b"))}),
      txn({lease_is("a", Compare::EQUAL, 6)}, {op(range("a"))}, {op(range("a", "z"))}),
      txn({}, {op(txn({value_is("b", Compare::EQUAL, "2")}, {op(range("b"))})), op(range("a", "", 3))}),
      txn({}, {op(range("a", "", 2))}),
      txn({}, {op(range("a", "", 5))}),
      txn({}, {op(range("a", "", -7))}),
  };
  for (const TxnRequest& request : requests) {
    ASSERT_TRUE(is_read_only(request));
    etcdserverpb::TxnResponse response;
    Status done = read_txn(*machine.mvcc->reader(), request, &response);
    EXPECT_EQ(done ? show(response) : show(done.error()), machine.run(request)) << request.ShortDebugString();
  }
}

TEST(Limits, ATxnThatCouldChangeTooMuchIsRefusedBeforeItsFirstWrite) {
  Machine machine;
  constexpr int64_t kKeys = kChangesMax / 2 + 1;
  for (int64_t i = 0; i < kKeys;) {
    std::vector<LogEntry> batch;
    for (; i < kKeys && batch.size() < 10'000; ++i)
      batch.push_back(machine.log(machine.command(put(std::to_string(i), ""))));
    ASSERT_TRUE(machine.applier->apply(batch));
  }
  machine.hub.heard.clear();
  EXPECT_EQ(machine.run(txn({}, {op(put("a", "1")), op(erase("0", "a")), op(erase("0", "a"))})),
            "error 3: etcdserver: too many operations in txn request");
  EXPECT_EQ(machine.mvcc->key_count(), kKeys);
  EXPECT_EQ(machine.hub.heard, "");
  EXPECT_EQ(machine.run(txn({}, {op(put("a", "1")), op(erase("0", "a"))})),
            "@" + std::to_string(kKeys + 2) + " yes [put @" + std::to_string(kKeys + 2) + ", delete @" +
                std::to_string(kKeys + 2) + " deleted " + std::to_string(kKeys) + "]");
  EXPECT_EQ(machine.mvcc->key_count(), 1);
}

TEST(Limits, AFullLeaseTakesNoMoreKeys) {
  Machine machine;
  machine.run(machine.grant(7));
  for (int64_t i = 0; i < kChangesMax - 1; ++i) machine.leases->attach(7, std::to_string(i));
  machine.leases->commit();
  EXPECT_EQ(machine.run(txn({}, {op(put("a", "1", 7)), op(put("b", "1", 7))})),
            "error 8: etcdserver: a lease can hold 1048575 keys at most");
  EXPECT_EQ(machine.run(txn({}, {op(put("a", "1", 7)), op(put("b", "1"))})), "@2 yes [put @2, put @2]");
  EXPECT_EQ(machine.run(put("b", "2", 7)), "error 8: etcdserver: a lease can hold 1048575 keys at most");
  EXPECT_EQ(machine.run(put("a", "2", 7)), "@3") << "it holds that key already";
  EXPECT_EQ(machine.run(erase("a")), "@4 deleted 1");
  EXPECT_EQ(machine.run(put("b", "2", 7)), "@5");
}

}  // namespace
}  // namespace apply
