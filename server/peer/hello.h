// The first words on a connection: who asks for whom, and the answer. docs/format-peer.md has the layout. Pure: bytes
// in, bytes out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/network.h"
#include "base/result.h"

namespace peer {

inline constexpr uint16_t kFormat = 1;        // what this build writes
inline constexpr uint16_t kFormatOldest = 1;  // the oldest reader that can cope with it
inline constexpr size_t kPreambleBytes = 16;  // before either body; this much never changes its layout
inline constexpr uint8_t kMagicFirst = 0xc7;  // no letter: HTTP begins with one, TLS with 0x16

struct Hello {
  enum class Kind : uint8_t {
    kLane = 0,  // frames of one lane follow
    kAsk = 1,   // who is your cluster? The ids may be 0
  };
  Kind kind = Kind::kLane;
  Network::Lane lane = Network::Lane::kControl;
  uint64_t cluster = 0;
  uint64_t sender = 0;
  uint64_t addressee = 0;
  // Where the sender is reached: the addressee may not have heard of it yet. Those that do not fit are left out.
  std::vector<std::string> urls = {};
  uint64_t folder_id = 0;  // of the sender's data folder; 0: it does not say
  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class Verdict : uint8_t {
  kAccepted = 0,
  kWrongCluster = 1,
  kWrongMember = 2,
  kUnknownSender = 3,
  kRemoved = 4,
  kTooNew = 5,
  kNotUnderstood = 6,  // a kind or lane that this version does not have
  kOtherFolder = 7,    // the sender is known by another data folder
};

struct Answer {
  Verdict verdict = Verdict::kAccepted;
  uint64_t cluster = 0;  // of the one that answers
  uint64_t member = 0;
  Bytes text = {};  // the description that was asked for, or words on a refusal
  friend bool operator==(const Answer&, const Answer&) = default;
};

Bytes encode(const Hello& hello);
Bytes encode(const Answer& answer);

struct Preamble {
  uint16_t format = 0;
  uint16_t format_oldest = 0;
  uint32_t body_bytes = 0;
  uint32_t crc = 0;
};
enum class Side : uint8_t { kHello, kAnswer };

// `bytes` has kPreambleBytes. kDataLoss: not ours, or longer than the limit for that side.
Result<Preamble> parse_preamble(BytesView bytes, Side side);
// The checksum covers the preamble too. kDataLoss: it does not fit. kUnimplemented: for newer readers only. kUnknown: a
// kind, lane or verdict that this version does not have.
Result<Hello> parse_hello(BytesView preamble, BytesView body);
Result<Answer> parse_answer(BytesView preamble, BytesView body);

}  // namespace peer
