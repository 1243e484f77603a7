#include "wal/record.h"

namespace wal {

namespace {

constexpr uint64_t kRecordHeaderBytes = 8;
constexpr uint64_t kEntryFixedBytes = 25;     // index, term, previous term, type
constexpr uint64_t kSnapshotFixedBytes = 16;  // index, term
constexpr uint64_t kHardStateBytes = 24;
constexpr uint64_t kMarkBytes = 21;
constexpr uint64_t kBaseBytes = 16;

void begin_record(RecordType type, uint64_t length, Bytes& out) {
  append_integer(out, static_cast<uint32_t>(type));
  append_integer(out, static_cast<uint32_t>(length));
}

void encode(const HardState& state, Bytes& out) {
  begin_record(RecordType::kHardState, kHardStateBytes, out);
  append_integer(out, state.term);
  append_integer(out, state.vote);
  append_integer(out, state.commit);
}

void encode(const StoreMark& mark, Bytes& out) {
  begin_record(RecordType::kMark, kMarkBytes, out);
  append_integer(out, mark.applied);
  append_integer(out, mark.salt1);
  append_integer(out, mark.salt2);
  append_integer(out, mark.frames);
  append_integer(out, static_cast<uint8_t>(mark.done));
}

void encode(RecordType type, const SnapshotRecord& snapshot, Bytes& out) {
  begin_record(type, kSnapshotFixedBytes + snapshot.data.size(), out);
  append_integer(out, snapshot.index);
  append_integer(out, snapshot.term);
  out.append(snapshot.data);
}

void encode(const LogEntry& entry, uint64_t previous_term, Bytes& out) {
  begin_record(RecordType::kEntry, kEntryFixedBytes + entry.data->size(), out);
  append_integer(out, entry.index);
  append_integer(out, entry.term);
  append_integer(out, previous_term);
  append_integer(out, static_cast<uint8_t>(entry.type));
  out.append(*entry.data);
}

SnapshotRecord decode_snapshot(BytesView payload) {
  return {.index = load_integer<uint64_t>(payload, 0),
          .term = load_integer<uint64_t>(payload, 8),
          .data = Bytes(as_text(payload.subspan(kSnapshotFixedBytes)))};
}

// False: the payload's length or a value in it is not what `type` demands.
bool decode_payload(RecordType type, BytesView payload, Records& records) {
  switch (type) {
    case RecordType::kHardState:
      if (payload.size() != kHardStateBytes) return false;
      records.hard_state = {load_integer<uint64_t>(payload, 0), load_integer<uint64_t>(payload, 8),
                            load_integer<uint64_t>(payload, 16)};
      return true;
    case RecordType::kMark:
      if (payload.size() != kMarkBytes || load_integer<uint8_t>(payload, 20) > 1) return false;
      records.mark = {load_integer<uint64_t>(payload, 0), load_integer<uint32_t>(payload, 8),
                      load_integer<uint32_t>(payload, 12), load_integer<uint32_t>(payload, 16),
                      load_integer<uint8_t>(payload, 20) == 1};
      return true;
    case RecordType::kSnapshot:
    case RecordType::kSnapshotNote:
      if (payload.size() < kSnapshotFixedBytes || payload.size() > kSnapshotFixedBytes + kNoteBytesMax) return false;
      (type == RecordType::kSnapshot ? records.snapshot : records.snapshot_note) = decode_snapshot(payload);
      return true;
    case RecordType::kBase:
      if (payload.size() != kBaseBytes) return false;
      records.base = {load_integer<uint64_t>(payload, 0), load_integer<uint64_t>(payload, 8)};
      return true;
    case RecordType::kEntry: {
      if (payload.size() < kEntryFixedBytes || payload.size() > kEntryFixedBytes + kEntryBytesMax) return false;
      const auto entry_type = load_integer<uint8_t>(payload, 24);
      if (entry_type > static_cast<uint8_t>(EntryType::kMembership)) return false;
      records.entries.push_back(
          {.entry = {.index = load_integer<uint64_t>(payload, 0),
                     .term = load_integer<uint64_t>(payload, 8),
                     .type = static_cast<EntryType>(entry_type),
                     .data = std::make_shared<const Bytes>(as_text(payload.subspan(kEntryFixedBytes)))},
           .previous_term = load_integer<uint64_t>(payload, 16)});
      return true;
    }
  }
  return false;
}

bool is_known(uint32_t type) {
  return type >= static_cast<uint32_t>(RecordType::kHardState) && type <= static_cast<uint32_t>(RecordType::kEntry);
}

}  // namespace

uint64_t encoded_bytes(const WalBatch& batch) {
  uint64_t bytes = 0;
  if (batch.snapshot) bytes += kRecordHeaderBytes + kSnapshotFixedBytes + batch.snapshot->data.size();
  for (const LogEntry& entry : batch.entries) bytes += kRecordHeaderBytes + kEntryFixedBytes + entry.data->size();
  if (batch.hard_state) bytes += kRecordHeaderBytes + kHardStateBytes;
  if (batch.mark) bytes += kRecordHeaderBytes + kMarkBytes;
  return bytes;
}

void encode(const WalBatch& batch, Terms& terms, Bytes& out) {
  if (batch.snapshot) {
    encode(RecordType::kSnapshot, *batch.snapshot, out);
    terms.reset(batch.snapshot->index, batch.snapshot->term);
  }
  for (const LogEntry& entry : batch.entries) {
    encode(entry, terms.at(entry.index - 1), out);
    terms.set_last(entry.index, entry.term);
  }
  if (batch.hard_state) encode(*batch.hard_state, out);
  if (batch.mark) encode(*batch.mark, out);
}

void encode(const Checkpoint& checkpoint, Bytes& out) {
  begin_record(RecordType::kBase, kBaseBytes, out);
  append_integer(out, checkpoint.base.index);
  append_integer(out, checkpoint.base.term);
  if (checkpoint.snapshot) encode(RecordType::kSnapshotNote, *checkpoint.snapshot, out);
  encode(checkpoint.hard_state, out);
  if (checkpoint.mark) encode(*checkpoint.mark, out);
}

Result<Records> decode(BytesView body, bool skip_unknown) {
  Records records;
  for (size_t offset = 0; offset < body.size();) {
    const auto broken = [start = offset](std::string what) {
      return fail(Code::kDataLoss, std::move(what) + " at byte " + std::to_string(start) + " of the batch");
    };
    if (body.size() - offset < kRecordHeaderBytes) return broken("half a record");
    const auto type = load_integer<uint32_t>(body, offset);
    const auto length = load_integer<uint32_t>(body, offset + 4);
    offset += kRecordHeaderBytes;
    if (length > body.size() - offset) return broken("a record that is too long");
    if (is_known(type)) {
      if (!decode_payload(static_cast<RecordType>(type), body.subspan(offset, length), records)) {
        return broken("a malformed record of type " + std::to_string(type));
      }
    } else if (!skip_unknown) {
      return broken("a record of unknown type " + std::to_string(type));
    }
    offset += length;
  }
  return records;
}

}  // namespace wal
