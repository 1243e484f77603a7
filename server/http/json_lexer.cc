#include "http/json_lexer.h"

#include <cstdint>
#include <vector>

#include "http/json_number.h"
#include "http/json_text.h"
#include "http/limits.h"

namespace http::json {

std::string Lexer::place(const char* at) const {
  size_t line = 1;
  const char* start = text_.data();
  for (const char* c = start; c != at; ++c) {
    if (*c == '\n') {
      ++line;
      start = c + 1;
    }
  }
  return "(line " + std::to_string(line) + ":" + std::to_string(at - start + 1) + ")";
}

bool Lexer::syntax(std::string_view where) {
  if (done()) return fail("unexpected EOF");
  static constexpr char kHex[] = "0123456789abcdef";
  const auto c = static_cast<unsigned char>(*at_);
  std::string shown;
  if (c < 0x20 || c >= 0x7f) {
    shown.append("\\x");
    shown += kHex[c >> 4];
    shown += kHex[c & 15];
  } else {
    if (c == '\'') shown += '\\';
    shown += *at_;
  }
  return fail("invalid character '" + shown + "' " + std::string(where));
}

bool Lexer::literal(std::string_view word) {
  for (const char c : word) {
    if (!take(c)) return syntax("in literal " + std::string(word) + " (expecting '" + c + "')");
  }
  return true;
}

bool Lexer::string(std::string_view& value, std::string& scratch) {
  const char* from = ++at_;
  unsigned high = 0;
  for (; at_ != end_; ++at_) {
    const auto c = static_cast<unsigned char>(*at_);
    if (c == '"') {
      value = {from, static_cast<size_t>(at_ - from)};
      ++at_;
      if (high >= 0x80 && !is_utf8(value)) {
        return fail("proto: syntax error " + place(from - 1) + ": invalid UTF-8 in string");
      }
      return true;
    }
    if (c == '\\' || c < 0x20) break;
    high |= c;
  }
  at_ = from;
  return string_with_escapes(value, scratch);
}

bool Lexer::string_with_escapes(std::string_view& value, std::string& scratch) {
  const char* from = at_ - 1;
  scratch.clear();
  while (!done()) {
    const auto c = static_cast<unsigned char>(*at_);
    if (c < 0x20) return syntax("in string literal");
    ++at_;
    if (c == '"') {
      value = scratch;
      return is_utf8(value) || fail("proto: syntax error " + place(from) + ": invalid UTF-8 in string");
    }
    if (c != '\\') {
      scratch += static_cast<char>(c);
    } else if (!escape(scratch)) {
      return false;
    }
  }
  return syntax({});
}

bool Lexer::escape(std::string& out) {
  if (done()) return syntax({});
  switch (*at_) {
    case '"':
    case '\\':
    case '/':
      out += *at_;
      break;
    case 'b':
      out += '\b';
      break;
    case 'f':
      out += '\f';
      break;
    case 'n':
      out += '\n';
      break;
    case 'r':
      out += '\r';
      break;
    case 't':
      out += '\t';
      break;
    case 'u': {
      const char* from = at_++ - 1;
      uint32_t code = 0;
      if (!utf16_unit(code)) return false;
      if (code >= 0xd800 && code < 0xe000) {
        uint32_t low = 0;
        if (code < 0xdc00 && rest().starts_with("\\u")) {
          at_ += 2;
          if (!utf16_unit(low)) return false;
        }
        if (low < 0xdc00 || low >= 0xe000) {
          return fail("proto: syntax error " + place(from) + ": invalid escape code in string");
        }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      }
      append_utf8(out, code);
      return true;
    }
    default:
      return syntax("in string escape code");
  }
  ++at_;
  return true;
}

bool Lexer::utf16_unit(uint32_t& value) {
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = done() ? '\0' : *at_;
    uint32_t digit;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint32_t>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<uint32_t>(c - 'A' + 10);
    } else {
      return syntax("in \\u hexadecimal character escape");
    }
    value = value << 4 | digit;
  }
  return true;
}

bool Lexer::comma_or_end(char close, bool& more) {
  skip_space();
  more = take(',');
  if (more || take(close)) return true;
  return syntax(close == '}' ? "after object key:value pair" : "after array element");
}

bool Lexer::name(std::string_view& value, std::string& scratch) {
  skip_space();
  if (!next_is('"')) return syntax("looking for beginning of object key string");
  if (!string(value, scratch)) return false;
  skip_space();
  if (!take(':')) return syntax("after object key");
  skip_space();
  return true;
}

bool Lexer::scalar() {
  if (done()) return syntax({});
  switch (*at_) {
    case '"': {
      std::string scratch;
      std::string_view value;
      return string(value, scratch);
    }
    case 't':
      return literal("true");
    case 'f':
      return literal("false");
    case 'n':
      return literal("null");
    default:
      break;
  }
  const auto number = scan_number(rest());
  if (!number) return syntax("looking for beginning of value");
  at_ += number->text.size();
  return true;
}

// Without recursion: what a client invents may be nested deeply.
bool Lexer::skip_value(size_t depth) {
  std::vector<char> open;  // the closing brackets that are still to come
  std::string scratch;
  std::string_view ignored;
  do {
    skip_space();
    if (next_is('{') || next_is('[')) {
      const char close = *at_ == '{' ? '}' : ']';
      ++at_;
      if (open.size() + depth >= kJsonDepthMax) return fail("exceeded max depth");
      skip_space();
      if (!take(close)) {
        open.push_back(close);
        if (close == '}' && !name(ignored, scratch)) return false;
        continue;
      }
    } else if (!scalar()) {
      return false;
    }
    // A value has ended, and perhaps what it is in.
    for (bool more = false; !open.empty() && !more;) {
      if (!comma_or_end(open.back(), more)) return false;
      if (!more) open.pop_back();
    }
    if (!open.empty() && open.back() == '}' && !name(ignored, scratch)) return false;
  } while (!open.empty());
  return true;
}

}  // namespace http::json
