// Locks: no two holders at once, tokens that rise, and a store that takes tokens never lets an older one in after a
// newer one.
#pragma once

#include <string>
#include <vector>

#include "history/history.h"

namespace history {

struct LockHold {
  std::string lock;
  uint64_t client = 0;
  int64_t token = 0;
  Time acquired{};      // the holder knew
  Time until = kNever;  // the holder gave it up, or took it for lost: from then on it did nothing any more
};

// Something that was let in under a token; in the order in which it took effect.
struct FencedUse {
  std::string lock;
  uint64_t client = 0;
  int64_t token = 0;
};

Verdict check_locks(const std::vector<LockHold>& holds, const std::vector<FencedUse>& uses);

}  // namespace history
