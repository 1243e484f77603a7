// How a member pulls a snapshot from another: requests for a piece of the file and answers, each a frame in the lane of
// snapshots, all little-endian. The one that pulls decides the pace; it asks again for what does not come.
//
//   request: kind 1 (1), version (1), 2 zeros, bytes (4), term (8), index (8), offset (8)
//   answer:  kind 2 (1), version (1), status (1), zero (1), number of bytes (4), term (8), index (8), offset (8),
//            length of the whole file (8), the bytes
//
// What is in the bytes is verified when all of them are there (snapshot/reader.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/disk.h"
#include "member/generation.h"
#include "member/stage.h"

namespace member {

inline constexpr uint8_t kSnapshotFrameVersion = 1;  // another one is not answered
inline constexpr uint32_t kSnapshotPieceBytesMax = 1 << 20;

struct PieceRequest {
  Generation snapshot = {};
  uint64_t offset = 0;
  uint32_t bytes = 0;  // more than kSnapshotPieceBytesMax is cut to that
};
struct PieceAnswer {
  enum class Status : uint8_t { kHere = 0, kGone = 1 } status = Status::kHere;
  Generation snapshot = {};
  uint64_t offset = 0;
  uint64_t file_bytes = 0;
  Bytes bytes = {};  // fewer than asked for at the end of the file only
};

Bytes encode(const PieceRequest& request);
Bytes encode(const PieceAnswer& answer);
std::optional<PieceRequest> decode_piece_request(BytesView frame);
std::optional<PieceAnswer> decode_piece_answer(BytesView frame);
// Whether a frame of this lane is a request, for who makes snapshots, or an answer, for who fetches one.
bool is_piece_request(BytesView frame);

// The files that are pulled from. Stage's thread.
class SnapshotChunks {
 public:
  SnapshotChunks(Disk& disk, std::string data_dir) : disk_(disk), data_dir_(std::move(data_dir)) {}
  // Reads a piece; a snapshot that is not there is told as kGone. Other errors are the disk's.
  Result<PieceAnswer> read(const PieceRequest& request, Time now);
  std::optional<Time> last_use(const Generation& snapshot) const;
  void forget(const Generation& snapshot);  // its file is to be removed

 private:
  static constexpr size_t kFilesMax = 4;  // open at a time; the one used longest ago is closed
  struct Open {
    Generation snapshot = {};
    std::unique_ptr<File> file = nullptr;
    uint64_t bytes = 0;
    Time used{};
  };
  Result<Open*> open(const Generation& snapshot);

  Disk& disk_;
  const std::string data_dir_;
  std::vector<Open> open_;
};

}  // namespace member
