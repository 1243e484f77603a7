// The part of the Raft log that is in memory: everything that is not applied yet, and a bounded tail of applied entries
// for followers that lag a little. Knows indexes and terms, not who is durable or committed.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/entry.h"

namespace raft {

// Of applied entries that are kept. Whichever is reached first.
struct LogLimits {
  uint64_t entries_max = 5000;
  uint64_t bytes_max = 16 << 20;
};

constexpr uint64_t kEntryOverheadBytes =
    64;  // counted with each entry's data, so that empty entries cost something too
inline uint64_t entry_bytes(const LogEntry& entry) { return entry.data->size() + kEntryOverheadBytes; }

class Log {
 public:
  // `base` is the entry before the first. CHECKs that the entries follow each other and their terms never go back.
  Log(uint64_t base_index, uint64_t base_term, std::vector<LogEntry> entries);

  uint64_t base_index() const { return base_index_; }
  uint64_t first_index() const { return base_index_ + 1; }
  uint64_t last_index() const { return base_index_ + entries_.size(); }
  uint64_t last_term() const { return entries_.empty() ? base_term_ : entries_.back().term; }
  uint64_t bytes() const { return bytes_; }

  std::optional<uint64_t> term_at(uint64_t index) const;  // known from the base to the last
  bool matches(uint64_t index, uint64_t term) const { return term_at(index) == term; }
  const LogEntry& at(uint64_t index) const;  // first_index() <= index <= last_index()

  // Paper, 5.4.1: whether a log that ends with (index, term) holds at least what this one holds.
  bool is_outdated_by(uint64_t index, uint64_t term) const;
  // The largest index at or below `index` whose term is not above `term`: where two logs may still agree.
  uint64_t last_not_above(uint64_t index, uint64_t term) const;

  void append(LogEntry entry);        // at last_index() + 1
  void cut_from(uint64_t index);      // removes all at or above; `index` is above the base
  void drop_through(uint64_t index);  // removes all at or below; the base becomes `index`
  // Drops entries at or below `through` as far as the limits for what is kept of them demand.
  void keep_within(const LogLimits& limits, uint64_t through);

  // [from, to], as many as stay within bytes_max; at least one if there is one.
  std::vector<LogEntry> slice(uint64_t from, uint64_t to, uint64_t bytes_max) const;

 private:
  uint64_t base_index_;
  uint64_t base_term_;
  uint64_t bytes_ = 0;
  std::deque<LogEntry> entries_;
};

}  // namespace raft
