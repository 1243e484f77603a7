// A revision: `main` grows by one with each write transaction, `sub` counts the writes inside one. Never mixed with an
// index, which is a place in the Raft log.
#pragma once

#include <compare>
#include <cstdint>

#include "store/store.h"

namespace mvcc {

struct Revision {
  int64_t main = 0;
  int64_t sub = 0;
  friend auto operator<=>(const Revision&, const Revision&) = default;
};

// A row id is a revision in one integer: 43 bits of main (at 100,000 writes/s: 2.8 years; at 1,000: 280) and 20 of sub.
// A transaction that would change more keys than that is refused whole before its first write.
inline constexpr int kSubBits = 20;
inline constexpr int64_t kSubMax = (int64_t{1} << kSubBits) - 1;
inline constexpr int64_t kMainMax = (int64_t{1} << (63 - kSubBits)) - 1;

constexpr store::RowId row_id(Revision r) { return (r.main << kSubBits) | r.sub; }
constexpr Revision revision_of(store::RowId id) { return {id >> kSubBits, id & kSubMax}; }

}  // namespace mvcc
