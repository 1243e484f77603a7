// What the Raft log is made of. Here, because both the pure core (`raft`) and the log on disk (`wal`) speak of it and
// neither sees the other.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"

enum class EntryType : uint8_t {
  kCommand = 0,     // a serialized conclavepb.Entry; empty: the no-op with which a leader begins its term
  kMembership = 1,  // a serialized conclavepb.MembershipChange
};

// `data` is shared between the log in memory, the log on disk and apply; nobody changes it.
struct LogEntry {
  uint64_t index = 0;
  uint64_t term = 0;
  EntryType type = EntryType::kCommand;
  std::shared_ptr<const Bytes> data = std::make_shared<const Bytes>();
};

// What a member must remember over a crash besides its entries (Raft paper, figure 2), and its commit index, which lets
// a restarted member know which entries were decided.
struct HardState {
  uint64_t term = 0;
  uint64_t vote = 0;
  uint64_t commit = 0;
  friend bool operator==(const HardState&, const HardState&) = default;
};
