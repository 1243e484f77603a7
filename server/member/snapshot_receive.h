// The `receive` stage: fetches the snapshot that a leader offers and builds a generation of the store from it, beside
// everything else. What is built waits for the loop, which asks Raft whether it is still needed and switches.
//
// A new offer replaces one that is being fetched, and is ignored while one is being built: any committed state will do.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/world.h"
#include "member/failure.h"
#include "member/snapshot_fetch.h"
#include "member/snapshot_install.h"
#include "member/stage.h"

namespace member {

class SnapshotReceiver final : public Stage {
 public:
  struct Built {
    Generation at = {};
    Bytes membership = {};  // as `apply` wrote it
  };
  struct Parts {
    Clock& clock;
    Failure& failure;
    Disk& disk;
    Options options;
    uint64_t cluster_id = 0;
    uint32_t piece_bytes = kSnapshotPieceBytesMax;       // not a flag: the simulator makes it small
    std::function<bool(uint64_t to, Bytes frame)> send;  // in the lane of snapshots; false: dropped
    // Both on the stage's thread, each offer gets one of them or is replaced. After `built` the stage does nothing more
    // until discard(): the member is about to be closed.
    std::function<void(Built)> built;
    std::function<void(Generation, Error)> failed;
  };
  explicit SnapshotReceiver(Parts parts);

  // Any thread.
  void offer(uint64_t from, const Generation& snapshot);
  void take(uint64_t from, Bytes frame);  // dropped when too many wait: asked for again
  void unreachable(uint64_t peer);
  // What is being fetched or was built is not needed any more: its space is given back.
  void discard();

  Time step() override;
  const char* name() const override { return "receive"; }

 private:
  struct Event {
    enum class Kind { kOffer, kFrame, kUnreachable, kDiscard } kind = Kind::kFrame;
    uint64_t peer = 0;
    Generation snapshot = {};
    Bytes frame = {};
  };
  void handle(Event& event);
  void drop_all();
  void remove_file();
  Time begin();
  Time fetch();
  Time build();
  void fail(Error error);

  Parts parts_;
  Inbox<Event> inbox_;
  std::vector<Event> drained_;
  std::vector<SnapshotFetch::Outgoing> out_;
  std::optional<Event> offered_;  // not begun yet
  std::unique_ptr<SnapshotFetch> fetch_;
  std::unique_ptr<SnapshotInstall> install_;
  std::optional<Generation> built_;
  std::string file_;   // what is, or was, built from
  Time not_before_{};  // after a failure
};

}  // namespace member
