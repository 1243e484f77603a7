// Little-endian integers in byte buffers, for everything of ours that goes to disk or to a peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

using Bytes = std::string;  // owned bytes: keys, values, records
using BytesView = std::span<const std::byte>;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "formats are little-endian and are copied as they are");

inline BytesView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(BytesView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

template <class Integer>
void append_integer(std::string& out, Integer value) {
  char raw[sizeof(Integer)];
  std::memcpy(raw, &value, sizeof(Integer));
  out.append(raw, sizeof(Integer));
}

// The caller has checked that `from` holds at least `offset + sizeof(Integer)` bytes.
template <class Integer>
Integer load_integer(BytesView from, size_t offset = 0) {
  Integer value;
  std::memcpy(&value, from.data() + offset, sizeof(Integer));
  return value;
}
