// The key space as the history tells it, moved from revision to revision. For revision_check.cc.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "history/attribution.h"
#include "history/history.h"

namespace history {

class RevisionState {
 public:
  // `exact`: apply_events() tells everything that happens; nothing happens that nobody saw.
  RevisionState(bool exact, const std::vector<const Operation*>& open) : exact_(exact), open_(open) {}

  // All of them return what is wrong, with the operations that show it.
  using Fault = std::optional<std::string>;

  // The write that owns `revision`: holds its answers against the state and its effect against `events` (if exact).
  Fault write(int64_t revision, const Written& written, const std::vector<Event>* events);
  // A put that several operations may have made.
  void put_unowned(const KeyValue& kv);
  // What happened at a revision; `owned`: write() was told whose it is.
  Fault apply_events(const std::vector<Event>& events, bool owned);
  // An answered operation that changed nothing.
  Fault read(const Operation& operation);
  // One get of a read of an old revision.
  Fault read_old(const Operation& operation, size_t request);

 private:
  struct Known {
    KeyValue kv;  // numbers as far as they are exact
    bool alive = false;
    bool vanished = false;  // by a lease or an operation that nobody heard of again; was `kv` before
    bool numbers = true;    // create_revision and version are exact
    const Operation* writer = nullptr;
  };
  using Keys = std::map<std::string, Known>;
  struct Range {
    Keys::iterator begin, end;
  };

  Range range(const Request& request);
  bool open_may_write(const std::string& key) const;
  bool open_may_delete(const std::string& key) const;
  bool unsure(const std::string& key, const Known* known) const;
  const Known* find(const std::string& key) const;
  Fault check_compares(const Operation& operation, bool succeeded) const;
  Fault check_seen(const Operation& operation, const KeyValue& kv);
  Fault check_absent(const Operation& operation, const std::string& key, Known& known);
  Fault check_content(const Operation& operation, const Request& request, const Answer& answer);
  Fault run(const Operation& operation, bool succeeded, int64_t revision);
  Fault run_put(const Operation& operation, const Request& request, const Answer* answer, int64_t revision);
  Fault run_delete(const Operation& operation, const Request& request, const Answer* answer, int64_t revision);
  static Fault against(const Operation& operation, const std::string& what, const Known* known);

  const bool exact_;
  const std::vector<const Operation*>& open_;
  mutable std::map<std::string, std::pair<bool, bool>> open_cache_;  // key -> may write, may delete
  Keys keys_;
  std::vector<Event> effect_;  // of the write under way
};

}  // namespace history
