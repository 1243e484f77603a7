// Histories for the tests of the checkers: concurrent clients of a correct store, each operation at one moment between
// its call and its answer; or, on demand, of a store with one fault.
#pragma once

#include "history/record_file.h"

namespace history {

enum class Bug : uint8_t {
  kNone,
  kLostWrite,        // acknowledged, never happened
  kStaleRead,        // a linearizable read of an older state, told as such by its header
  kStaleContent,     // an older content under the right header
  kTwice,            // a request happens twice
  kHalfTransaction,  // only the first part of a transaction happens
  kRefusedHappens,   // a request that was refused happens
  kCompareIgnored,   // a transaction goes the other way
  kWrongPrevious,    // what was there before is told wrongly
  kMixedRange,       // one key of a range is from an earlier moment
  kGoesBack,         // a member's serializable reads go back
};

struct GeneratorOptions {
  uint64_t seed = 1;
  size_t operations = 300;
  uint64_t clients = 5;
  uint64_t keys = 6;
  uint64_t unknown_percent = 6;
  uint64_t failed_percent = 4;
  uint64_t leased_percent = 5;
  bool revisions = true;  // clients are told revisions
  Bug bug = Bug::kNone;   // once, in the middle half of the history
};

struct Generated {
  Record record;  // operations and watches
  Events events;
  bool has_bug = false;  // there was an occasion for it
};

Generated generate(const GeneratorOptions& options);

}  // namespace history
