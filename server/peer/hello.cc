#include "peer/hello.h"

#include "base/check.h"
#include "base/crc32c.h"
#include "peer/limits.h"

namespace peer {
namespace {

constexpr std::string_view kHelloMagic =
    "\xc7"
    "CVp";
constexpr std::string_view kAnswerMagic =
    "\xc7"
    "CVa";
static_assert(static_cast<uint8_t>(kHelloMagic[0]) == kMagicFirst);
constexpr size_t kCrcOffset = 12;
constexpr size_t kHelloBodyBytes = 32;
constexpr size_t kHelloUrlsBytesMax = kHelloBodyBytesMax - kHelloBodyBytes - sizeof(uint16_t) - sizeof(uint64_t);
constexpr size_t kAnswerBodyBytes = 24;

uint32_t checksum(BytesView preamble, BytesView body) { return crc32c(body, crc32c(preamble.first(kCrcOffset))); }

Bytes frame(std::string_view magic, std::string_view body) {
  Bytes out(magic);
  append_integer(out, kFormat);
  append_integer(out, kFormatOldest);
  append_integer(out, static_cast<uint32_t>(body.size()));
  append_integer(out, checksum(as_bytes(out), as_bytes(body)));
  CHECK(out.size() == kPreambleBytes);
  out.append(body);
  return out;
}

// That the body is whole, and for readers like us.
Status check(BytesView preamble, BytesView body, size_t body_bytes_min) {
  CHECK(preamble.size() == kPreambleBytes, preamble.size());
  if (checksum(preamble, body) != load_integer<uint32_t>(preamble, kCrcOffset)) {
    return fail(Code::kDataLoss, "the checksum does not match");
  }
  const auto oldest = load_integer<uint16_t>(preamble, 6);
  if (oldest > kFormat) {
    return fail(Code::kUnimplemented, "format " + std::to_string(load_integer<uint16_t>(preamble, 4)) +
                                          " needs a reader of format " + std::to_string(oldest) +
                                          " or newer, this member's is " + std::to_string(kFormat));
  }
  if (body.size() < body_bytes_min) return fail(Code::kDataLoss, "the body is too short");
  return {};
}

// What older versions do not say is left as it is.
Status parse_rest(BytesView rest, Hello& hello) {
  if (rest.size() < sizeof(uint16_t)) return {};
  const auto size = load_integer<uint16_t>(rest, 0);
  rest = rest.subspan(sizeof(uint16_t));
  if (size > rest.size()) return fail(Code::kDataLoss, "the URLs are cut short");
  std::string_view text = as_text(rest.first(size));
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return fail(Code::kDataLoss, "a URL without its end");
    hello.urls.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  rest = rest.subspan(size);
  if (rest.size() >= sizeof(uint64_t)) hello.folder_id = load_integer<uint64_t>(rest, 0);
  return {};
}

}  // namespace

Bytes encode(const Hello& hello) {
  Bytes body;
  append_integer(body, static_cast<uint8_t>(hello.kind));
  append_integer(body, static_cast<uint8_t>(hello.lane));
  body.append(6, '\0');
  append_integer(body, hello.cluster);
  append_integer(body, hello.sender);
  append_integer(body, hello.addressee);
  CHECK(body.size() == kHelloBodyBytes);
  Bytes urls;
  for (const std::string& url : hello.urls) {
    if (urls.size() + url.size() + 1 <= kHelloUrlsBytesMax) urls.append(url).push_back('\n');
  }
  append_integer(body, static_cast<uint16_t>(urls.size()));
  body += urls;
  append_integer(body, hello.folder_id);
  return frame(kHelloMagic, body);
}

Bytes encode(const Answer& answer) {
  Bytes body;
  append_integer(body, static_cast<uint8_t>(answer.verdict));
  body.append(7, '\0');
  append_integer(body, answer.cluster);
  append_integer(body, answer.member);
  CHECK(body.size() == kAnswerBodyBytes);
  body.append(answer.text);
  CHECK(body.size() <= kAnswerBodyBytesMax, body.size());
  return frame(kAnswerMagic, body);
}

Result<Preamble> parse_preamble(BytesView bytes, Side side) {
  CHECK(bytes.size() == kPreambleBytes, bytes.size());
  const bool hello = side == Side::kHello;
  if (as_text(bytes.first(4)) != (hello ? kHelloMagic : kAnswerMagic)) {
    return fail(Code::kDataLoss, "this is not the protocol of Conclave's members");
  }
  const Preamble preamble{.format = load_integer<uint16_t>(bytes, 4),
                          .format_oldest = load_integer<uint16_t>(bytes, 6),
                          .body_bytes = load_integer<uint32_t>(bytes, 8),
                          .crc = load_integer<uint32_t>(bytes, kCrcOffset)};
  if (preamble.body_bytes > (hello ? kHelloBodyBytesMax : kAnswerBodyBytesMax)) {
    return fail(Code::kDataLoss, "the body is too long");
  }
  return preamble;
}

Result<Hello> parse_hello(BytesView preamble, BytesView body) {
  TRY(check(preamble, body, kHelloBodyBytes));
  const auto kind = load_integer<uint8_t>(body, 0);
  const auto lane = load_integer<uint8_t>(body, 1);
  if (kind > static_cast<uint8_t>(Hello::Kind::kAsk)) return fail(Code::kUnknown, "a kind of hello of a later version");
  if (lane >= Network::kLanes) return fail(Code::kUnknown, "a lane of a later version");
  Hello hello{.kind = static_cast<Hello::Kind>(kind),
              .lane = static_cast<Network::Lane>(lane),
              .cluster = load_integer<uint64_t>(body, 8),
              .sender = load_integer<uint64_t>(body, 16),
              .addressee = load_integer<uint64_t>(body, 24)};
  TRY(parse_rest(body.subspan(kHelloBodyBytes), hello));
  return hello;
}

Result<Answer> parse_answer(BytesView preamble, BytesView body) {
  TRY(check(preamble, body, kAnswerBodyBytes));
  const auto verdict = load_integer<uint8_t>(body, 0);
  if (verdict > static_cast<uint8_t>(Verdict::kOtherFolder)) {
    return fail(Code::kUnknown, "refused for a reason of a later version");
  }
  return Answer{.verdict = static_cast<Verdict>(verdict),
                .cluster = load_integer<uint64_t>(body, 8),
                .member = load_integer<uint64_t>(body, 16),
                .text = Bytes(as_text(body.subspan(kAnswerBodyBytes)))};
}

}  // namespace peer
