#include "member/snapshot_fetch.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "member/snapshot_files.h"

namespace member {
namespace {

constexpr uint64_t kWriteOutBytes = 1 << 20;  // so that the last sync has little left
constexpr int kDamagedMax = 2;
constexpr Time kAfterBreak = std::chrono::milliseconds(500);  // a connection that broke is not there again at once

}  // namespace

SnapshotFetch::SnapshotFetch(Disk& disk, Options options)
    : disk_(disk), options_(std::move(options)), path_(incoming_path(options_.data_dir, options_.snapshot)) {
  CHECK(options_.window > 0, options_.window);
  CHECK(options_.piece_bytes > 0 && options_.piece_bytes <= kSnapshotPieceBytesMax, options_.piece_bytes);
}

// Others that were being fetched before are given up.
Status SnapshotFetch::open() {
  TRY(create_folder(disk_, snapshot_folder(options_.data_dir)));
  TRY_ASSIGN(const auto incoming, list_incoming(disk_, options_.data_dir));
  for (const Generation& other : incoming) {
    if (other != options_.snapshot) TRY(disk_.remove(incoming_path(options_.data_dir, other)));
  }
  TRY_ASSIGN(file_, disk_.open(path_, OpenMode::kCreate));
  TRY(disk_.sync_directory(snapshot_folder(options_.data_dir)));
  TRY_ASSIGN(const uint64_t size, file_->size());
  written_ = written_out_ = next_ = size;
  return {};
}

void SnapshotFetch::fail(Error error) {
  error_ = std::move(error);
  state_ = State::kFailed;
  file_.reset();
  reader_.reset();
  early_.clear();
}

// A full disk is no failure: it goes on when there is room.
void SnapshotFetch::note(Status status, Time now) {
  if (status) return;
  if (status.error().code != Code::kResourceExhausted) return fail(std::move(status.error()));
  if (!pause_until_) {
    log_warn("no space for a snapshot that is being fetched; waiting", {{"error", status.error().message}});
  }
  pause_until_ = now + options_.space_retry;
  asked_.clear();
  early_.clear();
  next_ = written_;
}

uint32_t SnapshotFetch::bytes_at(uint64_t offset) const {
  if (!file_bytes_) return options_.piece_bytes;
  return static_cast<uint32_t>(std::min<uint64_t>(options_.piece_bytes, *file_bytes_ - offset));
}

Time SnapshotFetch::step(Time now, std::vector<Outgoing>& out) {
  if (state_ == State::kDone || state_ == State::kFailed) return kWhenWoken;
  if (pause_until_ && now < *pause_until_) return *pause_until_;
  if (!file_ && state_ == State::kFetching) {
    note(open(), now);
    if (!file_) return pause_until_.value_or(kWhenWoken);
  }
  if (state_ == State::kFetching && file_bytes_ && written_ == *file_bytes_) {
    Status synced = file_->sync();
    if (synced) state_ = State::kVerifying;
    note(std::move(synced), now);
    return state_ == State::kFailed ? kWhenWoken : kNow;
  }
  if (state_ == State::kVerifying) {
    note(verify(), now);
    return state_ == State::kVerifying || state_ == State::kFetching ? kNow : kWhenWoken;
  }
  if (written_ - written_out_ >= kWriteOutBytes) {
    note(file_->write_out(written_out_, written_ - written_out_, true), now);
    written_out_ = written_;
    if (state_ == State::kFailed) return kWhenWoken;
  }
  ask(now, out);
  Time next = kWhenWoken;
  for (const Asked& asked : asked_) next = std::min(next, asked.until);
  return next;
}

void SnapshotFetch::ask(Time now, std::vector<Outgoing>& out) {
  const auto send = [&](uint64_t offset) {
    const PieceRequest request{.snapshot = options_.snapshot, .offset = offset, .bytes = bytes_at(offset)};
    out.push_back({options_.from, encode(request)});
  };
  const bool overdue =
      std::any_of(asked_.begin(), asked_.end(), [&](const Asked& asked) { return asked.until <= now; });
  if (overdue && ++attempts_ > options_.attempts_max) {
    return fail({Code::kUnavailable, "snapshot " + options_.snapshot.name() + ": member " +
                                         std::to_string(options_.from) + " does not answer"});
  }
  for (Asked& asked : asked_) {
    if (asked.until > now) continue;
    asked.until = now + options_.answer_within;
    send(asked.offset);
  }
  // The first answer tells the length of the file; until then only one is asked for.
  const auto window = static_cast<size_t>(file_bytes_ ? options_.window : 1);
  while (asked_.size() + early_.size() < window && (!file_bytes_ || next_ < *file_bytes_)) {
    asked_.push_back({next_, now + options_.answer_within});
    send(next_);
    next_ += bytes_at(next_);
  }
}

void SnapshotFetch::take(uint64_t from, BytesView frame, Time now) {
  if (state_ != State::kFetching || from != options_.from) return;
  auto answer = decode_piece_answer(frame);
  if (!answer || answer->snapshot != options_.snapshot) return;
  const auto asked =
      std::find_if(asked_.begin(), asked_.end(), [&](const Asked& a) { return a.offset == answer->offset; });
  if (asked == asked_.end()) return;
  if (answer->status == PieceAnswer::Status::kGone) {
    return fail({Code::kNotFound, "snapshot " + options_.snapshot.name() + ": member " + std::to_string(from) +
                                      " does not have it any more"});
  }
  if (!file_bytes_) {
    if (answer->file_bytes < written_) {  // what is here cannot be the beginning of it
      return note(start_over({Code::kDataLoss, path_ + ": is longer than what it is a copy of"}), now);
    }
    file_bytes_ = answer->file_bytes;
    next_ = written_ + bytes_at(written_);
  }
  if (answer->file_bytes != *file_bytes_ || answer->bytes.size() != bytes_at(answer->offset)) return;
  asked_.erase(asked);
  attempts_ = 0;
  pause_until_.reset();
  if (!answer->bytes.empty()) early_[answer->offset] = std::move(answer->bytes);
  note(write_early(), now);
}

Status SnapshotFetch::write_early() {
  for (auto at = early_.begin(); at != early_.end() && at->first == written_; at = early_.erase(at)) {
    TRY(file_->write(written_, as_bytes(at->second)));
    written_ += at->second.size();
  }
  return {};
}

void SnapshotFetch::unreachable(uint64_t peer, Time now) {
  if (peer != options_.from) return;
  for (Asked& asked : asked_) asked.until = std::min(asked.until, now + kAfterBreak);
}

// A chunk a call.
Status SnapshotFetch::verify() {
  const auto opened_or_next = [&]() -> Result<bool> {
    if (reader_) return reader_->next(chunk_);
    TRY_ASSIGN(reader_, snapshot::Reader::open(disk_, path_));
    const snapshot::Manifest& manifest = reader_->manifest();
    if (manifest.cluster_id != options_.cluster_id) {
      return ::fail(Code::kFailedPrecondition, path_ + ": is a snapshot of another cluster");
    }
    if (manifest.index != options_.snapshot.index || manifest.term != options_.snapshot.term) {
      return ::fail(Code::kDataLoss, path_ + ": is not the snapshot that was asked for");
    }
    return true;
  };
  auto more = opened_or_next();
  if (!more && more.error().code == Code::kDataLoss) return start_over(more.error());
  if (!more) return ::fail(std::move(more.error()));
  if (*more) return {};
  reader_.reset();
  file_.reset();
  state_ = State::kDone;
  return {};
}

Status SnapshotFetch::start_over(const Error& why) {
  if (++damaged_ == kDamagedMax) return ::fail(why);
  log_warn("a snapshot arrived damaged and is fetched again", {{"error", why.message}});
  reader_.reset();
  early_.clear();
  asked_.clear();
  file_bytes_.reset();
  state_ = State::kFetching;
  TRY(file_->truncate(0));
  written_ = written_out_ = next_ = 0;
  return {};
}

}  // namespace member
