// Pulls a snapshot from a member that has it: the other end of snapshot_chunk.h. Knows no socket: it is told the time
// and the answers, and says what to send. One thread (the stage that runs it).
//
// A few requests are on their way at a time, which is all the back-pressure there is. What arrives is written in order,
// so that the length of the file says how far it got, and a fetch that was cut off goes on from there, also after a
// restart. At the end the file is verified from its first byte to its last; one that fails is fetched anew, once.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/disk.h"
#include "member/snapshot_chunk.h"
#include "snapshot/reader.h"

namespace member {

class SnapshotFetch {
 public:
  struct Options {
    std::string data_dir = {};
    uint64_t cluster_id = 0;
    uint64_t from = 0;  // the member that has it
    Generation snapshot = {};
    uint32_t piece_bytes = kSnapshotPieceBytesMax;
    int window = 4;                                     // requests on their way
    Time answer_within = std::chrono::seconds(5);       // then it is asked for again
    int attempts_max = 20;                              // of that without any progress, then it has failed
    Time space_retry = std::chrono::milliseconds(500);  // when the disk is full
  };
  struct Outgoing {
    uint64_t to = 0;
    Bytes frame = {};
  };
  enum class State {
    kFetching,
    kVerifying,
    kDone,    // whole, verified and synced; the file at path() is the caller's
    kFailed,  // error(): kUnavailable (no answers), kNotFound (the other one has it no more), kDataLoss (damaged
              // twice), kFailedPrecondition (of another cluster, or a newer format), else the disk's
  };

  SnapshotFetch(Disk& disk, Options options);

  // Does what is due, a bounded piece of it, and says when to be called again without an answer; `out` gets what is to
  // be sent now.
  Time step(Time now, std::vector<Outgoing>& out);
  // A frame of the lane of snapshots from `from`. What is not asked for is dropped.
  void take(uint64_t from, BytesView frame, Time now);
  // Frames to `peer` may be lost: what is on its way is asked for again soon.
  void unreachable(uint64_t peer, Time now);

  State state() const { return state_; }
  const Error& error() const { return error_; }  // of kFailed
  const std::string& path() const { return path_; }
  const Options& options() const { return options_; }
  uint64_t bytes_fetched() const { return written_; }

 private:
  struct Asked {
    uint64_t offset = 0;
    Time until{};  // when it is asked for again
  };
  Status open();
  void fail(Error error);
  void note(Status status, Time now);
  uint32_t bytes_at(uint64_t offset) const;
  void ask(Time now, std::vector<Outgoing>& out);
  Status write_early();
  Status verify();
  Status start_over(const Error& why);

  Disk& disk_;
  const Options options_;
  const std::string path_;
  State state_ = State::kFetching;
  Error error_;
  std::unique_ptr<File> file_;
  uint64_t written_ = 0;
  uint64_t written_out_ = 0;
  std::optional<uint64_t> file_bytes_;  // known from the first answer on
  std::vector<Asked> asked_;            // at most `window`
  std::map<uint64_t, Bytes> early_;     // arrived before its turn; at most `window`
  uint64_t next_ = 0;                   // offset that was not asked for yet
  int attempts_ = 0;                    // since the last progress
  int damaged_ = 0;
  std::optional<Time> pause_until_;  // the disk is full
  std::unique_ptr<snapshot::Reader> reader_;
  snapshot::Reader::Chunk chunk_;
};

}  // namespace member
