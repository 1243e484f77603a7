// For the tests of this folder: what a log ought to hold, and random work on it.
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "base/memory_disk.h"
#include "wal/wal.h"

namespace wal {

constexpr char kFolder[] = "/data/wal";
constexpr Identity kIdentity{.cluster_id = 7, .member_id = 11};

inline LogEntry make_entry(uint64_t index, uint64_t term, Bytes data) {
  return {.index = index,
          .term = term,
          .type = EntryType::kCommand,
          .data = std::make_shared<const Bytes>(std::move(data))};
}

inline Options small_segments(uint64_t bytes = kSegmentBytesMin) { return {.folder = kFolder, .segment_bytes = bytes}; }

struct Model {
  uint64_t base_index = 0;
  uint64_t base_term = 0;
  std::map<uint64_t, LogEntry> entries;
  HardState hard_state;
  std::optional<SnapshotRecord> snapshot;
  std::optional<StoreMark> mark;

  uint64_t last_index() const { return entries.empty() ? base_index : entries.rbegin()->first; }
  uint64_t last_term() const { return entries.empty() ? base_term : entries.rbegin()->second.term; }

  void apply(const WalBatch& batch) {
    if (batch.snapshot) {
      snapshot = batch.snapshot;
      entries.clear();
      base_index = snapshot->index;
      base_term = snapshot->term;
    }
    for (const LogEntry& entry : batch.entries) {
      entries.erase(entries.lower_bound(entry.index), entries.end());
      entries[entry.index] = entry;
    }
    if (batch.hard_state) hard_state = *batch.hard_state;
    if (batch.mark) mark = batch.mark;
  }

  // Whether `contents` is this, possibly without a front part that may be dropped (below `droppable`).
  testing::AssertionResult equals(const WalContents& contents, uint64_t droppable) const {
    const auto differs = [](const std::string& what) { return testing::AssertionFailure() << what << " differs"; };
    if (!(contents.identity == kIdentity)) return differs("identity");
    if (!(contents.hard_state == hard_state)) return differs("hard state");
    if (contents.snapshot != snapshot) return differs("snapshot");
    if (contents.mark != mark) return differs("mark");
    if (contents.base_index < base_index) return differs("base");
    if (contents.base_index > base_index && contents.base_index >= droppable) return differs("dropped too much: base");
    if (contents.last_index() != last_index()) {
      return differs("last index " + std::to_string(contents.last_index()) + " for " + std::to_string(last_index()));
    }
    const uint64_t term = contents.base_index == base_index ? base_term : entries.at(contents.base_index).term;
    if (contents.base_term != term) return differs("base term");
    for (const LogEntry& entry : contents.entries) {
      const LogEntry& expected = entries.at(entry.index);
      if (entry.term != expected.term || entry.type != expected.type || *entry.data != *expected.data) {
        return differs("entry " + std::to_string(entry.index));
      }
    }
    return testing::AssertionSuccess();
  }
};

// The next batch of a plausible member: appends, conflicts above commit, votes, marks, now and then an installed
// snapshot.
inline WalBatch random_batch(const Model& model, SeededRandom& random, uint64_t data_bytes_max) {
  WalBatch batch;
  HardState state = model.hard_state;
  uint64_t last = model.last_index();
  uint64_t term = model.last_term();
  const auto append = [&](uint64_t from, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      Bytes data(random.below(data_bytes_max + 1), '\0');
      for (char& byte : data) byte = static_cast<char>(random.next());
      batch.entries.push_back(make_entry(from + i, term, std::move(data)));
    }
    last = from + count - 1;
  };
  const uint64_t kind = random.below(20);
  if (kind == 0) {
    batch.snapshot = SnapshotRecord{.index = last + 1 + random.below(5), .term = term, .data = "members"};
    last = batch.snapshot->index;
    state.commit = last;
    batch.hard_state = state;
  } else if (kind <= 3 && last > state.commit) {
    term = state.term = std::max(state.term, term) + 1;  // a new leader rewrites what was not committed
    append(state.commit + 1 + random.below(last - state.commit), 1 + random.below(3));
    batch.hard_state = state;
  } else if (kind == 4) {
    state.term = std::max(state.term, term) + 1;
    state.vote = 1 + random.below(3);
    batch.hard_state = state;
  } else if (kind == 5) {
    batch.mark = StoreMark{.applied = state.commit,
                           .salt1 = static_cast<uint32_t>(random.next()),
                           .salt2 = 2,
                           .frames = 3,
                           .done = random.below(2) == 0};
  } else {
    append(last + 1, 1 + random.below(4));
    state.commit += random.below(last - state.commit + 1);
    batch.hard_state = state;
  }
  return batch;
}

inline Result<std::unique_ptr<Wal>> create_small(Disk& disk, uint64_t bytes = kSegmentBytesMin) {
  SeededRandom random(99);
  return Wal::create(disk, small_segments(bytes), kIdentity, random);
}

}  // namespace wal
