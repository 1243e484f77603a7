// A recorded history as a file of JSON lines (record.proto), for processes that record, and the whole of what is to be
// checked about one.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "base/result.h"
#include "history/lease_check.h"
#include "history/lock_check.h"
#include "history/watch_check.h"

namespace history {

struct Record {
  std::vector<Operation> operations;
  std::vector<WatchRecord> watches;
  std::vector<LeaseCall> lease_calls;
  std::vector<LeaseSighting> lease_sightings;
  std::vector<LockHold> holds;
  std::vector<FencedUse> uses;
};

void write_record(const Record& record, std::ostream& out);
// kInvalidArgument: the line and what is wrong with it.
::Result<Record> read_record(std::istream& in);

struct CheckOptions {
  LeaseRules leases;
  bool watches_complete = false;  // the watches together heard everything that happened to all keys
};
// All checks; what is wrong, one text each. An undecided one is not wrong, and is told in `undecided`.
std::vector<std::string> check_all(const Record& record, const CheckOptions& options, std::string* undecided);

}  // namespace history
