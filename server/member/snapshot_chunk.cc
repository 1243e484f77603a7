#include "member/snapshot_chunk.h"

#include <algorithm>

#include "member/snapshot_files.h"

namespace member {
namespace {

constexpr uint8_t kRequest = 1;
constexpr uint8_t kAnswer = 2;
constexpr size_t kRequestBytes = 32;
constexpr size_t kAnswerBytes = 40;  // without the piece

bool has_kind(BytesView frame, uint8_t kind, size_t bytes) {
  return frame.size() >= bytes && load_integer<uint8_t>(frame) == kind &&
         load_integer<uint8_t>(frame, 1) == kSnapshotFrameVersion;
}

}  // namespace

Bytes encode(const PieceRequest& request) {
  Bytes out;
  append_integer(out, kRequest);
  append_integer(out, kSnapshotFrameVersion);
  append_integer(out, uint16_t{0});
  append_integer(out, request.bytes);
  append_integer(out, request.snapshot.term);
  append_integer(out, request.snapshot.index);
  append_integer(out, request.offset);
  return out;
}

Bytes encode(const PieceAnswer& answer) {
  Bytes out;
  out.reserve(kAnswerBytes + answer.bytes.size());
  append_integer(out, kAnswer);
  append_integer(out, kSnapshotFrameVersion);
  append_integer(out, static_cast<uint8_t>(answer.status));
  append_integer(out, uint8_t{0});
  append_integer(out, static_cast<uint32_t>(answer.bytes.size()));
  append_integer(out, answer.snapshot.term);
  append_integer(out, answer.snapshot.index);
  append_integer(out, answer.offset);
  append_integer(out, answer.file_bytes);
  out += answer.bytes;
  return out;
}

std::optional<PieceRequest> decode_piece_request(BytesView frame) {
  if (!has_kind(frame, kRequest, kRequestBytes)) return std::nullopt;
  return PieceRequest{.snapshot = {load_integer<uint64_t>(frame, 8), load_integer<uint64_t>(frame, 16)},
                      .offset = load_integer<uint64_t>(frame, 24),
                      .bytes = load_integer<uint32_t>(frame, 4)};
}

std::optional<PieceAnswer> decode_piece_answer(BytesView frame) {
  if (!has_kind(frame, kAnswer, kAnswerBytes)) return std::nullopt;
  const auto status = load_integer<uint8_t>(frame, 2);
  const auto bytes = load_integer<uint32_t>(frame, 4);
  if (status > static_cast<uint8_t>(PieceAnswer::Status::kGone)) return std::nullopt;
  if (bytes != frame.size() - kAnswerBytes) return std::nullopt;
  return PieceAnswer{.status = static_cast<PieceAnswer::Status>(status),
                     .snapshot = {load_integer<uint64_t>(frame, 8), load_integer<uint64_t>(frame, 16)},
                     .offset = load_integer<uint64_t>(frame, 24),
                     .file_bytes = load_integer<uint64_t>(frame, 32),
                     .bytes = Bytes(as_text(frame.subspan(kAnswerBytes)))};
}

bool is_piece_request(BytesView frame) { return !frame.empty() && load_integer<uint8_t>(frame) == kRequest; }

Result<SnapshotChunks::Open*> SnapshotChunks::open(const Generation& snapshot) {
  for (Open& open : open_) {
    if (open.snapshot == snapshot) return &open;
  }
  TRY_ASSIGN(auto file, disk_.open(snapshot_path(data_dir_, snapshot), OpenMode::kRead));
  TRY_ASSIGN(const uint64_t bytes, file->size());
  if (open_.size() == kFilesMax) {
    open_.erase(
        std::min_element(open_.begin(), open_.end(), [](const Open& a, const Open& b) { return a.used < b.used; }));
  }
  open_.push_back({.snapshot = snapshot, .file = std::move(file), .bytes = bytes, .used = {}});
  return &open_.back();
}

Result<PieceAnswer> SnapshotChunks::read(const PieceRequest& request, Time now) {
  PieceAnswer answer{.snapshot = request.snapshot, .offset = request.offset, .bytes = {}};
  const auto opened = open(request.snapshot);
  if (!opened && opened.error().code == Code::kNotFound) {
    answer.status = PieceAnswer::Status::kGone;
    return answer;
  }
  if (!opened) return fail(opened.error());
  Open& open = **opened;
  open.used = now;
  answer.file_bytes = open.bytes;
  const uint64_t left = open.bytes - std::min(open.bytes, request.offset);
  answer.bytes.resize(std::min<uint64_t>({request.bytes, kSnapshotPieceBytesMax, left}));
  if (answer.bytes.empty()) return answer;
  TRY_ASSIGN(const size_t got, open.file->read(request.offset, std::as_writable_bytes(std::span(answer.bytes))));
  if (got != answer.bytes.size()) {
    return fail(Code::kDataLoss, snapshot_path(data_dir_, request.snapshot) + ": has become shorter");
  }
  return answer;
}

std::optional<Time> SnapshotChunks::last_use(const Generation& snapshot) const {
  for (const Open& open : open_) {
    if (open.snapshot == snapshot) return open.used;
  }
  return std::nullopt;
}

void SnapshotChunks::forget(const Generation& snapshot) {
  std::erase_if(open_, [&](const Open& open) { return open.snapshot == snapshot; });
}

}  // namespace member
