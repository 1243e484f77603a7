#include "raft/wire.h"

#include <string>

#include "base/check.h"

namespace raft {

namespace {

constexpr uint64_t kHeaderBytes = 4 + 9 * 8 + 4;
constexpr uint64_t kEntryHeaderBytes = 8 + 1 + 4;
constexpr uint8_t kReject = 1;
constexpr uint8_t kForced = 2;
constexpr auto kTypeMax = static_cast<uint8_t>(MessageType::kSnapshot);
constexpr auto kEntryTypeMax = static_cast<uint8_t>(EntryType::kMembership);

// The order of the numbers in the header.
template <class Each>
void each_number(Each each, auto& message) {
  each(message.from);
  each(message.to);
  each(message.term);
  each(message.log_index);
  each(message.log_term);
  each(message.commit);
  each(message.hint_index);
  each(message.hint_term);
  each(message.read_round);
}

tl::unexpected<Error> refuse(const std::string& why) {
  return fail(Code::kInvalidArgument, "raft: a message from a peer is malformed: " + why);
}

}  // namespace

uint64_t encoded_bytes(const Message& message) {
  uint64_t bytes = kHeaderBytes;
  for (const LogEntry& entry : message.entries) bytes += kEntryHeaderBytes + entry.data->size();
  return bytes;
}

void encode(const Message& message, Bytes& out) {
  const uint64_t bytes = encoded_bytes(message);
  CHECK(fault_of(message) == nullptr, fault_of(message), name(message.type));
  CHECK(bytes <= kWireMessageBytesMax, bytes, kWireMessageBytesMax);
  out.reserve(out.size() + bytes);
  append_integer(out, kWireVersion);
  append_integer(out, static_cast<uint8_t>(message.type));
  append_integer(out, static_cast<uint8_t>((message.reject ? kReject : 0) | (message.forced ? kForced : 0)));
  append_integer(out, uint8_t{0});
  each_number([&](uint64_t number) { append_integer(out, number); }, message);
  append_integer(out, static_cast<uint32_t>(message.entries.size()));
  for (const LogEntry& entry : message.entries) {
    CHECK(entry.data->size() <= kWireEntryBytesMax, entry.data->size(), kWireEntryBytesMax);
    append_integer(out, entry.term);
    append_integer(out, static_cast<uint8_t>(entry.type));
    append_integer(out, static_cast<uint32_t>(entry.data->size()));
    out.append(*entry.data);
  }
}

Result<Message> decode(BytesView bytes) {
  if (bytes.empty()) return refuse("it is empty");
  const auto version = load_integer<uint8_t>(bytes);
  if (version != kWireVersion) return refuse("of version " + std::to_string(version) + ", which is not known here");
  if (bytes.size() > kWireMessageBytesMax) return refuse(std::to_string(bytes.size()) + " bytes are too many");
  if (bytes.size() < kHeaderBytes) return refuse("it ends in its header");
  const auto type = load_integer<uint8_t>(bytes, 1);
  const auto flags = load_integer<uint8_t>(bytes, 2);
  if (type == 0 || type > kTypeMax) return refuse("of unknown type " + std::to_string(type));
  if ((flags & ~(kReject | kForced)) != 0 || load_integer<uint8_t>(bytes, 3) != 0) return refuse("unknown flags");

  Message message;
  message.type = static_cast<MessageType>(type);
  message.reject = (flags & kReject) != 0;
  message.forced = (flags & kForced) != 0;
  size_t offset = 4;
  each_number(
      [&](uint64_t& number) {
        number = load_integer<uint64_t>(bytes, offset);
        offset += sizeof(uint64_t);
      },
      message);
  const auto count = load_integer<uint32_t>(bytes, offset);
  offset += sizeof(uint32_t);
  if (count > (bytes.size() - offset) / kEntryHeaderBytes) return refuse("fewer entries than it says");
  message.entries.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string where = " at byte " + std::to_string(offset);
    if (bytes.size() - offset < kEntryHeaderBytes) return refuse("half an entry" + where);
    const auto entry_type = load_integer<uint8_t>(bytes, offset + 8);
    const auto length = load_integer<uint32_t>(bytes, offset + 9);
    if (entry_type > kEntryTypeMax) return refuse("an entry of unknown type" + where);
    if (length > kWireEntryBytesMax) return refuse("an entry that is too large" + where);
    LogEntry entry{.index = message.log_index + 1 + i,
                   .term = load_integer<uint64_t>(bytes, offset),
                   .type = static_cast<EntryType>(entry_type),
                   .data = nullptr};
    offset += kEntryHeaderBytes;
    if (length > bytes.size() - offset) return refuse("an entry that is cut off" + where);
    entry.data = std::make_shared<const Bytes>(as_text(bytes.subspan(offset, length)));
    offset += length;
    message.entries.push_back(std::move(entry));
  }
  if (offset != bytes.size()) return refuse(std::to_string(bytes.size() - offset) + " bytes too many");
  if (const char* fault = fault_of(message)) return refuse(fault);
  return message;
}

}  // namespace raft
