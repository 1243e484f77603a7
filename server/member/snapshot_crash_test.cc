// A power cut, a kill, a failing call at every disk call of making and of installing a snapshot: the member always
// starts, and its state is the old one or the new one.
#include "member/snapshot_install.h"
#include "member/test_machine.h"

namespace member {
namespace {

using Loss = MemoryDisk::Loss;
using Operation = MemoryDisk::Operation;

constexpr const char* kFile = "data/snap/incoming.part";
constexpr uint64_t kOld = 60;
constexpr uint64_t kNew = 250;

Loss loss_of(int run) { return run == 0 ? Loss::kEverything : run == 1 ? Loss::kNothing : Loss::kRandom; }

const std::vector<LogEntry>& the_log() {
  static const auto log = test::mixed_log(5);
  return log;
}

const test::State& the_state_at(uint64_t index) {
  static std::map<uint64_t, test::State> states;
  auto at = states.find(index);
  if (at == states.end()) at = states.emplace(index, test::state_at(the_log(), index)).first;
  return at->second;
}

// So small that an install checkpoints several times.
Options the_options() {
  Options options = test::small_options();
  options.store_wal_bytes_max = 160 << 10;
  return options;
}

// A snapshot at kNew.
const Bytes& the_snapshot() {
  static const Bytes content = [] {
    MemoryDisk disk;
    test::Machine leader(disk, the_options());
    EXPECT_TRUE(leader.open());
    EXPECT_TRUE(leader.run_to(the_log(), kNew));
    SnapshotMaker maker(leader.maker_parts());
    const auto made = test::make_snapshot(maker, 1);
    EXPECT_GT(made->bytes, 3 * the_options().store_wal_bytes_max / 2);
    return *disk.content(snapshot_path("data", made->at));
  }();
  return content;
}

// A member at kOld, with the snapshot beside it.
std::unique_ptr<MemoryDisk> a_member() {
  static const auto made = [] {
    auto disk = std::make_unique<MemoryDisk>();
    test::Machine member(*disk, the_options());
    EXPECT_TRUE(member.open());
    EXPECT_TRUE(member.run_to(the_log(), kOld / 2));
    EXPECT_TRUE(member.checkpoint());
    EXPECT_TRUE(member.run_to(the_log(), kOld));
    member.close();
    disk->put(kFile, as_bytes(the_snapshot()));
    return disk;
  }();
  return made->clone();
}

// Installs, opens, goes on for a while with a checkpoint, opens again.
Status install_and_live(MemoryDisk& disk, bool* in_force) {
  test::Machine member(disk, the_options());
  TRY(install_snapshot(disk, member.options, kFile, identity_of(member.options).cluster_id, kOld));
  *in_force = true;
  TRY(member.open());
  TRY(member.run_to(the_log(), kNew + 20));
  TRY(member.checkpoint());
  TRY(member.run_to(the_log(), kNew + 30));
  member.close();
  TRY(member.open());
  member.close();
  return {};
}

void expect_old_or_new(MemoryDisk& disk, bool must_be_new) {
  test::Machine member(disk, the_options());
  const Status opened = member.open();
  ASSERT_TRUE(opened) << opened.error().message;
  const uint64_t index = member.applied();
  const bool is_new = index >= kNew;
  EXPECT_TRUE(is_new || index == kOld) << index;
  EXPECT_TRUE(is_new || !must_be_new) << index;
  const auto state = member.state();
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_TRUE(*state == the_state_at(index)) << index;
  EXPECT_EQ(disk.list("data/store")->size(), 1u) << "no half of a generation is left";
  // It goes on: to the new state if it is not there, and beyond.
  member.close();
  if (!is_new) {
    disk.put(kFile, as_bytes(the_snapshot()));
    const auto installed = install_snapshot(disk, member.options, kFile, identity_of(member.options).cluster_id, kOld);
    ASSERT_TRUE(installed) << installed.error().message;
  }
  ASSERT_TRUE(member.open());
  const Status ran = member.run_to(the_log(), kNew + 60);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(*member.state() == the_state_at(kNew + 60));
}

class InstallCrash : public testing::TestWithParam<int> {};

TEST_P(InstallCrash, APowerCutAtEveryChangeLeavesTheOldOrTheNewState) {
  const auto whole = a_member();
  const uint64_t first = whole->changes();
  bool in_force = false;
  const Status lived = install_and_live(*whole, &in_force);
  ASSERT_TRUE(lived) << lived.error().message;
  const uint64_t changes = whole->changes();
  ASSERT_GT(changes - first, 200u);
  for (uint64_t cut = first; cut < changes; ++cut) {
    SCOPED_TRACE("cut at change " + std::to_string(cut) + " of " + std::to_string(changes));
    const auto disk = a_member();
    disk->cut_power_at(cut);
    in_force = false;
    ASSERT_FALSE(install_and_live(*disk, &in_force));
    SeededRandom random(cut * 100 + static_cast<uint64_t>(GetParam()));
    disk->crash(random, loss_of(GetParam()));
    expect_old_or_new(*disk, in_force);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Losses, InstallCrash, testing::Range(0, 4));

// Only the process dies: what it wrote is there, synced or not. Then the machine does, too.
TEST(InstallKill, AtEveryChangeThenAPowerCutWhileItStartsAgain) {
  const auto whole = a_member();
  const uint64_t first = whole->changes();
  bool in_force = false;
  ASSERT_TRUE(install_and_live(*whole, &in_force));
  const uint64_t changes = whole->changes();
  for (uint64_t kill = first; kill < changes; ++kill) {
    SCOPED_TRACE("killed at change " + std::to_string(kill));
    const auto disk = a_member();
    disk->cut_power_at(kill);
    in_force = false;
    ASSERT_FALSE(install_and_live(*disk, &in_force));
    disk->restart();
    SeededRandom random(kill);
    disk->cut_power_at(disk->changes() + random.below(30));
    {
      test::Machine member(*disk, the_options());
      if (member.open()) disk->cut_power();
    }
    disk->crash(random);
    expect_old_or_new(*disk, in_force);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(InstallFaults, AFailingCallEndsItAndTheNextStartIsGood) {
  for (const Operation operation :
       {Operation::kWrite, Operation::kSync, Operation::kTruncate, Operation::kOpen, Operation::kRename,
        Operation::kSyncDirectory, Operation::kRemoveDirectory, Operation::kCreateDirectory, Operation::kList,
        Operation::kExists, Operation::kRead, Operation::kSize, Operation::kRemove}) {
    const auto whole = a_member();
    const uint64_t before = whole->calls(operation);
    bool in_force = false;
    ASSERT_TRUE(install_and_live(*whole, &in_force));
    const uint64_t calls = whole->calls(operation) - before;
    for (uint64_t n = 1; n <= calls; ++n) {
      SCOPED_TRACE("call " + std::to_string(n) + " of kind " + std::to_string(static_cast<int>(operation)));
      const auto disk = a_member();
      disk->inject({.operation = operation, .nth = n, .path = {}, .partial_bytes = n * 100});
      in_force = false;
      (void)install_and_live(*disk, &in_force);
      disk->restart();
      expect_old_or_new(*disk, in_force);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// Makes one while entries and compactions go on.
Status make_and_live(test::Machine& leader, uint64_t* told) {
  TRY(leader.open());
  TRY(leader.run_to(the_log(), 250));
  SnapshotMaker maker(leader.maker_parts());
  Status lived;
  const auto made = test::make_snapshot(maker, 1, [&] {
    if (lived) lived = leader.run_to(the_log(), leader.applied() + 5);
    if (lived) lived = leader.settle();
    if (lived && leader.applied() % 3 == 0) lived = leader.checkpoint();
  });
  if (made) *told = made->at.index;
  if (!made) return ::fail(made.error());
  return lived;
}

class MakeCrash : public testing::TestWithParam<int> {};

TEST_P(MakeCrash, APowerCutAtEveryChangeHarmsNothing) {
  MemoryDisk whole;
  uint64_t told = 0;
  uint64_t first = 0;
  {
    test::Machine leader(whole, the_options());
    ASSERT_TRUE(leader.open());
    leader.close();
    first = whole.changes();
    ASSERT_TRUE(make_and_live(leader, &told));
  }
  ASSERT_GT(whole.changes() - first, 100u);
  for (uint64_t cut = first; cut < whole.changes(); ++cut) {
    SCOPED_TRACE("cut at change " + std::to_string(cut) + " of " + std::to_string(whole.changes()));
    MemoryDisk disk;
    told = 0;
    {
      test::Machine leader(disk, the_options());
      ASSERT_TRUE(leader.open());
      leader.close();
      disk.cut_power_at(cut);
      (void)make_and_live(leader, &told);
    }
    SeededRandom random(cut * 100 + static_cast<uint64_t>(GetParam()));
    disk.crash(random, loss_of(GetParam()));
    test::Machine leader(disk, the_options());
    const Status opened = leader.open();
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(*leader.state() == the_state_at(leader.applied()));
    // The one somebody was told of is there; whatever is there is good.
    SnapshotMaker maker(leader.maker_parts());
    maker.step();
    const auto found = *list_snapshots(disk, "data");
    EXPECT_TRUE(told == 0 || found.size() == 1u);
    EXPECT_FALSE(*disk.exists(unfinished_snapshot_path("data")));
    if (leader.applied() == 0) continue;
    const auto made = test::make_snapshot(maker, told);
    ASSERT_TRUE(made) << made.error().message;
    auto reader = snapshot::Reader::open(disk, snapshot_path("data", made->at));
    ASSERT_TRUE(reader);
    snapshot::Reader::Chunk chunk;
    for (bool more = true; more;) {
      const auto next = (*reader)->next(chunk);
      ASSERT_TRUE(next) << next.error().message;
      more = *next;
    }
    EXPECT_EQ((*reader)->manifest().content_hash, the_state_at(made->at.index).meta.content_hash);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Losses, MakeCrash, testing::Range(0, 3));

}  // namespace
}  // namespace member
