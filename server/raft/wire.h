// A message of the Raft core as bytes, for `peer`. One message is one frame's payload; framing, checksum and the
// sender's identity are the transport's.
//
//   u8 version (1) | u8 type | u8 flags (1: reject, 2: forced) | u8 0
//   u64 from, to, term, log_index, log_term, commit, hint_index, hint_term, read_round
//   u32 entries, then each: u64 term | u8 type | u32 length | data
//
// Little-endian. Terms and indexes end at 2^62 (message.h). An entry's index follows from log_index and its place.
// Another layout gets another version; whoever does not know it refuses the message.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "raft/message.h"

namespace raft {

constexpr uint8_t kWireVersion = 1;
constexpr uint64_t kWireEntryBytesMax = 16 << 20;    // of one entry's data; as in the log on disk
constexpr uint64_t kWireMessageBytesMax = 32 << 20;  // a full append and one entry of the largest size

uint64_t encoded_bytes(const Message& message);
// Appended to `out`. CHECKs that it is a message that decode() takes (message.h fault_of, the limits above).
void encode(const Message& message, Bytes& out);

// Takes exactly one message. kInvalidArgument: it is none (unknown version, type or flag, a limit exceeded, bytes
// missing or left over, or what fault_of() finds); says what and, where it helps, at which byte.
Result<Message> decode(BytesView bytes);

}  // namespace raft
