#include "history/linearizability.h"
#include "history/record_file.h"
#include "history/revision_check.h"

namespace history {

std::vector<std::string> check_all(const Record& record, const CheckOptions& options, std::string* undecided) {
  std::vector<std::string> faults;
  const auto hold = [&](const char* what, const Verdict& verdict) {
    if (verdict.kind == Verdict::Kind::kViolation) faults.push_back(std::string(what) + ": " + verdict.text);
    if (verdict.kind == Verdict::Kind::kUndecided && undecided != nullptr) {
      *undecided += std::string(what) + ": " + verdict.text + "\n";
    }
  };
  Events events;
  const Verdict merged = merge_watches(record.watches, events);
  hold("watches", merged);
  const bool complete = options.watches_complete && merged.ok();
  hold("revisions", check_revisions(record.operations, complete ? &events : nullptr));
  hold("linearizability", check_linearizable(record.operations));
  for (const WatchRecord& watch : record.watches) {
    if (merged.ok()) hold("watch", check_watch(watch, events));
    hold("watch", check_watch_hears(watch, record.operations));
  }
  hold("leases", check_leases(record.lease_calls, record.lease_sightings, options.leases));
  hold("locks", check_locks(record.holds, record.uses));
  return faults;
}

}  // namespace history
