#include "raft/wire.h"

#include <gtest/gtest.h>

#include "base/memory_disk.h"  // SeededRandom

namespace raft {
namespace {

Message append_message() {
  Message message;
  message.type = MessageType::kAppend;
  message.from = 0x1122334455667788;
  message.to = 2;
  message.term = 9;
  message.log_index = 41;
  message.log_term = 7;
  message.commit = 40;
  message.entries = {
      {.index = 42, .term = 8, .data = std::make_shared<const Bytes>("one")},
      {.index = 43, .term = 9, .type = EntryType::kMembership, .data = std::make_shared<const Bytes>("\0two", 4)},
      {.index = 44, .term = 9}};
  return message;
}

Bytes encoded(const Message& message) {
  Bytes bytes;
  encode(message, bytes);
  return bytes;
}

void expect_equal(const Message& a, const Message& b) {
  EXPECT_EQ(a.type, b.type);
  EXPECT_EQ(a.from, b.from);
  EXPECT_EQ(a.to, b.to);
  EXPECT_EQ(a.term, b.term);
  EXPECT_EQ(a.log_index, b.log_index);
  EXPECT_EQ(a.log_term, b.log_term);
  EXPECT_EQ(a.commit, b.commit);
  EXPECT_EQ(a.reject, b.reject);
  EXPECT_EQ(a.forced, b.forced);
  EXPECT_EQ(a.hint_index, b.hint_index);
  EXPECT_EQ(a.hint_term, b.hint_term);
  EXPECT_EQ(a.read_round, b.read_round);
  ASSERT_EQ(a.entries.size(), b.entries.size());
  for (size_t i = 0; i < a.entries.size(); ++i) {
    EXPECT_EQ(a.entries[i].index, b.entries[i].index);
    EXPECT_EQ(a.entries[i].term, b.entries[i].term);
    EXPECT_EQ(a.entries[i].type, b.entries[i].type);
    EXPECT_EQ(*a.entries[i].data, *b.entries[i].data);
  }
}

std::string error_of(const Bytes& bytes) {
  const auto message = decode(as_bytes(bytes));
  if (message) return "none";
  EXPECT_EQ(message.error().code, Code::kInvalidArgument);
  return message.error().message.substr(message.error().message.find("malformed: ") + 11);
}

TEST(Wire, EveryTypeComesBackAsItWas) {
  for (uint8_t type = 1; type <= static_cast<uint8_t>(MessageType::kSnapshot); ++type) {
    SCOPED_TRACE(int{type});
    Message message{.type = static_cast<MessageType>(type),
                    .from = 3,
                    .to = 4,
                    .term = 12,
                    .log_index = 5,
                    .log_term = 11,
                    .commit = 7,
                    .reject = true,
                    .forced = type % 2 == 0,
                    .hint_index = 8,
                    .hint_term = 9,
                    .read_round = ~0ull};
    const Bytes bytes = encoded(message);
    EXPECT_EQ(bytes.size(), encoded_bytes(message));
    const auto again = decode(as_bytes(bytes));
    ASSERT_TRUE(again) << again.error().message;
    expect_equal(*again, message);
  }
}

TEST(Wire, EntriesComeBackAsTheyWere) {
  const Message message = append_message();
  Bytes bytes = "before";
  encode(message, bytes);
  EXPECT_EQ(bytes.size(), 6 + encoded_bytes(message));
  const auto again = decode(as_bytes(bytes).subspan(6));
  ASSERT_TRUE(again) << again.error().message;
  expect_equal(*again, message);
}

// The layout is a promise to other versions.
TEST(Wire, TheBytesOfVersionOne) {
  const Message message{
      .type = MessageType::kVote, .from = 1, .to = 2, .term = 3, .log_index = 4, .log_term = 2, .forced = true};
  Bytes expected("\x01\x01\x02\x00", 4);
  for (const uint64_t number : {1, 2, 3, 4, 2, 0, 0, 0, 0}) append_integer(expected, number);
  append_integer(expected, uint32_t{0});
  EXPECT_EQ(encoded(message), expected);
}

TEST(Wire, RefusesWhatIsCutOffOrTooLong) {
  const Bytes bytes = encoded(append_message());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(error_of(bytes.substr(0, length)), "none") << length;
  }
  EXPECT_EQ(error_of(bytes + "x"), "1 bytes too many");
}

TEST(Wire, SaysWhatIsWrong) {
  const Bytes bytes = encoded(append_message());
  const auto with = [&](size_t at, char value) {
    Bytes changed = bytes;
    changed.at(at) = value;
    return error_of(changed);
  };
  EXPECT_EQ(error_of(""), "it is empty");
  EXPECT_EQ(with(0, 2), "of version 2, which is not known here");
  EXPECT_EQ(with(1, 0), "of unknown type 0");
  EXPECT_EQ(with(1, 13), "of unknown type 13");
  EXPECT_EQ(with(1, 5), "with entries");
  EXPECT_EQ(with(2, 4), "unknown flags");
  EXPECT_EQ(with(3, 1), "unknown flags");
  EXPECT_EQ(with(79, 1), "fewer entries than it says");
  EXPECT_EQ(with(88, 2), "an entry of unknown type at byte 80");
  EXPECT_EQ(with(92, 2), "an entry that is too large at byte 80");
  EXPECT_EQ(with(91, 2), "an entry that is cut off at byte 80");
  EXPECT_EQ(with(80, 6), "a term that goes back");
  EXPECT_EQ(with(20, 8), "an entry of a later term");
  EXPECT_EQ(with(20, 0), "without a term");
  EXPECT_EQ(with(27, '\x41'), "a term that no cluster reaches");
  EXPECT_EQ(with(35, '\x41'), "an index no log reaches");
  EXPECT_EQ(error_of(Bytes("\x01", 1) + Bytes(kWireMessageBytesMax, '\0')),
            std::to_string(kWireMessageBytesMax + 1) + " bytes are too many");
}

TEST(Wire, NoiseIsRefusedOrComesBackAsItWas) {
  SeededRandom random(7);
  const Bytes good = encoded(append_message());
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes = good;
    for (uint64_t flips = random.below(4); flips-- > 0;) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    }
    if (const auto message = decode(as_bytes(bytes))) {
      ++taken;
      EXPECT_EQ(encoded(*message), bytes);
    }
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace raft
