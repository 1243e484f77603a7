// For the tests of snapshots: a member without Raft. It logs entries, applies them, compacts and checkpoints as the
// real one does, in one thread, over a simulated disk; and what its state has to be follows from the log alone.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "apply/machine_test.h"
#include "apply/trace_test.h"
#include "base/memory_disk.h"
#include "member/data_folder.h"
#include "member/snapshot_make.h"

namespace member::test {

// Each look at it takes a while, so that slices end.
class StepClock final : public Clock {
 public:
  std::chrono::nanoseconds monotonic() override { return now += step; }
  std::chrono::nanoseconds wall() override { return now; }
  std::chrono::nanoseconds now = std::chrono::seconds(1);
  std::chrono::nanoseconds step = std::chrono::microseconds(1100);
};

inline Options small_options() {
  Options options;
  options.data_dir = "data";
  options.peer_urls = {"http://127.0.0.1:2380"};
  options.log_segment_bytes = 64 << 10;
  options.store_wal_bytes_max = 512 << 10;
  options.cache_bytes = 3 << 20;
  return options;
}

// Random entries, and between them puts of values over several pages, so that a store is worth some transactions.
inline std::vector<LogEntry> mixed_log(unsigned seed) {
  std::vector<LogEntry> log;
  SeededRandom random(seed);
  const auto add = [&](uint64_t term, std::shared_ptr<const Bytes> data) {
    log.push_back({.index = log.size() + 1, .term = term, .type = EntryType::kCommand, .data = std::move(data)});
  };
  for (const LogEntry& entry : apply::random_log(seed)) {
    add(entry.term, entry.data);
    Bytes value(1000 + random.below(8000), '\0');
    for (char& byte : value) byte = static_cast<char>(random.next());
    const auto put = apply::Machine::command(apply::build::put("~" + std::to_string(random.below(100)), value));
    add(entry.term, std::make_shared<const Bytes>(put.SerializeAsString()));
  }
  return log;
}

inline std::vector<apply::Member> first_members() {
  apply::Member self;
  self.id = identity_of(small_options()).member_id;
  self.peer_urls = small_options().peer_urls;
  return {self};
}

// All that has to be equal between members at one index, when their compactions are finished.
struct State {
  store::Meta meta;
  std::map<store::RowId, std::tuple<Bytes, int64_t, int64_t, int64_t, Bytes>> rows;
  std::vector<store::LeaseRow> leases;
  friend bool operator==(const State&, const State&) = default;
};

// The state after entry `index` of the log, on a store that cannot fail.
inline State state_at(const std::vector<LogEntry>& log, uint64_t index) {
  apply::Machine machine;
  EXPECT_TRUE(machine.applier->bootstrap(first_members()));
  for (uint64_t i = 0; i < index; ++i) EXPECT_TRUE(machine.applier->apply({&log[i], 1}));
  machine.settle();
  State state;
  state.meta = machine.content->meta;
  for (const auto& [id, row] : machine.content->rows) {
    state.rows[id] = {row.key, row.create_revision, row.version, row.lease, row.value};
  }
  for (const auto& [id, lease] : machine.content->leases) state.leases.push_back(lease);
  return state;
}

class Machine {
 public:
  explicit Machine(Disk& disk, Options options = small_options())
      : disk(disk), options(std::move(options)), world_{clock, random_, disk} {}

  // As a member opens: what the log has and the store has not is applied.
  Status open() {
    TRY_ASSIGN(folder, open_data_folder(world_, options));
    TRY_ASSIGN(const auto rows, folder.store->load_leases());
    leases = std::make_unique<lease::Table>();
    leases->load(rows);
    const auto attach = [this](std::string_view key, int64_t lease) { leases->attach(lease, key); };
    TRY_ASSIGN(mvcc, mvcc::Mvcc::open(*folder.store, {}, attach));
    leases->commit();
    applier = std::make_unique<apply::Applier>(
        apply::Applier::Parts{.store = *folder.store, .mvcc = *mvcc, .leases = *leases, .hub = hub_});
    if (folder.is_new) TRY(bootstrap());
    const uint64_t applied = folder.store->meta().applied_index;
    std::vector<LogEntry> rest;
    for (const LogEntry& entry : folder.contents.entries) {
      if (entry.index > applied && entry.index <= folder.contents.hard_state.commit) rest.push_back(entry);
    }
    for (const LogEntry& entry : rest) {
      if (folder.store->pause_needed()) TRY(checkpoint());
      TRY(apply_all({&entry, 1}));
    }
    return {};
  }
  // Members of a crashed machine are thrown away.
  void close() {
    applier.reset();
    mvcc.reset();
    leases.reset();
    folder = {};
  }
  bool is_open() const { return applier != nullptr; }
  uint64_t applied() const { return folder.store->meta().applied_index; }

  // Logs and applies these, all of them or none.
  Status run(std::span<const LogEntry> entries) {
    wal::WalBatch batch;
    batch.entries.assign(entries.begin(), entries.end());
    batch.hard_state = HardState{.term = entries.back().term, .vote = 1, .commit = entries.back().index};
    TRY(folder.wal->append(batch));
    if (folder.store->pause_needed()) TRY(checkpoint());
    return apply_all(entries);
  }
  // The next ones of `log`, up to `index`.
  Status run_to(const std::vector<LogEntry>& log, uint64_t index, size_t batch = 7) {
    while (applied() < index) {
      const uint64_t from = applied();
      TRY(run(std::span(log).subspan(from, std::min<uint64_t>(batch, index - from))));
    }
    return {};
  }
  Status checkpoint() {
    TRY_ASSIGN(const auto begun, folder.store->begin_checkpoint());
    if (!begun) return {};
    TRY(log_mark(*begun));
    const auto done = folder.store->run_checkpoint();
    folder.store->end_checkpoint();
    if (!done) return ::fail(done.error());
    return log_mark(*done);
  }
  Status settle() {
    for (bool more = true; more;) {
      if (folder.store->pause_needed()) TRY(checkpoint());  // as the apply stage does
      TRY_ASSIGN(const auto slice, applier->step());
      more = slice.more;
    }
    return {};
  }
  // With compactions finished.
  Result<State> state() {
    TRY(settle());
    State state;
    state.meta = folder.store->meta();
    TRY_ASSIGN(state.leases, folder.store->load_leases());
    TRY_ASSIGN(const auto txn, folder.store->read());
    TRY(txn->scan(0, std::numeric_limits<store::RowId>::max(), false, [&](const store::RowView& row) {
      state.rows[row.id] = {Bytes(row.key), row.create_revision, row.version, row.lease, Bytes(row.value)};
      return true;
    }));
    return state;
  }
  SnapshotMaker::Parts maker_parts() {
    return {.clock = clock,
            .failure = failure,
            .disk = disk,
            .store = *folder.store,
            .data_dir = options.data_dir,
            .cluster_id = identity_of(options).cluster_id,
            .hold_compaction = [this](bool held) { applier->hold_compaction(held); },
            .send = [](uint64_t, Bytes) { return true; }};
  }

  Disk& disk;
  const Options options;
  StepClock clock;
  Failure failure;
  DataFolder folder;
  std::unique_ptr<lease::Table> leases;
  std::unique_ptr<mvcc::Mvcc> mvcc;
  std::unique_ptr<apply::Applier> applier;

 private:
  Status apply_all(std::span<const LogEntry> entries) {
    auto applied = applier->apply(entries);
    if (!applied) return ::fail(applied.error());
    return {};
  }
  Status bootstrap() {
    TRY(applier->bootstrap(first_members()));
    TRY_ASSIGN(const auto begun, folder.store->begin_checkpoint());
    std::optional<store::Mark> mark;
    if (begun) {
      TRY_ASSIGN(mark, folder.store->run_checkpoint());
    }
    folder.store->end_checkpoint();
    TRY(create_log(world_, options, folder));
    return mark ? log_mark(*mark) : Status();
  }
  Status log_mark(const store::Mark& mark) {
    wal::WalBatch batch;
    batch.mark = wal::StoreMark{mark.applied, mark.salt1, mark.salt2, mark.frames, mark.done};
    return folder.wal->append(batch);
  }

  SeededRandom random_{1};
  World world_;
  apply::fake::Hub hub_;
};

// Steps the maker until it has answered.
inline Result<SnapshotInfo> make_snapshot(
    SnapshotMaker& maker, uint64_t index_min, const std::function<void()>& between = [] {}) {
  std::optional<Result<SnapshotInfo>> made;
  maker.ask(index_min, [&](Result<SnapshotInfo> result) { made = std::move(result); });
  for (int steps = 0; !made; ++steps) {
    EXPECT_LT(steps, 1'000'000);
    maker.step();
    if (!made) between();
  }
  return std::move(*made);
}

}  // namespace member::test
