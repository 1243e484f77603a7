// A random log, and what has to be equal however it is applied.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apply/applier.h"
#include "apply/random_test.h"
#include "apply/show_test.h"

namespace apply {

inline constexpr int kEntries = 600;
inline const std::vector<Member> kMembers = {{.id = 1, .name = {}, .peer_urls = {"http://p"}, .client_urls = {}}};

inline std::vector<LogEntry> random_log(unsigned seed) {
  RandomEntries random(seed);
  std::vector<LogEntry> log;
  uint64_t term = 2;
  for (uint64_t index = 1; index <= kEntries; ++index) {
    if (random.one_in(100)) ++term;
    Bytes data = random.one_in(50) ? Bytes() : random.next(index, term).SerializeAsString();
    log.push_back({.index = index,
                   .term = term,
                   .type = EntryType::kCommand,
                   .data = std::make_shared<const Bytes>(std::move(data))});
  }
  return log;
}

// Everything that has to be equal. What watchers hear of a compaction depends on the batch and is left out.
struct Trace {
  std::map<uint64_t, std::string> answers;
  std::string lease_changes;
  std::string refused;

  void add(const std::vector<Outcome>& outcomes) {
    for (const Outcome& outcome : outcomes) answers[outcome.index] = show(outcome.response);
  }
  void add(const Applied& applied) {
    add(applied.outcomes);
    for (const LeaseChange& change : applied.leases) {
      lease_changes += std::to_string(static_cast<int>(change.kind)) + ":" + std::to_string(change.id) + ":" +
                       std::to_string(change.ttl + change.remaining) + " ";
    }
    for (int64_t id : applied.revocations_refused) refused += std::to_string(id) + " ";
  }
};

inline std::string describe(const lease::Table& table) {
  std::string text;
  for (const lease::Info& info : table.list()) {
    text += std::to_string(info.id) + "/" + std::to_string(info.ttl) + "/" + std::to_string(info.remaining);
    for (const Bytes& key : table.keys(info.id)) text += " " + key;
    text += "; ";
  }
  return text;
}

}  // namespace apply
