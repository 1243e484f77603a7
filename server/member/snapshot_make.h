// The `snapshot` stage: makes snapshots for members that lag, and hands them out in chunks to the members that pull.
//
// Making one stalls nobody (docs/adr/0004-snapshots-as-rows.md): rows of the key-value history never change, so only
// meta and leases are taken from one commit; the rows follow in slices of a ReadTxn each, beside the writes. Meanwhile
// no row is deleted: the hold is in force before that commit is looked at, until the file is whole.
//
// One is made at a time. The newest is kept; older ones go when nobody has pulled from them for a while.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/world.h"
#include "member/failure.h"
#include "member/snapshot_chunk.h"
#include "member/snapshot_files.h"
#include "member/stage.h"
#include "snapshot/writer.h"
#include "store/store.h"

namespace member {

// A snapshot that is there to be pulled.
struct SnapshotInfo {
  Generation at = {};
  uint64_t bytes = 0;
};

class SnapshotMaker final : public Stage {
 public:
  struct Parts {
    Clock& clock;
    Failure& failure;
    Disk& disk;
    store::Store& store;
    std::string data_dir;
    uint64_t cluster_id = 0;
    // Applier::hold_compaction, and a wake of the apply stage's slices when it ends.
    std::function<void(bool)> hold_compaction;
    std::function<bool(uint64_t to, Bytes frame)> send;  // in the lane of snapshots; false: dropped
  };
  using Made = std::function<void(Result<SnapshotInfo>)>;

  explicit SnapshotMaker(Parts parts);

  // Any thread. `done` hears, on the stage's thread, of a snapshot with an index of at least `index_min`: one that is
  // there, or a new one. kUnavailable: this member itself has not applied so much; kResourceExhausted: no space, or too
  // many ask; else the disk's error. Not called any more once the stage has stopped.
  void ask(uint64_t index_min, Made done);
  // Any thread. A frame of a member that pulls; dropped when too many wait (it asks again).
  void serve(uint64_t from, Bytes request);

  Time step() override;
  const char* name() const override { return "snapshot"; }

 private:
  struct Ask {
    uint64_t index_min = 0;
    Made done = {};
  };
  struct Request {
    uint64_t from = 0;
    Bytes frame = {};
  };
  struct MadeFile {
    SnapshotInfo info = {};
    Time told{};  // when somebody was told of it, who may come for it
  };
  Status look_around();
  void answer_requests();
  void take_asks();
  void answer_asks();
  Status begin();
  Status continue_making();
  Status read_slice();
  void pace(Time began, uint64_t applied_index);
  Status finish();
  void abandon(const Error& error);
  Time remove_unused();

  Parts parts_;
  SnapshotChunks chunks_;
  Inbox<Ask> asks_in_;
  Inbox<Request> requests_in_;
  std::vector<Ask> drained_asks_;
  std::vector<Request> drained_requests_;
  std::deque<Ask> asks_;
  std::deque<Request> requests_;  // not answered yet
  bool looked_around_ = false;
  std::vector<MadeFile> made_;  // oldest first

  // The one that is being made.
  std::unique_ptr<snapshot::Writer> writer_;
  Generation making_;
  store::RowId next_row_ = 0;
  store::RowId end_row_ = 0;
  uint64_t written_out_ = 0;
  uint64_t applied_seen_ = 0;  // of the last slice
  Time began_{};
  Time next_slice_{};
};

}  // namespace member
