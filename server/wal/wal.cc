#include "wal/wal.h"

#include <algorithm>

#include "base/check.h"
#include "wal/record.h"
#include "wal/replay.h"
#include "wal/segment.h"
#include "wal/spare.h"

namespace wal {

namespace {

constexpr uint64_t kSegmentRounding = 4096;

std::string path_of(const std::string& folder, const std::string& name) { return folder + "/" + name; }

std::string parent_of(const std::string& folder) {
  const size_t slash = folder.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : folder.substr(0, slash);
}

// With parents, and durable: each new name is synced in the folder that holds it.
Status create_durable_directory(Disk& disk, const std::string& folder) {
  std::vector<std::string> holders = {parent_of(folder)};
  while (true) {
    TRY_ASSIGN(const bool there, disk.exists(holders.back()));
    if (there) break;
    holders.push_back(parent_of(holders.back()));
  }
  TRY(disk.create_directory(folder));
  for (const std::string& holder : holders) TRY(disk.sync_directory(holder));
  return {};
}

Status check_limits(const WalBatch& batch) {
  for (const LogEntry& entry : batch.entries) {
    if (entry.data->size() > kEntryBytesMax) {
      return fail(Code::kInvalidArgument, "write-ahead log: entry " + std::to_string(entry.index) + " has " +
                                              std::to_string(entry.data->size()) + " bytes, the limit is " +
                                              std::to_string(kEntryBytesMax));
    }
  }
  if (batch.snapshot && batch.snapshot->data.size() > kNoteBytesMax) {
    return fail(Code::kInvalidArgument, "write-ahead log: a snapshot record is too large");
  }
  if (const uint64_t bytes = encoded_bytes(batch); bytes > kBatchBytesMax) {
    return fail(Code::kInvalidArgument, "write-ahead log: a batch has " + std::to_string(bytes) +
                                            " bytes, the limit is " + std::to_string(kBatchBytesMax));
  }
  return {};
}

}  // namespace

struct Wal::State {
  State(Disk& disk_, Options options_) : disk(disk_), options(std::move(options_)), spare(disk, options.folder) {
    CHECK(options.segment_bytes >= kSegmentBytesMin, options.segment_bytes);
    CHECK(options.segment_bytes <= kSegmentBytesMax, options.segment_bytes);
  }

  Status write(const WalBatch& batch);
  void check_follows(const WalBatch& batch) const;
  void remember(const WalBatch& batch);
  Status make_room(uint64_t bytes);
  Status fill_spare_for(uint64_t position);
  Status begin_segment(uint64_t bytes);
  Status finish_segment();
  // A full disk, too, is told as damage here: what waits for space would wait for ever.
  Status stop_at(Error error) {
    if (error.code == Code::kResourceExhausted) error.code = Code::kDataLoss;
    failed = error;
    return fail(std::move(error));
  }

  const Base& base() const { return segments.front().base; }

  Disk& disk;
  const Options options;
  Spare spare;
  Identity identity;
  uint64_t salt = 0;
  std::vector<Segment> segments;  // the last one is being written
  std::unique_ptr<File> file;     // of the last one
  struct Begun {
    Segment segment;
    uint64_t tail = 0;
  };
  std::optional<Begun> begun;  // has its name already; nothing is written before it is the last one
  bool front_removed = false;  // the oldest one's file is gone, perhaps not durably
  uint64_t tail = 0;
  uint64_t next_batch = 1;
  Base last;
  Terms terms;
  HardState hard_state;
  std::optional<SnapshotRecord> snapshot;
  std::optional<StoreMark> mark;
  std::optional<Error> failed;
  Bytes buffer;  // of the batch being written, kept for its capacity
};

Wal::Wal(std::unique_ptr<State> state) : state_(std::move(state)) {}
Wal::~Wal() = default;

Result<bool> Wal::exists(Disk& disk, const std::string& folder) {
  TRY_ASSIGN(const bool there, disk.exists(folder));
  if (!there) return false;
  TRY_ASSIGN(const auto names, disk.list(folder));
  return std::any_of(names.begin(), names.end(), [](const std::string& name) { return is_segment_file(name); });
}

Result<std::unique_ptr<Wal>> Wal::create(Disk& disk, Options options, Identity identity, Random& random) {
  TRY_ASSIGN(const bool there, exists(disk, options.folder));
  if (there) return fail(Code::kAlreadyExists, "write-ahead log: there is one in " + options.folder);
  TRY(create_durable_directory(disk, options.folder));
  auto state = std::make_unique<State>(disk, std::move(options));
  state->identity = identity;
  state->salt = random.next();
  TRY(state->begin_segment(state->options.segment_bytes));
  return std::unique_ptr<Wal>(new Wal(std::move(state)));
}

Result<Wal::Opened> Wal::open(Disk& disk, Options options) {
  TRY_ASSIGN(Replayed replayed, replay(disk, options.folder));
  for (const Fix& fix : replayed.fixes) {
    TRY_ASSIGN(auto file, disk.open(path_of(options.folder, fix.file), OpenMode::kReadWrite));
    TRY(file->write(fix.offset, as_bytes(fix.bytes)));
    TRY(file->sync());
  }
  for (const std::string& name : replayed.left_over) TRY(disk.remove(path_of(options.folder, name)));
  TRY(disk.sync_directory(options.folder));

  auto state = std::make_unique<State>(disk, std::move(options));
  const SegmentHeader& newest = replayed.segments.back().header;
  state->identity = newest.identity;
  state->salt = newest.salt;
  TRY_ASSIGN(state->file,
             disk.open(path_of(state->options.folder, replayed.segments.back().name), OpenMode::kReadWrite));
  state->segments = std::move(replayed.segments);
  state->tail = replayed.tail;
  state->next_batch = replayed.next_batch;
  CHECK(state->base() == (Base{replayed.contents.base_index, replayed.contents.base_term}));
  state->terms.reset(state->base().index, state->base().term);
  for (const LogEntry& entry : replayed.contents.entries) state->terms.set_last(entry.index, entry.term);
  state->last = replayed.last;
  state->hard_state = replayed.contents.hard_state;
  state->snapshot = replayed.contents.snapshot;
  state->mark = replayed.contents.mark;
  return Opened{.wal = std::unique_ptr<Wal>(new Wal(std::move(state))), .contents = std::move(replayed.contents)};
}

Status Wal::append(const WalBatch& batch) { return state_->write(batch); }

Status Wal::seal() { return state_->write({}); }

Status Wal::State::write(const WalBatch& batch) {
  if (failed) return fail(*failed);
  TRY(check_limits(batch));
  check_follows(batch);
  const uint64_t bytes = frame_bytes(encoded_bytes(batch));
  TRY(make_room(bytes));

  buffer.assign(kFrameHeaderBytes, '\0');
  encode(batch, terms, buffer);
  finish_frame(salt, next_batch, 0, buffer);
  CHECK(buffer.size() == bytes, buffer.size(), bytes);
  CHECK(tail + bytes <= segments.back().header.bytes, tail, bytes);
  if (Status status = file->write(tail, as_bytes(buffer)); !status) {
    // The same bytes go to the same place when there is space; until then they are a torn tail.
    if (status.error().code == Code::kResourceExhausted) return status;
    return stop_at(std::move(status.error()));
  }
  if (Status status = file->sync(); !status) return stop_at(std::move(status.error()));
  tail += bytes;
  ++next_batch;
  remember(batch);
  return {};
}

void Wal::State::check_follows(const WalBatch& batch) const {
  Base first = base();
  Base end = last;
  if (batch.snapshot) {
    CHECK(batch.snapshot->index >= hard_state.commit, batch.snapshot->index, hard_state.commit);
    first = end = {batch.snapshot->index, batch.snapshot->term};
  }
  for (const LogEntry& entry : batch.entries) {
    CHECK(entry.index > first.index, entry.index, first.index);
    CHECK(entry.index <= end.index + 1, entry.index, end.index);
    CHECK(entry.index > hard_state.commit, entry.index, hard_state.commit);  // what is decided is never rewritten
    CHECK(entry.index != end.index + 1 || entry.term >= end.term, entry.index, entry.term, end.term);
    end = {entry.index, entry.term};
  }
  if (batch.hard_state) {
    CHECK(batch.hard_state->term >= hard_state.term, batch.hard_state->term, hard_state.term);
    CHECK(batch.hard_state->commit >= hard_state.commit, batch.hard_state->commit, hard_state.commit);
    CHECK(batch.hard_state->commit <= end.index, batch.hard_state->commit, end.index);
  }
}

void Wal::State::remember(const WalBatch& batch) {
  if (batch.snapshot) {
    snapshot = batch.snapshot;
    last = {snapshot->index, snapshot->term};
    for (Segment& segment : segments) segment.base = last;
  }
  for (const LogEntry& entry : batch.entries) {
    if (entry.index <= last.index) {
      for (Segment& segment : segments) lower_base(segment.base, {entry.index - 1, terms.at(entry.index - 1)});
    }
    last = {entry.index, entry.term};
  }
  if (batch.hard_state) hard_state = *batch.hard_state;
  if (batch.mark) mark = batch.mark;
}

Status Wal::State::make_room(uint64_t bytes) {
  if (begun) TRY(finish_segment());
  if (bytes <= segments.back().header.bytes - tail) {
    // Steps of filling that are due. A full disk is not yet this batch's concern.
    Status status = fill_spare_for(tail + bytes);
    if (!status && status.error().code != Code::kResourceExhausted) return stop_at(std::move(status.error()));
    return {};
  }
  return begin_segment(bytes);
}

// In the second half of a segment the next one is filled twice as fast as this one is written.
Status Wal::State::fill_spare_for(uint64_t position) {
  const uint64_t half = segments.back().header.bytes / 2;
  if (position <= half) return {};
  const uint64_t due = std::min(options.segment_bytes, 2 * (position - half));
  while (spare.filled() < due) TRY(spare.step(options.segment_bytes));
  return {};
}

// A new segment with room for a batch of `bytes`. It gets its name only when its header and first batch are durable, so
// a crash leaves either nothing or all of it.
Status Wal::State::begin_segment(uint64_t bytes) {
  const uint64_t sequence = segments.empty() ? 1 : segments.back().header.sequence + 1;
  Bytes start(kSegmentHeaderBytes + kFrameHeaderBytes, '\0');
  encode(Checkpoint{.base = last, .hard_state = hard_state, .snapshot = snapshot, .mark = mark}, start);
  finish_frame(salt, next_batch, kSegmentHeaderBytes, start);
  const uint64_t needed = (start.size() + bytes + kSegmentRounding - 1) / kSegmentRounding * kSegmentRounding;
  const SegmentHeader header{.identity = identity,
                             .salt = salt,
                             .sequence = sequence,
                             .first_batch = next_batch,
                             .first_index = last.index + 1,
                             .bytes = std::max(options.segment_bytes, needed)};
  Bytes encoded;
  encode(header, encoded);
  start.replace(0, kSegmentHeaderBytes, encoded);

  const auto build = [&]() -> Status {
    while (!spare.is_ready(header.bytes)) TRY(spare.step(header.bytes));
    TRY(spare.file().write(0, as_bytes(start)));
    return spare.file().sync();
  };
  if (Status status = build(); !status) {
    spare.discard();
    if (status.error().code == Code::kResourceExhausted) return status;  // the log itself was not touched
    return stop_at(std::move(status.error()));
  }
  const std::string name = file_name({.sequence = sequence, .first_index = header.first_index});
  spare.release();
  if (Status status = disk.rename(spare.path(), path_of(options.folder, name)); !status) {
    return stop_at(std::move(status.error()));
  }
  begun = Begun{.segment = {.name = name, .header = header, .base = last}, .tail = start.size()};
  return finish_segment();
}

// Without a free descriptor nothing is done: then again before the next batch.
Status Wal::State::finish_segment() {
  const auto publish = [&]() -> Status {
    TRY(disk.sync_directory(options.folder));
    TRY_ASSIGN(file, disk.open(path_of(options.folder, begun->segment.name), OpenMode::kReadWrite));
    return {};
  };
  if (Status status = publish(); !status) {
    if (status.error().code == Code::kResourceExhausted) return status;
    return stop_at(std::move(status.error()));
  }
  segments.push_back(std::move(begun->segment));
  tail = begun->tail;
  ++next_batch;
  begun.reset();
  return {};
}

Result<bool> Wal::prepare() {
  State& state = *state_;
  if (state.failed) return fail(*state.failed);
  const uint64_t bytes = state.options.segment_bytes;
  if (state.tail <= state.segments.back().header.bytes / 2 || state.spare.is_ready(bytes)) return false;
  if (Status status = state.spare.step(bytes); !status) {
    if (status.error().code != Code::kResourceExhausted) state.failed = status.error();
    return fail(std::move(status.error()));
  }
  return !state.spare.is_ready(bytes);
}

Status Wal::drop_before(uint64_t index) {
  State& state = *state_;
  if (state.failed) return fail(*state.failed);
  CHECK(index <= state.last.index + 1, index, state.last.index);
  // The oldest goes first and its removal is made durable before the next, so that a crash leaves no hole.
  while (state.segments.size() > 1 && state.segments[1].base.index < index) {
    if (!state.front_removed) {
      if (Status status = state.disk.remove(path_of(state.options.folder, state.segments.front().name)); !status) {
        return state.stop_at(std::move(status.error()));
      }
      state.front_removed = true;
    }
    if (Status status = state.disk.sync_directory(state.options.folder); !status) {
      if (status.error().code == Code::kResourceExhausted) return status;  // no free descriptor: nothing was done
      return state.stop_at(std::move(status.error()));
    }
    state.front_removed = false;
    state.segments.erase(state.segments.begin());
  }
  state.terms.forget_before(state.base().index);
  return {};
}

Identity Wal::identity() const { return state_->identity; }
uint64_t Wal::base_index() const { return state_->base().index; }
uint64_t Wal::last_index() const { return state_->last.index; }
HardState Wal::hard_state() const { return state_->hard_state; }
uint64_t Wal::segment_count() const { return state_->segments.size(); }

uint64_t Wal::bytes_on_disk() const {
  uint64_t bytes = state_->spare.bytes_on_disk();
  for (const Segment& segment : state_->segments) bytes += segment.header.bytes;
  return bytes;
}

}  // namespace wal
