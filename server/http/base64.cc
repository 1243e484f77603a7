#include "http/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace http {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Two characters for each 12 bits: three bytes cost two lookups.
struct Pairs {
  char at[4096][2];
};
constexpr Pairs make_pairs() {
  Pairs pairs{};
  for (int i = 0; i < 4096; ++i) {
    pairs.at[i][0] = kAlphabet[i >> 6];
    pairs.at[i][1] = kAlphabet[i & 63];
  }
  return pairs;
}
constexpr Pairs kPairs = make_pairs();

// The value of each character, already shifted to its place in the 24 bits; kBad marks what is not in the alphabet.
constexpr uint32_t kBad = 1u << 31;
struct Values {
  uint32_t at[4][256];
};
constexpr Values make_values(char char_62, char char_63) {
  Values values{};
  for (auto& place : values.at) {
    for (uint32_t& value : place) value = kBad;
  }
  for (uint32_t i = 0; i < 64; ++i) {
    const char c = i == 62 ? char_62 : i == 63 ? char_63 : kAlphabet[i];
    for (int place = 0; place < 4; ++place) {
      values.at[place][static_cast<unsigned char>(c)] = i << (18 - 6 * place);
    }
  }
  return values;
}
constexpr Values kStandard = make_values('+', '/');
constexpr Values kUrl = make_values('-', '_');

// Decodes text without line breaks. `padded`: '=' fills the last group, else there is none.
bool decode(const Values& values, bool padded, std::string_view text, std::string& out) {
  if (padded) {
    if (text.size() % 4 != 0) return false;
    for (int i = 0; i < 2 && !text.empty() && text.back() == '='; ++i) text.remove_suffix(1);
  }
  if (text.size() % 4 == 1) return false;
  out.resize(text.size() / 4 * 3 + (text.size() % 4 == 0 ? 0 : text.size() % 4 - 1));
  const auto* from = reinterpret_cast<const unsigned char*>(text.data());
  char* to = out.data();
  uint32_t bad = 0;
  for (size_t groups = text.size() / 4; groups > 0; --groups, from += 4, to += 3) {
    const uint32_t bits = values.at[0][from[0]] | values.at[1][from[1]] | values.at[2][from[2]] | values.at[3][from[3]];
    bad |= bits;
    to[0] = static_cast<char>(bits >> 16);
    to[1] = static_cast<char>(bits >> 8);
    to[2] = static_cast<char>(bits);
  }
  if (const size_t rest = text.size() % 4; rest != 0) {
    uint32_t bits = values.at[0][from[0]] | values.at[1][from[1]];
    if (rest == 3) bits |= values.at[2][from[2]];
    bad |= bits;
    to[0] = static_cast<char>(bits >> 16);
    if (rest == 3) to[1] = static_cast<char>(bits >> 8);
  }
  return (bad & kBad) == 0;
}

}  // namespace

char* write_base64(char* to, std::string_view bytes) {
  const auto* from = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t size = bytes.size();
  for (; size >= 3; size -= 3, from += 3, to += 4) {
    const uint32_t bits = static_cast<uint32_t>(from[0]) << 16 | static_cast<uint32_t>(from[1]) << 8 | from[2];
    std::memcpy(to, kPairs.at[bits >> 12], 2);
    std::memcpy(to + 2, kPairs.at[bits & 0xfff], 2);
  }
  if (size > 0) {
    const uint32_t bits = static_cast<uint32_t>(from[0]) << 16 | (size == 2 ? static_cast<uint32_t>(from[1]) << 8 : 0);
    std::memcpy(to, kPairs.at[bits >> 12], 2);
    to[2] = size == 2 ? kAlphabet[bits >> 6 & 63] : '=';
    to[3] = '=';
    to += 4;
  }
  return to;
}

void append_base64(std::string& out, std::string_view bytes) {
  const size_t before = out.size();
  out.resize(before + base64_size(bytes.size()));
  write_base64(out.data() + before, bytes);
}

bool decode_base64(std::string_view text, std::string& out) {
  const bool padded = text.size() % 4 == 0;
  if (decode(kStandard, padded, text, out)) return true;
  // Rare from here on: the other alphabet, line breaks, or an error.
  const bool url = text.find_first_of("-_") != std::string_view::npos;
  std::string plain(text);
  plain.erase(std::remove_if(plain.begin(), plain.end(), [](char c) { return c == '\r' || c == '\n'; }), plain.end());
  return decode(url ? kUrl : kStandard, padded, plain, out);
}

}  // namespace http
