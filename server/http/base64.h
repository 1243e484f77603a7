// Base64 as Go's protojson reads and writes it: out in the standard alphabet with padding; in, standard or URL-safe
// (never both in one text), padded when the length is a multiple of four and unpadded otherwise, line breaks skipped,
// spare bits of the last character ignored.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace http {

constexpr size_t base64_size(size_t bytes) { return (bytes + 2) / 3 * 4; }

// Appends the encoding of `bytes` to `out`.
void append_base64(std::string& out, std::string_view bytes);
// Writes base64_size(bytes.size()) characters at `to`; returns their end.
char* write_base64(char* to, std::string_view bytes);

// False: not base64; `out` is then unspecified.
bool decode_base64(std::string_view text, std::string& out);

}  // namespace http
