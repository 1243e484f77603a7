// The store behind generator.h: correct, and with faults on demand.
#pragma once

#include <optional>

#include "history/generator.h"

namespace history {

class GeneratorStore {
 public:
  int64_t revision() const { return revision_; }
  const Events& events() const { return events_; }

  // Executes it and fills in its answer.
  void run(Operation& operation);
  // The gets of an operation that reads only, as of `revision`.
  void read_at(Operation& operation, int64_t revision);
  // With this fault; false: this operation is no occasion for it, nothing happened.
  bool run_with(Bug bug, Operation& operation);
  // A lease runs out: its keys go in one revision.
  void expire_one(uint64_t random);

 private:
  using State = std::map<std::string, KeyValue>;
  bool holds(const Compare& compare) const;
  Answer get(const State& state, const Request& request) const;
  State state_at(int64_t revision) const;
  void execute(Operation& operation, const std::vector<Request>& requests);
  void erase(const std::string& key, std::vector<Event>& events);

  int64_t revision_ = 1;
  State state_;
  Events events_;
};

}  // namespace history
