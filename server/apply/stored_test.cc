// The applier on the real store, over a disk that fills up and loses power.
#include <gtest/gtest.h>

#include <chrono>

#include "apply/machine_test.h"
#include "apply/trace_test.h"
#include "base/memory_disk.h"

namespace apply {
namespace {

constexpr uint64_t kRoomy = 1ULL << 50;
const std::string kFolder = "/data";

Machine::OpenStore open_on(MemoryDisk& disk) {
  return [&disk]() -> std::unique_ptr<store::Store> {
    EXPECT_TRUE(disk.create_directory(kFolder));
    EXPECT_TRUE(disk.sync_directory("/"));
    auto store = store::Store::open(disk, {.directory = kFolder, .readers_max = 2}, std::nullopt);
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  };
}

uint64_t used(MemoryDisk& disk) {
  disk.set_capacity(kRoomy);
  return kRoomy - *disk.free_bytes(kFolder);
}

struct Expected {
  Trace trace;
  uint64_t content_hash = 0;
  std::string leases;
  std::string everything;
  std::vector<Member> members;
  store::Meta meta;
};

etcdserverpb::RangeRequest all_keys() { return build::range(build::kOpenEnd, build::kOpenEnd); }

Expected on_the_fake_store(const std::vector<LogEntry>& log) {
  Machine machine;
  Expected expected;
  EXPECT_TRUE(machine.applier->bootstrap(kMembers));
  for (const LogEntry& entry : log) {
    auto applied = machine.applier->apply({&entry, 1});
    EXPECT_TRUE(applied);
    expected.trace.add(*applied);
  }
  machine.settle();
  expected.content_hash = machine.mvcc->content_hash();
  expected.leases = describe(*machine.leases);
  expected.everything = machine.read(all_keys());
  expected.members = machine.applier->members();
  expected.meta = machine.content->meta;
  return expected;
}

void expect_end(Machine& machine, const Expected& expected) {
  EXPECT_EQ(machine.mvcc->content_hash(), expected.content_hash);
  EXPECT_EQ(describe(*machine.leases), expected.leases);
  EXPECT_EQ(machine.read(all_keys()), expected.everything);
  EXPECT_EQ(machine.applier->members(), expected.members);
  for (bool more = true; more;) {
    auto slice = machine.applier->step();
    ASSERT_TRUE(slice) << slice.error().message;
    more = slice->more;
  }
  EXPECT_EQ(machine.any_store->meta(), expected.meta);
  EXPECT_EQ(machine.read(all_keys()), expected.everything);
}

class Stored : public testing::TestWithParam<unsigned> {};

TEST_P(Stored, FullDiskThenTheSameEntriesAgain) {
  const std::vector<LogEntry> log = random_log(GetParam());
  const Expected expected = on_the_fake_store(log);
  RandomEntries random(GetParam() + 2000);
  MemoryDisk disk;
  Machine machine(open_on(disk));
  ASSERT_TRUE(machine.applier->bootstrap(kMembers));
  Trace trace;
  int full = 0;
  for (size_t at = 0; at < log.size();) {
    const size_t size = std::min<size_t>(log.size() - at, 1 + random.pick(40));
    // Little room until it was too little once, so that every seed sees that.
    if (full == 0 || random.one_in(2)) disk.set_capacity(used(disk) + random.pick(full == 0 ? 4'000 : 40'000));
    auto applied = machine.applier->apply({&log[at], size});
    if (applied) {
      trace.add(*applied);
      at += size;
    } else {
      ++full;
      ASSERT_EQ(applied.error().code, Code::kResourceExhausted) << applied.error().message;
    }
    if (random.one_in(3)) {
      auto slice = machine.applier->step();
      if (!slice) {
        ASSERT_EQ(slice.error().code, Code::kResourceExhausted) << slice.error().message;
      }
    }
    disk.set_capacity(kRoomy);
    if (random.one_in(10)) machine.open();
  }
  EXPECT_GT(full, 0);
  for (const auto& [index, answer] : trace.answers) {
    auto before = expected.trace.answers.find(index);
    ASSERT_NE(before, expected.trace.answers.end()) << index;
    EXPECT_EQ(answer, before->second) << index;
  }
  expect_end(machine, expected);
}

TEST_P(Stored, PowerCutsThenTheLogFromWhereTheStoreIs) {
  const std::vector<LogEntry> log = random_log(GetParam());
  const Expected expected = on_the_fake_store(log);
  RandomEntries random(GetParam() + 3000);
  SeededRandom losses(GetParam());
  MemoryDisk disk;
  auto machine = std::make_unique<Machine>(open_on(disk));
  ASSERT_TRUE(machine->applier->bootstrap(kMembers));
  int cuts = 0;
  for (size_t at = 0; at < log.size();) {
    const size_t size = std::min<size_t>(log.size() - at, 1 + random.pick(40));
    auto applied = machine->applier->apply({&log[at], size});
    ASSERT_TRUE(applied) << applied.error().message;
    at += size;
    if (random.one_in(3)) {
      ASSERT_TRUE(machine->applier->step());
    }
    if (!random.one_in(12)) continue;
    ++cuts;
    machine.reset();
    disk.crash(losses);
    machine = std::make_unique<Machine>(open_on(disk));
    if (machine->any_store->meta().membership.empty()) {
      ASSERT_TRUE(machine->applier->bootstrap(kMembers));
    }
    ASSERT_LE(machine->any_store->meta().applied_index, at);
    at = machine->any_store->meta().applied_index;
  }
  EXPECT_GT(cuts, 0);
  expect_end(*machine, expected);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Stored, testing::Range(1u, 13u));

}  // namespace
}  // namespace apply
