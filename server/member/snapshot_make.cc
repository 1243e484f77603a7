#include "member/snapshot_make.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "member/options.h"
#include "mvcc/revision.h"
#include "snapshot/reader.h"

namespace member {
namespace {

constexpr size_t kAsksWaitingMax = 64;       // one a lagging member is usual
constexpr size_t kRequestsWaitingMax = 256;  // some a member that pulls
constexpr int kRequestsPerStep = 2;          // of up to 1 MiB each
constexpr Time kSliceTime = std::chrono::milliseconds(2);
constexpr Time kRestMax = std::chrono::milliseconds(5);
constexpr int kRowsPerLookAtClock = 64;
constexpr uint64_t kWriteOutBytes = 1 << 20;
constexpr Time kUnusedFor = std::chrono::seconds(60);

snapshot::Manifest manifest_of(const store::Meta& meta, uint64_t cluster_id) {
  return {.cluster_id = cluster_id,
          .index = meta.applied_index,
          .term = meta.applied_term,
          .revision = meta.revision,
          .compacted = meta.compacted,
          .compaction_finished = meta.compaction_finished,
          .content_hash = meta.content_hash,
          .membership = meta.membership,
          .alarms = meta.alarms};
}

}  // namespace

SnapshotMaker::SnapshotMaker(Parts parts)
    : parts_(std::move(parts)),
      chunks_(parts_.disk, parts_.data_dir),
      asks_in_(*this, kAsksWaitingMax),
      requests_in_(*this, kRequestsWaitingMax) {}

void SnapshotMaker::ask(uint64_t index_min, Made done) {
  Ask ask{index_min, std::move(done)};
  if (!asks_in_.push(std::move(ask))) ask.done(::fail(Code::kResourceExhausted, kErrorTooManyRequests));
}

void SnapshotMaker::serve(uint64_t from, Bytes request) { (void)requests_in_.push({from, std::move(request)}); }

Time SnapshotMaker::step() {
  if (parts_.failure.failed()) return kWhenWoken;
  if (!looked_around_) {
    Status looked = look_around();
    looked_around_ = looked.has_value();
    if (!looked) {
      take_asks();
      abandon(looked.error());
      return kWhenWoken;
    }
  }
  answer_requests();
  take_asks();
  answer_asks();
  if (!writer_ && !asks_.empty()) {
    if (Status begun = begin(); !begun) abandon(begun.error());
  } else if (writer_ && parts_.clock.monotonic() >= next_slice_) {
    if (Status made = continue_making(); !made) abandon(made.error());
  }
  if (!requests_.empty()) return kNow;
  if (writer_) return next_slice_;
  return asks_.empty() ? remove_unused() : kNow;
}

// What an earlier run left: its newest snapshot is as good as a new one of that index.
Status SnapshotMaker::look_around() {
  made_.clear();
  TRY(create_folder(parts_.disk, snapshot_folder(parts_.data_dir)));
  const std::string unfinished = unfinished_snapshot_path(parts_.data_dir);
  TRY_ASSIGN(const bool there, parts_.disk.exists(unfinished));
  if (there) TRY(parts_.disk.remove(unfinished));
  TRY_ASSIGN(const auto found, list_snapshots(parts_.disk, parts_.data_dir));
  for (const Generation& at : found) {
    const std::string path = snapshot_path(parts_.data_dir, at);
    auto reader = snapshot::Reader::open(parts_.disk, path);
    const bool sound = reader && (*reader)->manifest().index == at.index && (*reader)->manifest().term == at.term &&
                       (*reader)->manifest().cluster_id == parts_.cluster_id;
    if (sound) {
      made_.push_back({.info = {at, (*reader)->bytes()}, .told = {}});
      continue;
    }
    log_warn("removed a snapshot that is of no use", {{"file", path}});
    reader = ::fail(Code::kUnknown, "closed");
    TRY(parts_.disk.remove(path));
  }
  return {};
}

void SnapshotMaker::answer_requests() {
  // Emptied at every step: an inbox that is left with something in it wakes nobody for what comes later.
  requests_in_.drain(drained_requests_);
  std::move(drained_requests_.begin(), drained_requests_.end(), std::back_inserter(requests_));
  while (requests_.size() > kRequestsWaitingMax) requests_.pop_front();  // asked for again
  for (int i = 0; i < kRequestsPerStep && !requests_.empty(); ++i) {
    const Request request = std::move(requests_.front());
    requests_.pop_front();
    const auto asked = decode_piece_request(as_bytes(request.frame));
    if (!asked) continue;
    auto answer = chunks_.read(*asked, parts_.clock.monotonic());
    if (!answer) {
      log_warn("a snapshot cannot be read", {{"error", answer.error().message}});
      answer = PieceAnswer{.status = PieceAnswer::Status::kGone, .snapshot = asked->snapshot, .bytes = {}};
    }
    (void)parts_.send(request.from, encode(*answer));
  }
}

void SnapshotMaker::take_asks() {
  asks_in_.drain(drained_asks_);
  std::move(drained_asks_.begin(), drained_asks_.end(), std::back_inserter(asks_));
  drained_asks_.clear();
}

// Those that what is there satisfies.
void SnapshotMaker::answer_asks() {
  if (made_.empty() || asks_.empty()) return;
  MadeFile& newest = made_.back();
  std::deque<Ask> waiting;
  for (Ask& ask : asks_) {
    if (ask.index_min > newest.info.at.index) {
      waiting.push_back(std::move(ask));
      continue;
    }
    newest.told = parts_.clock.monotonic();
    ask.done(newest.info);
  }
  asks_ = std::move(waiting);
}

Status SnapshotMaker::begin() {
  parts_.hold_compaction(true);
  began_ = parts_.clock.monotonic();
  store::Meta meta;
  std::vector<store::LeaseRow> leases;
  {
    TRY_ASSIGN(const auto txn, parts_.store.read());
    TRY_ASSIGN(meta, txn->whole_meta());
    TRY_ASSIGN(leases, txn->leases());
  }
  uint64_t wanted = 0;
  for (const Ask& ask : asks_) wanted = std::max(wanted, ask.index_min);
  if (meta.applied_index < wanted) {
    return ::fail(Code::kUnavailable, "this member has applied index " + std::to_string(meta.applied_index) +
                                          ", a snapshot is wanted at " + std::to_string(wanted));
  }
  making_ = {meta.applied_term, meta.applied_index};
  next_row_ = 0;
  end_row_ = mvcc::row_id({meta.revision + 1, 0});
  written_out_ = 0;
  applied_seen_ = meta.applied_index;
  next_slice_ = kNow;
  TRY_ASSIGN(writer_, snapshot::Writer::create(parts_.disk, unfinished_snapshot_path(parts_.data_dir),
                                               manifest_of(meta, parts_.cluster_id)));
  for (const store::LeaseRow& lease : leases) {
    writer_->add(snapshot::Lease{.id = lease.id, .ttl = lease.ttl, .remaining = lease.remaining});
    if (writer_->full()) TRY(writer_->flush());
  }
  return writer_->flush();
}

Status SnapshotMaker::continue_making() {
  if (writer_->bytes() - written_out_ >= kWriteOutBytes) {
    TRY(writer_->write_out());
    written_out_ = writer_->bytes();
    return {};
  }
  TRY(read_slice());
  if (writer_->full()) TRY(writer_->flush());
  if (next_row_ < end_row_) return {};
  return finish();
}

// The ReadTxn ends here; what it read is written to the file after that.
Status SnapshotMaker::read_slice() {
  const Time slice_began = parts_.clock.monotonic();
  const Time until = slice_began + kSliceTime;
  int rows = 0;
  bool cut = false;
  auto txn = parts_.store.read();
  Status scanned = txn ? (*txn)->scan(next_row_, end_row_, false,
                                      [&](const store::RowView& row) {
                                        writer_->add({.id = row.id,
                                                      .create_revision = row.create_revision,
                                                      .version = row.version,
                                                      .lease = row.lease,
                                                      .key = row.key,
                                                      .value = row.value});
                                        next_row_ = row.id + 1;
                                        cut = writer_->full() ||
                                              (++rows % kRowsPerLookAtClock == 0 && parts_.clock.monotonic() >= until);
                                        return !cut;
                                      })
                       : Status(::fail(txn.error()));
  TRY(std::move(scanned));
  if (!cut) next_row_ = end_row_;
  pace(slice_began, (*txn)->meta().applied_index);
  return {};
}

// Beside traffic a slice is followed by a rest of the same length, so that the traffic finds a core for itself half of
// the time on the smallest of machines.
void SnapshotMaker::pace(Time began, uint64_t applied_index) {
  const Time now = parts_.clock.monotonic();
  const bool traffic = std::exchange(applied_seen_, applied_index) != applied_index;
  next_slice_ = traffic ? now + std::min(now - began, kRestMax) : kNow;
}

Status SnapshotMaker::finish() {
  TRY(writer_->finish());
  const uint64_t bytes = writer_->bytes();
  const snapshot::Counts counts = writer_->counts();
  writer_.reset();
  parts_.hold_compaction(false);
  TRY(parts_.disk.rename(unfinished_snapshot_path(parts_.data_dir), snapshot_path(parts_.data_dir, making_)));
  TRY(parts_.disk.sync_directory(snapshot_folder(parts_.data_dir)));
  std::erase_if(made_, [&](const MadeFile& made) { return made.info.at == making_; });
  made_.push_back({.info = {making_, bytes}, .told = {}});
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(parts_.clock.monotonic() - began_);
  log_info("snapshot made", {{"index", making_.index},
                             {"bytes", bytes},
                             {"rows", counts.rows},
                             {"leases", counts.leases},
                             {"took_ms", took.count()}});
  answer_asks();
  return {};
}

void SnapshotMaker::abandon(const Error& error) {
  writer_.reset();
  parts_.hold_compaction(false);
  log_warn("could not make a snapshot", {{"error", error.message}});
  if (Status sound = parts_.store.sound(); !sound) parts_.failure.report(sound.error());
  const std::string unfinished = unfinished_snapshot_path(parts_.data_dir);
  if (const auto there = parts_.disk.exists(unfinished); there && *there) (void)parts_.disk.remove(unfinished);
  std::deque<Ask> asks;
  asks.swap(asks_);
  for (const Ask& ask : asks) ask.done(::fail(error));
}

// All but the newest. Returns when there may be another one to remove.
Time SnapshotMaker::remove_unused() {
  const Time now = parts_.clock.monotonic();
  Time next = kWhenWoken;
  std::vector<MadeFile> kept;
  for (const MadeFile& made : made_) {
    const Generation& at = made.info.at;
    const Time used = std::max(made.told, chunks_.last_use(at).value_or(Time{}));
    const bool newest = at == made_.back().info.at;
    if (newest || (used != Time{} && now < used + kUnusedFor)) {
      if (!newest) next = std::min(next, used + kUnusedFor);
      kept.push_back(made);
      continue;
    }
    chunks_.forget(at);
    const std::string path = snapshot_path(parts_.data_dir, at);
    if (Status removed = parts_.disk.remove(path); !removed) {
      log_warn("could not remove a snapshot", {{"error", removed.error().message}});
    }
  }
  made_ = std::move(kept);
  return next;
}

}  // namespace member
