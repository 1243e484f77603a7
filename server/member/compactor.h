// When to compact automatically, as etcd's --auto-compaction-mode. Pure: time and revision are arguments.
//
// Periodic: keeps `period` of history. Looks ten times a period (of an hour at most) and compacts to the revision that
// was current a period ago, once a period (an hour at most). Revision: every five minutes, to the newest revision minus
// `revisions`.
#pragma once

#include <deque>
#include <optional>

#include "member/options.h"
#include "member/stage.h"

namespace member {

class Compactor {
 public:
  explicit Compactor(AutoCompaction options) : options_(options) {}
  // The revision to compact at now, if any.
  std::optional<int64_t> tick(Time now, int64_t revision);

 private:
  std::optional<int64_t> periodic(Time now, int64_t revision);

  const AutoCompaction options_;
  std::optional<Time> next_look_;
  std::optional<Time> next_compaction_;
  struct Sample {
    Time at{};
    int64_t revision = 0;
  };
  std::deque<Sample> samples_;  // at most a period's
  int64_t compacted_ = 0;
};

}  // namespace member
