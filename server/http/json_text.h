// UTF-8, for strings in JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace http::json {

// The length of the well-formed UTF-8 sequence at the start of `text` (which is not empty); 0: none. Overlong forms,
// surrogates and what is above U+10FFFF are not well-formed (RFC 3629).
size_t utf8_sequence(std::string_view text);
bool is_utf8(std::string_view text);
void append_utf8(std::string& out, uint32_t code_point);

}  // namespace http::json
