// Apply is a function of the log: however it is cut into batches, whatever fails and is tried again, wherever the
// member was started again, the answers, the content and what watchers hear are the same.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "apply/machine_test.h"
#include "apply/trace_test.h"

namespace apply {
namespace {

std::string heard_without_compactions(const std::string& heard) {
  std::string kept;
  std::istringstream words(heard);
  for (std::string word; words >> word;) {
    if (word[0] != 'c') kept += word + " ";
  }
  return kept;
}

void expect_equal(const fake::Content& a, const fake::Content& b) {
  EXPECT_EQ(a.meta, b.meta);
  EXPECT_EQ(a.leases, b.leases);
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (const auto& [id, row] : a.rows) {
    auto other = b.rows.find(id);
    ASSERT_NE(other, b.rows.end()) << id;
    EXPECT_EQ(row.key, other->second.key);
    EXPECT_EQ(row.value, other->second.value);
    EXPECT_EQ(row.create_revision, other->second.create_revision);
    EXPECT_EQ(row.version, other->second.version);
    EXPECT_EQ(row.lease, other->second.lease);
  }
}

// One entry a batch, nothing fails.
void replay_plainly(const std::vector<LogEntry>& log, Machine* machine, Trace* trace) {
  ASSERT_TRUE(machine->applier->bootstrap(kMembers));
  for (const LogEntry& entry : log) {
    auto applied = machine->applier->apply({&entry, 1});
    ASSERT_TRUE(applied) << applied.error().message;
    trace->add(*applied);
    // An answer to a physical compaction does not survive a restart: here all of them come at once.
    for (bool more = true; more;) {
      auto slice = machine->applier->step();
      ASSERT_TRUE(slice);
      trace->add(slice->outcomes);
      more = slice->more;
    }
  }
}

class Replay : public testing::TestWithParam<unsigned> {};

TEST_P(Replay, InAnyBatchesWithFailuresAndRestarts) {
  const std::vector<LogEntry> log = random_log(GetParam());
  Machine plain;
  Trace expected;
  replay_plainly(log, &plain, &expected);

  RandomEntries random(GetParam() + 1000);
  Machine rough;
  Trace trace;
  int failures = 0;
  int restarts = 0;
  ASSERT_TRUE(rough.applier->bootstrap(kMembers));
  for (size_t at = 0; at < log.size();) {
    const size_t size = std::min<size_t>(log.size() - at, 1 + random.pick(random.one_in(4) ? 60 : 5));
    if (random.one_in(3)) rough.store().fail(1 + random.pick(12), {Code::kResourceExhausted, "disk full"});
    const fake::Content before = *rough.content;
    const std::string leases_before = describe(*rough.leases);
    const std::string heard_before = rough.hub.heard;
    const uint64_t hash_before = rough.mvcc->content_hash();
    const auto members_before = rough.applier->members();
    auto applied = rough.applier->apply({&log[at], size});
    if (applied) {
      trace.add(*applied);
      at += size;
    } else {
      ++failures;
      ASSERT_EQ(applied.error().message, "disk full");
      expect_equal(*rough.content, before);
      ASSERT_EQ(describe(*rough.leases), leases_before);
      ASSERT_EQ(rough.hub.heard, heard_before);
      ASSERT_EQ(rough.mvcc->content_hash(), hash_before);
      ASSERT_EQ(rough.mvcc->published().revision, before.meta.revision);
      ASSERT_EQ(rough.applier->members(), members_before);
    }
    if (random.one_in(3)) {
      auto slice = rough.applier->step();
      if (slice) trace.add(slice->outcomes);
    }
    if (random.one_in(20)) {
      ++restarts;
      rough.open();
    }
  }
  EXPECT_GT(failures, 3);
  EXPECT_GT(restarts, 0);
  rough.store().fail(0, {});
  plain.settle();
  for (bool more = true; more;) {
    auto slice = rough.applier->step();
    ASSERT_TRUE(slice);
    trace.add(slice->outcomes);
    more = slice->more;
  }

  for (const auto& [index, answer] : trace.answers) EXPECT_EQ(answer, expected.answers[index]) << "entry " << index;
  EXPECT_EQ(trace.lease_changes, expected.lease_changes);
  EXPECT_EQ(trace.refused, expected.refused);
  EXPECT_EQ(heard_without_compactions(rough.hub.heard), heard_without_compactions(plain.hub.heard));
  EXPECT_EQ(rough.mvcc->content_hash(), plain.mvcc->content_hash());
  EXPECT_EQ(describe(*rough.leases), describe(*plain.leases));
  EXPECT_EQ(rough.applier->members(), plain.applier->members());
  expect_equal(*rough.content, *plain.content);
}

// The random log does exercise what it is meant to.
TEST(ReplayLog, MeetsManyOutcomes) {
  std::map<std::string, int> kinds;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Machine machine;
    Trace trace;
    replay_plainly(random_log(seed), &machine, &trace);
    for (const auto& [index, answer] : trace.answers) {
      kinds[answer.starts_with("error") ? answer : answer.starts_with("@") ? "fine" : answer]++;
    }
  }
  for (const char* text :
       {"fine", "ok", "error 3: etcdserver: key is not provided", "error 3: etcdserver: key not found",
        "error 3: etcdserver: duplicate key given in txn request", "error 3: etcdserver: invalid sort option",
        "error 5: etcdserver: requested lease not found", "error 5: etcdserver: member not found",
        "error 8: etcdserver: mvcc: database space exceeded", "error 9: etcdserver: lease already exists",
        "error 9: etcdserver: decided by a leader of another term",
        "error 11: etcdserver: mvcc: required revision has been compacted",
        "error 11: etcdserver: mvcc: required revision is a future revision",
        "error 15: etcdserver: corrupt cluster"}) {
    EXPECT_GT(kinds[text], 0) << text;
  }
  EXPECT_GT(kinds["fine"], 20 * kEntries / 3);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Replay, testing::Range(1u, 41u));

// Damaged commands: any answer or a clean refusal of the whole batch, never a crash, and nothing half done.
TEST(Fuzz, DamagedEntries) {
  const google::protobuf::LogSilencer silence;  // it tells of broken UTF-8
  RandomEntries random(4711);
  Machine machine;
  uint64_t stops = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes data = random.next(machine.index + 1, machine.term).SerializeAsString();
    for (int flips = random.pick(4); flips > 0 && !data.empty(); --flips) {
      data[random.pick(static_cast<int>(data.size()))] = static_cast<char>(random.pick(256));
    }
    if (random.one_in(10)) data.resize(random.pick(static_cast<int>(data.size()) + 1));
    const LogEntry entry{.index = machine.index + 1,
                         .term = machine.term,
                         .type = random.one_in(20) ? EntryType::kMembership : EntryType::kCommand,
                         .data = std::make_shared<const Bytes>(std::move(data))};
    auto applied = machine.applier->apply({&entry, 1});
    if (applied) {
      ++machine.index;
    } else {
      ++stops;
      ASSERT_TRUE(applied.error().code == Code::kDataLoss || applied.error().code == Code::kFailedPrecondition)
          << applied.error().message;
    }
    ASSERT_EQ(machine.content->meta.applied_index, machine.index);
    if (round % 1000 == 0) machine.open();
  }
  EXPECT_GT(stops, 100u);
  EXPECT_GT(machine.index, 5'000u);
}

TEST(Rollback, AnErrorOfTheStoreInTheMiddleLeavesNothing) {
  Machine machine;
  machine.run(machine.grant(7));
  machine.run(build::put("a", "1", 7));
  std::vector<LogEntry> batch{machine.log(machine.command(build::put("a", "2"))), machine.log(machine.grant(8)),
                              machine.log(machine.revoke(7)), machine.log(machine.compaction(2, true)),
                              machine.log(machine.alarm(etcdserverpb::AlarmRequest::ACTIVATE, etcdserverpb::NOSPACE))};
  for (int call = 1; call <= 6; ++call) {
    machine.store().fail(call, {Code::kDataLoss, "broken"});
    auto applied = machine.applier->apply(batch);
    ASSERT_FALSE(applied) << call;
    EXPECT_EQ(applied.error(), (Error{Code::kDataLoss, "broken"}));
    EXPECT_EQ(machine.leases->keys(7), std::vector<Bytes>{"a"});
    EXPECT_FALSE(machine.leases->find(8));
    EXPECT_TRUE(machine.applier->alarms().empty());
    EXPECT_EQ(machine.read(build::range("a")), "@2 [a=1 c2 m2 v1 l7] of 1");
    EXPECT_EQ(machine.mvcc->published().compacted, -1);
    EXPECT_EQ(machine.settle(), "");
  }
  auto applied = machine.applier->apply(batch);
  ASSERT_TRUE(applied);
  EXPECT_EQ(machine.hub.heard, "2:a=1 3:a=2 c2 ");
  EXPECT_EQ(machine.settle(), "77 @3 compacted ");
  EXPECT_EQ(machine.applier->alarms().size(), 1u);
}

}  // namespace
}  // namespace apply
