// What a watch told its user, over connections, cancellations and resumes, held against everything that happened:
// complete, in order, no repeats, the events of a revision together, previous values right, progress true.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "history/history.h"

namespace history {

struct WatchItem {
  enum class Kind : uint8_t {
    kStarted,    // at the beginning and at each resume; `revision`: the first one wanted
    kEvents,     // one response (fragments joined); `revision`: of its header, 0: not told
    kProgress,   // everything up to `revision` has been told
    kCompacted,  // the watch ended because its next revision is compacted; `revision`: the first one to be had
  };
  Kind kind = Kind::kEvents;
  Time at{};
  int64_t revision = 0;
  std::vector<Event> events = {};
  std::vector<std::optional<KeyValue>> previous = {};  // one for each event, if the watch asked for them
};

struct WatchRecord {
  std::string name;
  std::string key;
  std::string end = {};
  bool puts = true;
  bool deletes = true;
  bool previous = false;
  std::vector<WatchItem> items = {};
};

// `events`: everything that happened from the lowest start on. `through`: the watch had time to hear everything up to
// there; 0: what it heard last is all that is asked.
Verdict check_watch(const WatchRecord& watch, const Events& events, int64_t through = 0);

// Of what the watch wants, between its start and the last it heard: every acknowledged put is there. (Where nobody
// knows all events.)
Verdict check_watch_hears(const WatchRecord& watch, const std::vector<Operation>& operations);

// What watches tell together, where nobody else knows: a violation when two of them disagree. Complete where all keys
// are watched and the watches themselves are.
Verdict merge_watches(const std::vector<WatchRecord>& watches, Events& events);

}  // namespace history
