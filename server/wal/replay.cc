#include "wal/replay.h"

#include <algorithm>

#include "base/check.h"

namespace wal {

namespace {

constexpr char kAdvice[] =
    " Nothing was changed. If the disk is sound, restore the file from a copy of it; else let this member go and add "
    "it again "
    "with an empty data folder (a single member: restore a snapshot).";

tl::unexpected<Error> damaged(const std::string& path, uint64_t offset, const std::string& what) {
  return fail(Code::kDataLoss, "write-ahead log " + path + " is damaged at offset " + std::to_string(offset) + ": " +
                                   what + "." + kAdvice);
}

class Reader {
 public:
  Reader(Disk& disk, std::string folder) : disk_(disk), folder_(std::move(folder)) {}

  Result<Replayed> run() {
    TRY(list_segments());
    TRY(read_headers());
    for (size_t i = 0; i < out_.segments.size(); ++i) TRY(read_segment(i));
    const WalContents& contents = out_.contents;
    if (contents.last_index() < contents.hard_state.commit) {
      return damaged(path(out_.segments.back()), out_.tail,
                     "entries up to " + std::to_string(contents.hard_state.commit) +
                         " are committed, but the log ends at " + std::to_string(contents.last_index()));
    }
    out_.last = last();
    return std::move(out_);
  }

 private:
  std::string path(const Segment& segment) const { return folder_ + "/" + segment.name; }
  Base last() const {
    const WalContents& contents = out_.contents;
    if (contents.entries.empty()) return {contents.base_index, contents.base_term};
    return {contents.entries.back().index, contents.entries.back().term};
  }

  Status list_segments() {
    auto names = disk_.list(folder_);
    if (!names) return fail(std::move(names.error()));
    for (std::string& name : *names) {
      if (name.ends_with(".tmp")) out_.left_over.push_back(name);
      if (!is_segment_file(name)) continue;
      if (!parse_file_name(name)) {
        return fail(Code::kDataLoss,
                    "write-ahead log: " + folder_ + "/" + name + " is not named like a segment." + kAdvice);
      }
      out_.segments.push_back({.name = std::move(name), .header = {}, .base = {}});
    }
    if (out_.segments.empty()) return fail(Code::kNotFound, "write-ahead log: no segment in " + folder_);
    std::sort(out_.segments.begin(), out_.segments.end(),
              [](const Segment& a, const Segment& b) { return a.name < b.name; });  // 16 digits: by sequence
    return {};
  }

  // All headers before anything else: one newer format anywhere, and the whole log is left alone.
  Status read_headers() {
    std::optional<Error> first_damage;
    for (Segment& segment : out_.segments) {
      TRY_ASSIGN(auto file, disk_.open(path(segment), OpenMode::kRead));
      std::vector<std::byte> bytes(kSegmentHeaderBytes);
      TRY_ASSIGN(const size_t count, file->read(0, bytes));
      bytes.resize(count);
      const auto found = read_segment_header(bytes);
      // A segment gets its name only when its header is durable, so a bad header is never a torn write.
      if (!found) {
        if (!first_damage) first_damage = damaged(path(segment), 0, "the segment's header is not whole").value();
        continue;
      }
      segment.header = found->header;
      if (segment.header.oldest_reader > kFormat) {
        return fail(Code::kFailedPrecondition,
                    "write-ahead log " + path(segment) + " has format " + std::to_string(segment.header.format) +
                        ", which needs a Conclave that reads format " + std::to_string(segment.header.oldest_reader) +
                        " (this one reads " + std::to_string(kFormat) + "). Nothing was changed.");
      }
      if (found->repaired_byte) repair(segment, *found->repaired_byte, bytes[*found->repaired_byte]);
      TRY_ASSIGN(const uint64_t size, file->size());
      if (!first_damage && (segment.header.bytes > kSegmentBytesMax || size < segment.header.bytes)) {
        first_damage = damaged(path(segment), size,
                               "the file has been cut: it had " + std::to_string(segment.header.bytes) + " bytes")
                           .value();
      }
    }
    if (first_damage) return fail(std::move(*first_damage));
    return check_row();
  }

  Status check_row() {
    const SegmentHeader& first = out_.segments.front().header;
    for (size_t i = 0; i < out_.segments.size(); ++i) {
      const Segment& segment = out_.segments[i];
      const SegmentHeader& header = segment.header;
      const SegmentName name = *parse_file_name(segment.name);
      if (name.sequence != header.sequence || name.first_index != header.first_index) {
        return damaged(path(segment), 0,
                       "it is segment " + file_name({header.sequence, header.first_index}) + " by its header");
      }
      if (!(header.identity == first.identity) || header.salt != first.salt) {
        return damaged(path(segment), 0, "it belongs to another log than " + out_.segments.front().name);
      }
      if (header.sequence != first.sequence + i) {
        return damaged(path(segment), 0, "segment " + std::to_string(first.sequence + i) + " before it is missing");
      }
    }
    out_.contents.identity = first.identity;
    out_.next_batch = first.first_batch;
    return {};
  }

  Status read_segment(size_t number) {
    Segment& segment = out_.segments[number];
    const bool newest = number + 1 == out_.segments.size();
    TRY(load(segment));
    if (segment.header.first_batch != out_.next_batch)
      return damaged(path(segment), 0, "batches before it are missing");

    uint64_t offset = kSegmentHeaderBytes;
    uint64_t last_offset = offset;
    const uint64_t end_batch = newest ? UINT64_MAX : out_.segments[number + 1].header.first_batch;
    while (out_.next_batch < end_batch) {
      const auto found = read_frame(bytes_, offset, segment.header.salt, out_.next_batch);
      if (!found) break;
      if (found->repaired_byte) repair(segment, *found->repaired_byte, bytes_[*found->repaired_byte]);
      TRY(take(number, offset, found->header));
      last_offset = offset;
      offset = found->end;
      ++out_.next_batch;
    }
    if (out_.next_batch == segment.header.first_batch) {
      return damaged(path(segment), offset,
                     "the segment's first batch, synced before the segment got its name, is not whole");
    }
    if (!newest) {
      if (out_.next_batch == end_batch) return {};
      return damaged(path(segment), offset,
                     "batch " + std::to_string(out_.next_batch) +
                         " is not whole, though a later segment shows that it was durable");
    }
    if (const auto later = find_frame_header(bytes_, offset, segment.header.salt, out_.next_batch + 1)) {
      return damaged(path(segment), offset,
                     "batch " + std::to_string(out_.next_batch) + " is not whole, though a later batch at offset " +
                         std::to_string(*later) + " shows that it was durable");
    }
    finish_tail(segment, last_offset, offset);
    return {};
  }

  Status load(const Segment& segment) {
    TRY_ASSIGN(auto file, disk_.open(path(segment), OpenMode::kRead));
    bytes_.resize(segment.header.bytes);
    TRY_ASSIGN(const size_t count, file->read(0, bytes_));
    if (count != bytes_.size())
      return fail(Code::kDataLoss, "write-ahead log " + path(segment) + ": short read." + kAdvice);
    return {};
  }

  // The last batch may have been written without its sync having succeeded, and then be known only to the system's
  // cache: it is written again, the same bytes, before anybody relies on it. What follows it is a torn batch (never
  // acknowledged) and is overwritten, so that it cannot be mistaken for anything later.
  void finish_tail(const Segment& segment, uint64_t last_offset, uint64_t end) {
    const auto is_set = [](std::byte byte) { return byte != std::byte{0}; };
    const auto last_set = std::find_if(bytes_.rbegin(), bytes_.rend() - static_cast<std::ptrdiff_t>(end), is_set);
    const auto used_end = static_cast<uint64_t>(bytes_.rend() - last_set);
    if (used_end > end) {
      out_.contents.torn_bytes_cut = used_end - end;
      out_.contents.notes.push_back("cut " + std::to_string(used_end - end) + " bytes of a torn batch from " +
                                    path(segment) + " at offset " + std::to_string(end));
      std::fill(bytes_.begin() + static_cast<std::ptrdiff_t>(end),
                bytes_.begin() + static_cast<std::ptrdiff_t>(used_end), std::byte{0});
    }
    const uint64_t fix_end = std::max(end, used_end);
    out_.fixes.push_back({.file = segment.name,
                          .offset = last_offset,
                          .bytes = Bytes(as_text(BytesView(bytes_).subspan(last_offset, fix_end - last_offset)))});
    out_.tail = end;
  }

  void repair(const Segment& segment, uint64_t offset, std::byte value) {
    out_.fixes.push_back({.file = segment.name, .offset = offset, .bytes = Bytes(1, static_cast<char>(value))});
    out_.contents.notes.push_back("repaired a flipped bit in " + path(segment) + " at offset " +
                                  std::to_string(offset) + "; the disk or memory of this machine may be failing");
    ++out_.contents.flips_repaired;
  }

  Status take(size_t number, uint64_t offset, const FrameHeader& header) {
    Segment& segment = out_.segments[number];
    auto records = decode(body_of(bytes_, offset, header), segment.header.format > kFormat);
    if (!records) return damaged(path(segment), offset, records.error().message);
    const bool first = header.sequence == segment.header.first_batch;
    if (first != records->base.has_value())
      return damaged(path(segment), offset, "a segment does not begin with its base");

    WalContents& contents = out_.contents;
    if (records->base) {
      segment.base = *records->base;
      if (number == 0) {
        contents.base_index = records->base->index;
        contents.base_term = records->base->term;
      } else if (!(*records->base == last())) {
        return damaged(path(segment), offset,
                       "it continues a log that ends at " + std::to_string(records->base->index) +
                           ", but the one before it ends at " + std::to_string(last().index));
      }
    }
    if (records->snapshot_note) contents.snapshot = std::move(records->snapshot_note);
    if (records->snapshot) {
      contents.entries.clear();
      contents.base_index = records->snapshot->index;
      contents.base_term = records->snapshot->term;
      for (size_t i = 0; i <= number; ++i) out_.segments[i].base = {contents.base_index, contents.base_term};
      contents.snapshot = std::move(records->snapshot);
      base_is_fixed_ = true;
    }
    for (EntryRecord& record : records->entries) TRY(take(number, offset, record));
    if (records->hard_state) contents.hard_state = *records->hard_state;
    if (records->mark) contents.mark = records->mark;
    return {};
  }

  Status take(size_t number, uint64_t offset, EntryRecord& record) {
    WalContents& contents = out_.contents;
    LogEntry& entry = record.entry;
    const std::string file = path(out_.segments[number]);
    const auto does_not_follow = [&] {
      return damaged(file, offset,
                     "entry " + std::to_string(entry.index) + " of term " + std::to_string(entry.term) +
                         " does not follow entry " + std::to_string(contents.last_index()) + " of term " +
                         std::to_string(last().term));
    };
    if (entry.index == 0 || entry.index > contents.last_index() + 1) return does_not_follow();
    if (entry.index <= contents.last_index()) {
      supersede(number, {entry.index - 1, record.previous_term});
      if (!(last() == Base{entry.index - 1, record.previous_term})) return does_not_follow();
    }
    if (record.previous_term != last().term || entry.term < last().term) return does_not_follow();
    contents.entries.push_back(std::move(entry));
    return {};
  }

  // The log goes on after `previous`, which may be in a segment that was dropped after this was written.
  void supersede(size_t number, const Base& previous) {
    WalContents& contents = out_.contents;
    if (previous.index >= contents.base_index) {
      contents.entries.resize(previous.index - contents.base_index);
    } else if (!base_is_fixed_) {
      contents.entries.clear();
      contents.base_index = previous.index;
      contents.base_term = previous.term;
    }
    for (size_t i = 0; i <= number; ++i) lower_base(out_.segments[i].base, previous);
  }

  Disk& disk_;
  const std::string folder_;
  bool base_is_fixed_ = false;    // by a snapshot: nothing was dropped after it that could be superseded
  std::vector<std::byte> bytes_;  // of the segment being read
  Replayed out_;
};

}  // namespace

Result<Replayed> replay(Disk& disk, const std::string& folder) { return Reader(disk, folder).run(); }

}  // namespace wal
