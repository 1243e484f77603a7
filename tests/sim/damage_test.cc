// A disk that flips bits, fails, and fills up under a whole member. CONCLAVE_SIM_FLIPS: flips for each kind of file
// (default 150; the release checklist asks for 1,000).
#include "mvcc/mvcc.h"
#include "sim/seeds.h"

namespace sim {
namespace {

const std::string kStore = "data/store/0-0/store.db";

struct Left {
  std::unique_ptr<MemoryDisk> disk;
  std::map<int64_t, Workload::Change> history;
  std::map<std::string, std::string> latest;
};

// What SQLite's -wal is like when the member is killed.
enum class Journal {
  kAsItComes,
  kCopied,   // into the database, whole, but still there
  kRenewed,  // begun anew after that: most of the content is in the database alone
};

// A member at work, killed once everything it was asked is answered.
Left killed_member(uint64_t seed, Journal journal) {
  Simulation simulation(seed);
  Workload workload(simulation);
  workload.compacts = false;  // all that was written stays in the files
  EXPECT_TRUE(simulation.open(default_options()));
  EXPECT_TRUE(leads(simulation));
  work(simulation, workload, 12'000);
  EXPECT_TRUE(workload.settle());
  if (journal != Journal::kAsItComes) {  // idle: the checkpoint stage catches up when it is asked for
    auto options = default_options();
    options.checkpoint_from_bytes = 1;
    workload.disconnect();
    simulation.kill();
    EXPECT_TRUE(simulation.open(options));
    EXPECT_TRUE(leads(simulation));
    for (int i = 0; i < 3000; ++i) simulation.step();
  }
  if (journal == Journal::kRenewed) {
    work(simulation, workload, 40);
    EXPECT_TRUE(workload.settle());
  }
  workload.check();
  expect_no_faults(workload);
  workload.disconnect();
  simulation.kill();
  return {simulation.disk.clone(), workload.history(), workload.latest()};
}

enum class Verdict { kRefused, kSound, kSilentlyWrong };

// Opens what is left and reads all of it.
Verdict read_all(Simulation& simulation, const Left& expected) {
  if (!simulation.open(default_options())) return Verdict::kRefused;
  if (!leads(simulation)) return simulation.failure() ? Verdict::kRefused : Verdict::kSilentlyWrong;
  const auto reader = simulation.member().reader();
  if (reader->at().revision < expected.history.rbegin()->first) return Verdict::kSilentlyWrong;
  std::map<int64_t, Workload::Change> history;
  const int64_t from = std::max<int64_t>(2, reader->at().compacted);
  const Status read = reader->history(
      from, expected.history.rbegin()->first, [](std::string_view) { return true; },
      [&history](const mvcc::EventBatch& batch) {
        for (const auto& event : batch.events) {
          history[batch.revision][event.kv->key] = event.is_delete ? "" : event.kv->value;
        }
        return true;
      });
  if (!read) return Verdict::kRefused;
  // At the compacted revision itself only what is alive is left.
  for (auto it = expected.history.lower_bound(from + 1); it != expected.history.end(); ++it) {
    if (history[it->first] != it->second) return Verdict::kSilentlyWrong;
  }
  etcdserverpb::RangeRequest request;
  request.set_key(std::string(1, '\0'));
  request.set_range_end(std::string(1, '\0'));
  request.set_revision(expected.history.rbegin()->first);
  etcdserverpb::RangeResponse response;
  if (!reader->range(request, &response)) return Verdict::kRefused;
  std::map<std::string, std::string> latest;
  for (const auto& kv : response.kvs()) latest[kv.key()] = kv.value();
  return latest == expected.latest ? Verdict::kSound : Verdict::kSilentlyWrong;
}

void flip_bits(const Left& left, const std::string& path, uint64_t seed) {
  const auto content = left.disk->content(path);
  ASSERT_TRUE(content) << path;
  ASSERT_FALSE(content->empty()) << path;
  const uint64_t flips = setting("CONCLAVE_SIM_FLIPS", 150);
  SeededRandom random(seed);
  uint64_t refused = 0;
  for (uint64_t i = 0; i < flips; ++i) {
    const uint64_t bit = random.below(content->size() * 8);
    auto disk = left.disk->clone();
    disk->flip_bit(path, bit);
    Simulation simulation(i, std::move(disk));
    const Verdict verdict = read_all(simulation, left);
    ASSERT_NE(verdict, Verdict::kSilentlyWrong) << path << ", bit " << bit << " of " << content->size() * 8;
    refused += verdict == Verdict::kRefused;
  }
  std::printf("%s: %llu flips, %llu refused, %llu repaired or without effect\n", path.c_str(),
              static_cast<unsigned long long>(flips), static_cast<unsigned long long>(refused),
              static_cast<unsigned long long>(flips - refused));
}

TEST(Flips, InTheRaftLog) {
  const Left left = killed_member(1, Journal::kAsItComes);
  auto segments = left.disk->list("data/wal");
  ASSERT_TRUE(segments);
  std::erase_if(*segments, [](const std::string& name) { return !name.ends_with(".wal"); });
  ASSERT_FALSE(segments->empty());
  flip_bits(left, "data/wal/" + segments->front(), 1);
  if (segments->size() > 1) flip_bits(left, "data/wal/" + segments->back(), 2);
}

TEST(Flips, InTheDatabase) { flip_bits(killed_member(2, Journal::kRenewed), kStore, 3); }

TEST(Flips, InAJournalThatIsCopiedInPart) { flip_bits(killed_member(3, Journal::kAsItComes), kStore + "-wal", 4); }

TEST(Flips, InAJournalThatIsCopiedWhole) { flip_bits(killed_member(4, Journal::kCopied), kStore + "-wal", 5); }

TEST(Flips, InCurrent) { flip_bits(killed_member(5, Journal::kAsItComes), "data/CURRENT", 6); }

// Each kind of call fails once, somewhere; the member stops, or refuses, and after a new start nothing is lost.
TEST(Failing, NothingAcknowledgedIsLost) {
  using Operation = MemoryDisk::Operation;
  for_seeds(1, [](uint64_t seed) {
    Simulation simulation(seed);
    Workload workload(simulation);
    ASSERT_TRUE(simulation.open(default_options()));
    ASSERT_TRUE(leads(simulation));
    const Operation operations[] = {Operation::kWrite,    Operation::kSync,          Operation::kTruncate,
                                    Operation::kAllocate, Operation::kSyncDirectory, Operation::kRemove,
                                    Operation::kRename,   Operation::kOpen};
    for (int round = 0; round < 6; ++round) {
      MemoryDisk::Fault fault{.operation = operations[simulation.random.below(std::size(operations))]};
      fault.nth = 1 + simulation.random.below(60);
      fault.path = simulation.random.below(2) == 0 ? "data/wal" : "data/store";
      fault.code = simulation.random.below(3) == 0 ? Code::kResourceExhausted : Code::kDataLoss;
      fault.partial_bytes = simulation.random.below(2) * simulation.random.below(5000);
      fault.repeat = simulation.random.below(2) == 0;
      simulation.disk.inject(fault);
      work(simulation, workload, 4000);
      workload.disconnect();
      simulation.disk.clear_faults();
      simulation.kill();
      if (simulation.random.below(2) == 0) {
        simulation.disk.cut_power();
        simulation.disk.crash(simulation.random);
      }
      const Status opened = simulation.open(default_options());
      ASSERT_TRUE(opened) << opened.error().message;
      ASSERT_TRUE(leads(simulation));
      workload.check();
      expect_no_faults(workload);
      if (testing::Test::HasFailure()) return;
    }
  });
}

// The disk is full at any write; once there is space again the member goes on, by itself or after a new start.
TEST(Full, GoesOnAfterSpaceIsBack) {
  uint64_t by_itself = 0;
  for_seeds(1, [&by_itself](uint64_t seed) {
    Simulation simulation(seed);
    Workload workload(simulation);
    ASSERT_TRUE(simulation.open(default_options()));
    ASSERT_TRUE(leads(simulation));
    for (int round = 0; round < 6; ++round) {
      constexpr uint64_t kVast = 1ULL << 50;
      simulation.disk.set_capacity(kVast);
      const auto free = simulation.disk.free_bytes("data");
      ASSERT_TRUE(free);
      simulation.disk.set_capacity(kVast - *free + simulation.random.below(200'000));
      work(simulation, workload, 4000);
      simulation.disk.set_capacity(kVast);
      if (!simulation.failure()) {
        ASSERT_TRUE(workload.settle()) << (simulation.failure() ? simulation.failure()->message
                                                                : "requests are left unanswered");
        ++by_itself;
      } else {
        workload.disconnect();
        simulation.kill();
        const Status opened = simulation.open(default_options());
        ASSERT_TRUE(opened) << opened.error().message;
        ASSERT_TRUE(leads(simulation));
      }
      const uint64_t before = workload.acknowledged();
      work(simulation, workload, 1000);
      ASSERT_TRUE(workload.settle());
      EXPECT_GT(workload.acknowledged(), before) << "does not go on";
      workload.check();
      expect_no_faults(workload);
      if (testing::Test::HasFailure()) return;
    }
  });
  std::printf("went on without a new start %llu times\n", static_cast<unsigned long long>(by_itself));
}

}  // namespace
}  // namespace sim
