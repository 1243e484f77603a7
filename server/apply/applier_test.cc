// Leases, compaction, alarms, members and the batch around them.
#include "apply/applier.h"

#include <gtest/gtest.h>

#include "apply/machine_test.h"
#include "apply/shape.h"

namespace apply {
namespace {

using namespace build;
using etcdserverpb::AlarmRequest;

constexpr const char* kCompactedText = "error 11: etcdserver: mvcc: required revision has been compacted";
constexpr const char* kFutureText = "error 11: etcdserver: mvcc: required revision is a future revision";

std::string changes(const Applied& applied) {
  std::string text;
  for (const LeaseChange& change : applied.leases) {
    switch (change.kind) {
      case LeaseChange::Kind::kGranted:
        text += "granted " + std::to_string(change.id) + " ttl " + std::to_string(change.ttl) + " ";
        break;
      case LeaseChange::Kind::kRevoked:
        text += "revoked " + std::to_string(change.id) + " ";
        break;
      case LeaseChange::Kind::kCheckpointed:
        text += "checkpointed " + std::to_string(change.id) + " at " + std::to_string(change.remaining) + " ";
        break;
      case LeaseChange::Kind::kReset:
        text += "reset " + std::to_string(change.id) + " ";
        break;
    }
  }
  for (int64_t id : applied.revocations_refused) text += "refused " + std::to_string(id) + " ";
  return text;
}

TEST(Leases, GrantAsEtcd) {
  Machine machine;
  machine.run(put("a"));
  EXPECT_EQ(machine.run(machine.grant(7, 60)), "@2 lease 7 ttl 60");
  EXPECT_EQ(changes(machine.last), "granted 7 ttl 60 ");
  EXPECT_EQ(machine.run(machine.grant(7, 60)), "error 9: etcdserver: lease already exists");
  EXPECT_EQ(changes(machine.last), "");
  EXPECT_EQ(machine.run(machine.grant(8, 9'000'000'001)), "error 11: etcdserver: too large lease TTL");
  EXPECT_EQ(machine.run(machine.grant(0, 60)), "error 5: etcdserver: requested lease not found");
  EXPECT_EQ(machine.run(machine.grant(-9, 9'000'000'000)), "@2 lease -9 ttl 9000000000");
  EXPECT_EQ(machine.run(machine.grant(10, -5)), "@2 lease 10 ttl 1") << "an entry that was not raised before";
  EXPECT_EQ(machine.content->leases.size(), 3u);
}

TEST(Leases, RevokeDeletesAllKeysInOneRevisionInOrder) {
  Machine machine;
  machine.run(machine.grant(7));
  for (const char* key : {"c", "a", "b"}) machine.run(put(key, "1", 7));
  machine.run(put("d", "1"));
  machine.hub.heard.clear();
  EXPECT_EQ(machine.run(machine.revoke(7)), "@6 revoked");
  EXPECT_EQ(changes(machine.last), "revoked 7 ");
  EXPECT_EQ(machine.hub.heard, "6:-a,-b,-c ");
  EXPECT_EQ(machine.read(range("a", "z")), "@6 [d=1 c5 m5 v1] of 1");
  EXPECT_EQ(machine.read(range("a", "z", 5)),
            "@6 [a=1 c3 m3 v1 l7, b=1 c4 m4 v1 l7, c=1 c2 m2 v1 l7, d=1 c5 m5 v1] of 4");
  EXPECT_EQ(machine.run(machine.revoke(7)), "error 5: etcdserver: requested lease not found");
  EXPECT_TRUE(machine.content->leases.empty());
  machine.run(machine.grant(8));
  EXPECT_EQ(machine.run(machine.revoke(8)), "@6 revoked") << "no keys, no revision";
}

TEST(Leases, TheLeadersDecisionsCountInItsTermOnly) {
  Machine machine;
  machine.run(machine.grant(7, 100));
  machine.term = 5;
  EXPECT_EQ(machine.run(machine.revoke(7, 4)), "error 9: etcdserver: decided by a leader of another term");
  EXPECT_EQ(machine.run(machine.checkpoint({{7, 30}}, 4)), "error 9: etcdserver: decided by a leader of another term");
  EXPECT_EQ(changes(machine.last), "");
  EXPECT_EQ(machine.leases->find(7)->remaining, 0);
  EXPECT_EQ(machine.run(machine.checkpoint({{7, 30}, {99, 5}}, 5)), "ok") << "a lease that is gone is left out";
  EXPECT_EQ(changes(machine.last), "checkpointed 7 at 30 ");
  EXPECT_EQ(machine.content->leases.at(7), (store::LeaseRow{.id = 7, .ttl = 100, .remaining = 30}));
  EXPECT_EQ(machine.run(machine.checkpoint({{7, 0}}, 5)), "ok");
  EXPECT_EQ(changes(machine.last), "reset 7 ");
  EXPECT_EQ(machine.leases->find(7)->remaining, 0);
  EXPECT_EQ(machine.run(machine.checkpoint({{7, 1000}})), "ok");
  EXPECT_EQ(machine.leases->find(7)->remaining, 100) << "never more than granted";
  EXPECT_EQ(machine.run(machine.revoke(7, 5)), "@1 revoked");
}

TEST(Leases, SurviveARestart) {
  Machine machine;
  machine.run(machine.grant(7, 100));
  machine.run(machine.checkpoint({{7, 40}}));
  machine.run(put("a", "1", 7));
  machine.run(put("b", "1", 7));
  machine.run(put("b", "2"));
  machine.open();
  EXPECT_EQ(machine.leases->find(7)->remaining, 40);
  EXPECT_EQ(machine.leases->keys(7), std::vector<Bytes>{"a"});
  EXPECT_EQ(machine.run(machine.revoke(7)), "@5 revoked");
  EXPECT_EQ(machine.read(range("a", "z")), "@5 [b=2 c3 m4 v2] of 1");
}

TEST(Compaction, Rules) {
  Machine machine;
  EXPECT_EQ(machine.run(machine.compaction(-1)), kCompactedText);
  EXPECT_EQ(machine.run(machine.compaction(0)), "@1 compacted") << "once, as etcd";
  EXPECT_EQ(machine.run(machine.compaction(0)), kCompactedText);
  for (const char* value : {"1", "2", "3"}) machine.run(put("a", value));
  EXPECT_EQ(machine.run(machine.compaction(5)), kFutureText);
  EXPECT_EQ(machine.run(machine.compaction(3)), "@4 compacted");
  EXPECT_EQ(machine.run(machine.compaction(3)), kCompactedText);
  EXPECT_EQ(machine.run(machine.compaction(2)), kCompactedText);
  EXPECT_EQ(machine.read(range("a", "", 2)), kCompactedText) << "before any row is gone";
  EXPECT_EQ(machine.read(range("a", "", 3)), "@4 [a=2 c2 m3 v2] of 1");
  EXPECT_EQ(machine.hub.heard, "c0 2:a=1 3:a=2 4:a=3 c3 ");
  EXPECT_EQ(machine.content->rows.size(), 3u);
  EXPECT_EQ(machine.settle(), "");
  EXPECT_EQ(machine.content->rows.size(), 2u);
  EXPECT_EQ(machine.content->meta.compacted, 3);
  EXPECT_EQ(machine.content->meta.compaction_finished, 3);
  EXPECT_EQ(machine.read(range("a", "", 3)), "@4 [a=2 c2 m3 v2] of 1");
  EXPECT_EQ(machine.run(machine.compaction(4)), "@4 compacted");
  EXPECT_EQ(machine.run(with_previous(put("a", "4"))), "@5 before a=3 c2 m4 v3");
}

TEST(Compaction, APhysicalOneIsAnsweredWhenTheRowsAreGone) {
  Machine machine;
  for (int i = 0; i < 1000; ++i) machine.run(put("a", std::to_string(i)));
  EXPECT_EQ(machine.run(machine.compaction(1001, true)), "later");
  auto slice = machine.applier->step();
  ASSERT_TRUE(slice);
  EXPECT_TRUE(slice->more);
  EXPECT_TRUE(slice->outcomes.empty()) << "one slice does not remove 999 rows";
  EXPECT_EQ(machine.run(put("b")), "@1002") << "life goes on between slices";
  EXPECT_EQ(machine.settle(), "77 @1001 compacted ");
  EXPECT_EQ(machine.content->rows.size(), 2u);
  EXPECT_EQ(machine.settle(), "");
}

TEST(Compaction, WhileHeldIsPublishedButDeletesNothing) {
  Machine machine;
  for (int i = 0; i < 5; ++i) machine.run(put("a", std::to_string(i)));  // 2..6
  machine.applier->hold_compaction(true);
  EXPECT_EQ(machine.run(machine.compaction(6, true)), "later");
  EXPECT_EQ(machine.mvcc->published().compacted, 6);
  EXPECT_EQ(machine.settle(), "");
  EXPECT_EQ(machine.content->rows.size(), 5u);
  machine.applier->hold_compaction(false);
  EXPECT_EQ(machine.settle(), "77 @6 compacted ");
  EXPECT_EQ(machine.content->rows.size(), 1u);
}

TEST(Compaction, GoesOnAfterARestart) {
  Machine machine;
  for (int i = 0; i < 1000; ++i) machine.run(put("a", std::to_string(i)));
  machine.run(machine.compaction(900));
  ASSERT_TRUE(machine.applier->step());
  machine.open();
  EXPECT_EQ(machine.read(range("a", "", 899)), kCompactedText);
  EXPECT_EQ(machine.settle(), "");
  EXPECT_EQ(machine.content->rows.size(), 102u);
  EXPECT_EQ(machine.read(range("a", "", 900)), "@1001 [a=898 c2 m900 v899] of 1");
}

TEST(Compaction, SeenByTheEntriesAfterItInTheSameBatch) {
  Machine machine;
  std::vector<LogEntry> batch;
  for (const char* value : {"1", "2", "3"}) batch.push_back(machine.log(machine.command(put("a", value))));
  batch.push_back(machine.log(machine.compaction(3)));
  batch.push_back(machine.log(machine.compaction(3)));
  batch.push_back(machine.log(machine.command(txn({}, {op(range("a", "", 2))}))));
  batch.push_back(machine.log(machine.compaction(4)));
  auto applied = machine.applier->apply(batch);
  ASSERT_TRUE(applied);
  ASSERT_EQ(applied->outcomes.size(), 7u);
  EXPECT_EQ(show(applied->outcomes[3].response), "@4 compacted");
  EXPECT_EQ(show(applied->outcomes[4].response), kCompactedText);
  EXPECT_EQ(show(applied->outcomes[5].response), kCompactedText);
  EXPECT_EQ(show(applied->outcomes[6].response), "@4 compacted");
  EXPECT_EQ(machine.hub.heard, "2:a=1 3:a=2 4:a=3 c4 ");
  EXPECT_EQ(machine.mvcc->published().compacted, 4);
}

TEST(Compaction, AFailedSliceIsTriedAgain) {
  for (int call = 1; call <= 6; ++call) {
    Machine machine;
    for (int i = 0; i < 5; ++i) machine.run(put("a", std::to_string(i)));
    machine.run(machine.compaction(6, true));
    machine.store().fail(call, {Code::kResourceExhausted, "full"});
    EXPECT_EQ(machine.settle(), "error: full") << call;
    EXPECT_EQ(machine.content->rows.size(), 5u) << call;
    EXPECT_EQ(machine.read(range("a")), "@6 [a=4 c2 m6 v5] of 1");
    EXPECT_EQ(machine.settle(), "77 @6 compacted ") << call;
    EXPECT_EQ(machine.content->rows.size(), 1u) << call;
  }
}

TEST(Vacuum, GivesPagesBackOnlyWhenManyAreFree) {
  Machine machine;
  machine.store().reported = {.size_bytes = 100 << 20, .size_in_use_bytes = 80 << 20};
  EXPECT_EQ(machine.settle(), "");
  EXPECT_EQ(machine.store().vacuums, 0) << "a fifth is left for later writes";
  machine.store().reported = {.size_bytes = 100 << 20, .size_in_use_bytes = 50 << 20};
  EXPECT_EQ(machine.settle(), "");
  EXPECT_EQ(machine.store().vacuums, 42) << "down to 58 MiB, where 8 are free";
  machine.store().reported = {.size_bytes = 100 << 20, .size_in_use_bytes = 50 << 20};
  machine.store().fail(1, {Code::kResourceExhausted, "full"});
  EXPECT_EQ(machine.settle(), "error: full");
}

TEST(Alarm, NoSpaceRefusesWhatGrows) {
  Machine machine;
  machine.run(put("a", "1"));
  machine.run(machine.grant(7));
  EXPECT_EQ(machine.run(machine.alarm(AlarmRequest::ACTIVATE, etcdserverpb::NOSPACE)), "@2 alarms [1:1]");
  EXPECT_EQ(machine.applier->alarms().size(), 1u);
  machine.open();
  const std::string full = "error 8: etcdserver: mvcc: database space exceeded";
  EXPECT_EQ(machine.run(put("a", "2")), full);
  EXPECT_EQ(machine.run(machine.grant(8)), full);
  EXPECT_EQ(machine.run(txn({}, {op(put("b"))})), full);
  EXPECT_EQ(machine.run(txn({}, {}, {op(put("b"))})), full) << "the branch not taken counts, too";
  EXPECT_EQ(machine.run(txn({}, {op(txn({}, {op(put("b"))}))})), full);
  EXPECT_EQ(machine.run(txn({}, {op(range("a"))})), "@2 yes [range @2 [a=1 c2 m2 v1] of 1]");
  EXPECT_EQ(machine.run(txn({}, {op(erase("b"))})), "@2 yes [delete @2 deleted 0]");
  EXPECT_EQ(machine.run(erase("a")), "@3 deleted 1");
  EXPECT_EQ(machine.run(machine.revoke(7)), "@3 revoked");
  EXPECT_EQ(machine.run(machine.compaction(3)), "@3 compacted");
  EXPECT_EQ(machine.run(machine.alarm(AlarmRequest::DEACTIVATE, etcdserverpb::NOSPACE)), "@3 alarms [1:1]");
  EXPECT_EQ(machine.run(put("a", "3")), "@4");
  EXPECT_EQ(machine.run(machine.alarm(AlarmRequest::GET, etcdserverpb::NONE)), "@4 alarms []");
}

TEST(Alarm, CorruptRefusesWritesLeasesAndCompaction) {
  Machine machine;
  machine.run(put("a", "1"));
  machine.run(machine.grant(7));
  machine.run(machine.alarm(AlarmRequest::ACTIVATE, etcdserverpb::NOSPACE));
  machine.run(machine.alarm(AlarmRequest::ACTIVATE, etcdserverpb::CORRUPT));
  const std::string corrupt = "error 15: etcdserver: corrupt cluster";
  EXPECT_EQ(machine.run(put("a", "2")), corrupt) << "before space";
  EXPECT_EQ(machine.run(erase("a")), corrupt);
  EXPECT_EQ(machine.run(txn({}, {op(erase("a"))})), corrupt);
  EXPECT_EQ(machine.run(machine.compaction(2)), corrupt);
  EXPECT_EQ(machine.run(machine.grant(8)), corrupt);
  EXPECT_EQ(machine.run(machine.revoke(7)), corrupt);
  EXPECT_EQ(changes(machine.last), "");
  EXPECT_EQ(machine.run(machine.revoke(7, machine.term)), corrupt);
  EXPECT_EQ(changes(machine.last), "refused 7 ") << "the leader has to try again";
  EXPECT_EQ(machine.run(machine.checkpoint({{7, 9}})), "ok");
  EXPECT_EQ(machine.read(range("a")), "@2 [a=1 c2 m2 v1] of 1");
  machine.run(machine.alarm(AlarmRequest::DEACTIVATE, etcdserverpb::CORRUPT));
  EXPECT_EQ(machine.run(machine.revoke(7, machine.term)), "@2 revoked");
}

TEST(MembersOfTheCluster, BootstrapOnceThenAttributes) {
  Machine machine;
  ASSERT_TRUE(machine.applier->bootstrap({{.id = 5, .name = {}, .peer_urls = {"http://p"}, .client_urls = {}}}));
  EXPECT_EQ(machine.applier->bootstrap({}).error().code, Code::kFailedPrecondition);
  conclavepb::Entry entry;
  entry.set_version(kEntryVersion);
  entry.mutable_member_attributes()->set_id(5);
  entry.mutable_member_attributes()->set_name("five");
  entry.mutable_member_attributes()->add_client_urls("http://c");
  EXPECT_EQ(machine.run(entry), "ok");
  entry.mutable_member_attributes()->set_id(6);
  EXPECT_EQ(machine.run(entry), "error 5: etcdserver: member not found");
  machine.open();
  const Member expected{.id = 5, .name = "five", .peer_urls = {"http://p"}, .client_urls = {"http://c"}};
  EXPECT_EQ(machine.applier->members(), std::vector<Member>{expected});
}

TEST(MembersOfTheCluster, ChangesThroughTheLog) {
  Machine machine;
  ASSERT_TRUE(machine.applier->bootstrap({{.id = 5, .name = {}, .peer_urls = {"http://p"}, .client_urls = {}}}));
  conclavepb::MembershipChange change;
  change.set_kind(conclavepb::MembershipChange::ADD);
  change.set_id(6);
  change.add_peer_urls("http://q");
  change.set_request_id(42);
  LogEntry log{.index = ++machine.index,
               .term = machine.term,
               .type = EntryType::kMembership,
               .data = std::make_shared<const Bytes>(change.SerializeAsString())};
  auto applied = machine.applier->apply({&log, 1});
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->outcomes.at(0).request_id, 42u);
  EXPECT_EQ(show(applied->outcomes.at(0).response), "ok");
  EXPECT_EQ(machine.applier->members().size(), 2u);
  log.index = ++machine.index;
  applied = machine.applier->apply({&log, 1});
  ASSERT_TRUE(applied);
  EXPECT_EQ(show(applied->outcomes.at(0).response), "error 9: etcdserver: member ID already exist");
}

TEST(Entries, TheNoOpOfALeaderMovesTheAppliedIndexOnly) {
  Machine machine;
  const LogEntry empty{.index = 1, .term = 9, .type = EntryType::kCommand};
  auto applied = machine.applier->apply({&empty, 1});
  ASSERT_TRUE(applied);
  ASSERT_EQ(applied->outcomes.size(), 1u);
  EXPECT_EQ(applied->outcomes[0].request_id, 0u);
  EXPECT_EQ(show(applied->outcomes[0].response), "ok");
  EXPECT_EQ(machine.content->meta.applied_index, 1u);
  EXPECT_EQ(machine.content->meta.applied_term, 9u);
  EXPECT_EQ(machine.mvcc->published().applied_index, 1u);
  EXPECT_EQ(machine.mvcc->published().applied_term, 9u);
  EXPECT_EQ(machine.mvcc->published().revision, 1);
  EXPECT_EQ(machine.hub.heard, "");
  EXPECT_TRUE(machine.applier->apply({})) << "no entry at all";
}

TEST(Entries, OutcomesSayWhoAsked) {
  Machine machine;
  std::vector<LogEntry> batch{machine.log(machine.command(put("a"))), machine.log(machine.command(put("", "b")))};
  auto applied = machine.applier->apply(batch);
  ASSERT_TRUE(applied);
  ASSERT_EQ(applied->outcomes.size(), 2u);
  EXPECT_EQ(applied->outcomes[1].index, 2u);
  EXPECT_EQ(applied->outcomes[1].term, 3u);
  EXPECT_EQ(applied->outcomes[1].request_id, 77u);
  EXPECT_EQ(applied->outcomes[1].proposer, 1u);
  EXPECT_FALSE(applied->outcomes[1].response);
}

TEST(Entries, NewerVersionsAndGarbageStopTheMember) {
  Machine machine;
  conclavepb::Entry entry = machine.command(put("a"));
  entry.set_version(kEntryVersion + 1);
  EXPECT_EQ(machine.run(entry),
            "stops: entry 1 of the log is of version 2, this program knows 1 at most: start a newer release of it on "
            "this data");
  LogEntry garbage{
      .index = 1, .term = 3, .type = EntryType::kCommand, .data = std::make_shared<const Bytes>("\xff\xff")};
  auto applied = machine.applier->apply({&garbage, 1});
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error(), (Error{Code::kDataLoss, "entry 1 of the log is not a command of ours"}));
  garbage.type = EntryType::kMembership;
  EXPECT_EQ(machine.applier->apply({&garbage, 1}).error().code, Code::kDataLoss);
  entry.set_version(kEntryVersion);
  entry.clear_put();
  EXPECT_EQ(machine.run(entry), "error 3: etcdserver: entry without a command");
  EXPECT_EQ(machine.run(put("a")), "@2");
}

TEST(Entries, WhatWouldStopTheMemberIsSeenBefore) {
  Machine machine;
  conclavepb::Entry entry = machine.command(put("a"));
  EXPECT_TRUE(check_command(entry.SerializeAsString()));
  entry.set_version(kEntryVersion + 1);
  EXPECT_EQ(check_command(entry.SerializeAsString()).error(),
            (Error{Code::kFailedPrecondition, "etcdserver: entry of version 2, the leader knows 1 at most"}));
  EXPECT_EQ(check_command("\xff\xff").error(),
            (Error{Code::kInvalidArgument, "etcdserver: entry that cannot be read"}));
  entry.set_version(kEntryVersion);
  entry.clear_put();
  EXPECT_EQ(check_command(entry.SerializeAsString()).error(), (Error{Code::kInvalidArgument, kErrorNoCommand}));
}

TEST(Entries, RangesThatNobodyHereWaitsForAreNotRead) {
  Machine machine;
  machine.member_id = 1;
  machine.open();
  machine.run(put("a", "1"));
  const TxnRequest request = txn({}, {op(put("b")), op(range("a"))});
  EXPECT_EQ(machine.run(request), "@3 yes [put @3, range @3 [a=1 c2 m2 v1] of 1]");
  conclavepb::Entry entry = machine.command(request);
  entry.set_proposer(2);
  EXPECT_EQ(machine.run(entry), "@4 yes [put @4, range @4 [] of 0]");
  entry.set_proposer(1);
  entry.set_request_id(0);
  EXPECT_EQ(machine.run(entry), "@5 yes [put @5, range @5 [] of 0]");
}

TEST(EntriesDeath, AGapIsOurFault) {
  Machine machine;
  machine.index = 1;
  EXPECT_DEATH(machine.run(put("a")), "applied_index");
  machine.index = 0;
  machine.run(put("a"));
  machine.term = 2;
  EXPECT_DEATH(machine.run(put("a")), "applied_term");
}

}  // namespace
}  // namespace apply
