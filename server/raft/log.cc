#include "raft/log.h"

#include <algorithm>

#include "base/check.h"

namespace raft {

Log::Log(uint64_t base_index, uint64_t base_term, std::vector<LogEntry> entries)
    : base_index_(base_index), base_term_(base_term) {
  for (LogEntry& entry : entries) append(std::move(entry));
}

std::optional<uint64_t> Log::term_at(uint64_t index) const {
  if (index < base_index_ || index > last_index()) return std::nullopt;
  return index == base_index_ ? base_term_ : at(index).term;
}

const LogEntry& Log::at(uint64_t index) const {
  CHECK(index >= first_index(), index, first_index());
  CHECK(index <= last_index(), index, last_index());
  return entries_[index - first_index()];
}

bool Log::is_outdated_by(uint64_t index, uint64_t term) const {
  return term > last_term() || (term == last_term() && index >= last_index());
}

uint64_t Log::last_not_above(uint64_t index, uint64_t term) const {
  index = std::min(index, last_index());
  while (index > base_index_ && at(index).term > term) --index;
  return index;
}

void Log::append(LogEntry entry) {
  CHECK(entry.index == last_index() + 1, entry.index, last_index());
  CHECK(entry.term >= last_term(), entry.index, entry.term, last_term());
  CHECK(entry.data != nullptr, entry.index);
  bytes_ += entry_bytes(entry);
  entries_.push_back(std::move(entry));
}

void Log::cut_from(uint64_t index) {
  CHECK(index > base_index_, index, base_index_);
  while (last_index() >= index) {
    bytes_ -= entry_bytes(entries_.back());
    entries_.pop_back();
  }
}

void Log::drop_through(uint64_t index) {
  CHECK(index <= last_index(), index, last_index());
  while (base_index_ < index) {
    base_term_ = entries_.front().term;
    ++base_index_;
    bytes_ -= entry_bytes(entries_.front());
    entries_.pop_front();
  }
}

void Log::keep_within(const LogLimits& limits, uint64_t through) {
  while (base_index_ < through && (entries_.size() > limits.entries_max || bytes_ > limits.bytes_max)) {
    drop_through(base_index_ + 1);
  }
}

std::vector<LogEntry> Log::slice(uint64_t from, uint64_t to, uint64_t bytes_max) const {
  std::vector<LogEntry> entries;
  uint64_t bytes = 0;
  for (uint64_t index = from; index <= to; ++index) {
    const LogEntry& entry = at(index);
    bytes += entry_bytes(entry);
    if (bytes > bytes_max && !entries.empty()) break;
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace raft
